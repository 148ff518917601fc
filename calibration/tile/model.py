"""Nodes of tile meshes, compiled with the driver that joins and runs them; built once."""

import hashlib
import json
import shutil
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock

from calibration.harness.mesh import NOC_SOURCES
from calibration.harness.simulator import SimulationError, _drop_intermediates, cache_folder
from calibration.harness.toolchain import tool_versions
from calibration.loop.model import _CXX_FLAGS, _MAKE_FLAGS, _WITHOUT_WAVES, _compiled
from tlm.calibrated import REPOSITORY, file_hash
from tlm.errors import InputError

_TILE = REPOSITORY / "rtl" / "tile"
_NODE = REPOSITORY / "rtl" / "bench" / "tile_node.sv"
_TOP = "tile_node"
_TILE_MODULES = (
    "delay_line", "pe", "fold_sequencer", "systolic_array", "exp2_table", "vector_lane",
    "vector_reduce", "vector_sequencer", "vector_unit", "sram_bank", "scratchpad",
    "address_loop", "stream_reader", "stream_writer", "matrix_engine", "word_packer",
    "vector_engine", "network_interface", "engine_queue", "sequencer", "tile",
)  # fmt: skip
#: In order of dependence.
TILE_SOURCES = (*NOC_SOURCES, *(_TILE / f"{name}.sv" for name in _TILE_MODULES))
_OWN_SOURCES = (
    Path(__file__).with_name("driver.cpp"),
    REPOSITORY / "calibration" / "loop" / "loop.h",
)
_FLAGS = (
    "--no-timing", "--assert", "--top-module", _TOP, "--timescale", "1ns/1ps", "-O3",
    "--x-assign", "fast", "--output-split-cfuncs", "500",
)  # fmt: skip
_MOST_SIDE = 16
_MOST_TILES = 64


@dataclass(frozen=True, slots=True)
class TileModel:
    """A mesh of ``rows`` x ``cols`` tiles.

    The other fields are parameters of rtl/tile/tile_mesh.sv. With ``waves`` a wave shows the
    signals inside, too.
    """

    rows: int
    cols: int
    fifo_depth: int = 4
    output_depth: int = 0
    stages: int = 1
    y_first: bool = False
    loopback: bool = True
    reduce_stages: int = 1
    operand_bits: int = 16
    banks: int = 8
    bank_depth: int = 512
    queue_depth: int = 256
    outstanding: int = 2
    waves: bool = False

    def __post_init__(self) -> None:
        sides = min(self.rows, self.cols), max(self.rows, self.cols)
        if sides[0] < 1 or sides[1] > _MOST_SIDE or self.tiles > _MOST_TILES:
            raise InputError(
                f"tiles: found {self.rows}x{self.cols} in Verilog; allowed: sides of 1 to "
                f"{_MOST_SIDE}, {_MOST_TILES} tiles"
            )

    @property
    def tiles(self) -> int:
        """How many there are."""
        return self.rows * self.cols

    @property
    def name(self) -> str:
        """What it is, for messages."""
        return f"tile mesh {self.rows}x{self.cols}"

    @property
    def array_size(self) -> int:
        """Rows, and columns, of a tile's systolic array."""
        return 64 // self.operand_bits

    @property
    def memory_words(self) -> int:
        """Words of a tile's scratchpad."""
        return self.banks * self.bank_depth

    @property
    def flit_bits(self) -> int:
        """Bits of a flit (rtl/noc/noc_pkg.sv): 96 of payload, and a header with all features."""
        indices = max((self.rows - 1).bit_length(), 1) + max((self.cols - 1).bit_length(), 1)
        return 96 + indices + self.rows + self.cols + self.fifo_depth.bit_length() + 4

    def parameters(self) -> dict[str, int]:
        """Parameters of tile_mesh.sv."""
        renamed = {"operand_bits": "OperandWidth"}
        names = [field.name for field in fields(self) if field.name != "waves"]
        return {
            renamed.get(name, name.title().replace("_", "")): int(getattr(self, name))
            for name in names
        }

    def build(self) -> Path:
        """The library of the model, from the cache if it is there.

        Raises:
            SimulationError: carrying the end of the tools' output.
        """
        flags = [*_FLAGS, *(() if self.waves else _WITHOUT_WAVES)]
        flags += [f"-G{name}={value}" for name, value in self.parameters().items()]
        values = {
            "ROWS": self.rows,
            "COLS": self.cols,
            "COUNT_BITS": self.fifo_depth.bit_length(),
            "FLIT_WORDS": -(-self.flit_bits // 32),
        }
        cargs = " ".join([_CXX_FLAGS, *(f"-DTILE_{name}={n}" for name, n in values.items())])
        hashes = [file_hash(path) for path in (*TILE_SOURCES, _NODE, *_OWN_SOURCES)]
        tools = {**tool_versions(), "pyverilator-mm": version("pyverilator-mm")}
        key_parts = [flags, cargs, _MAKE_FLAGS, hashes, tools]
        key = hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()[:16]
        folder = cache_folder() / f"tiles-{key}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not (folder / "done").is_file():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                for path in _OWN_SOURCES:
                    shutil.copy2(path, folder)
                self._compile(folder, flags, cargs)
                _drop_intermediates(folder)
                (folder / "done").touch()
        return folder / f"V{_TOP}"

    def _compile(self, folder: Path, flags: list[str], cargs: str) -> None:
        problem = _compiled(
            folder,
            {
                "top_verilog_file": str(_NODE),
                "preceding_files": str(folder / "driver.cpp"),
                "args": [*flags, *map(str, TILE_SOURCES)],
                "cargs": cargs,
            },
        )
        if problem:
            raise SimulationError(f"building {self.name} failed:\n{problem[-4000:]}")
