"""The project's own Verilog: files in order of dependence, and names of parameters."""

import re
from pathlib import Path

# Not by tlm.calibrated: what that imports takes a third of a short run of a bench that loads this.
_RTL = Path(__file__).resolve().parents[1] / "rtl"


def _files(folder: str, *modules: str) -> tuple[Path, ...]:
    return tuple(_RTL / folder / f"{module}.sv" for module in modules)


NOC_SOURCES = _files(
    "noc",
    "noc_pkg", "header", "rr_arbiter", "fifo", "fork_fifo", "tree_route", "reduce_route",
    "input_port", "reduce_unit", "output_port", "router", "mesh",
)  # fmt: skip
MEMORY_SOURCES = _files(
    "memory",
    "wait_counter", "bank_timing", "channel_timing", "refresh_timer", "request_queue",
    "scheduler", "row_storage", "burst_timer", "response_fifo", "memory_channel",
)  # fmt: skip
ARRAY_SOURCES = _files("tile", "pe", "delay_line", "fold_sequencer", "systolic_array")
#: A tile and the routers.
TILE_FILES = NOC_SOURCES + _files(
    "tile",
    "delay_line", "pe", "fold_sequencer", "systolic_array", "exp2_table", "vector_lane",
    "vector_reduce", "vector_sequencer", "vector_unit", "sram_bank", "scratchpad",
    "address_loop", "stream_reader", "stream_writer", "matrix_engine", "word_packer",
    "vector_engine", "network_interface", "engine_queue", "sequencer", "tile",
)  # fmt: skip
#: The same in a node of a mesh: all that a measurement on tiles rests on.
TILE_SOURCES = TILE_FILES + _files("bench", "tile_node")
#: Memory channels at the edge of a mesh.
EDGE_FILES = MEMORY_SOURCES + _files("memory", "memory_node", "memory_port")


def default_parameters(source: Path) -> dict[str, int]:
    """Values that a file of Verilog gives the parameters of its module, by name."""
    found = re.findall(r"^\s*parameter int (\w+) = (\d+)", source.read_text("utf-8"), re.MULTILINE)
    return {name: int(value) for name, value in found}


def parameter_name(name: str) -> str:
    """The Verilog's name of a parameter: ``FifoDepth`` for ``fifo_depth``."""
    return name.title().replace("_", "")
