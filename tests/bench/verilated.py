"""The project's mesh as a Verilated program with a C++ driver: what the model is raced against."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.errors import SimulationError
from cosim.verilated.cache import cached
from cosim.verilated.plain_names import plain_names
from cosim.verilated.toolchain import tool_versions, verilator_environment
from cosim.verilog import NOC_SOURCES
from tlm.calibrated import REPOSITORY, source_hashes
from tlm.errors import InputError
from tlm.interconnect.packets import PacketKind, Packets

_DRIVER = Path(__file__).parent / "mesh_driver.cpp"
_SOURCES = (REPOSITORY / "rtl" / "noc" / "noc.vlt", *NOC_SOURCES)
_PAYLOAD_BITS = 64
_MOST_NODES = 64
#: As the calibration's models (calibration/simulator.py), but made to be fast: the C++ at
#: -O3 instead of -Og, nothing visible from outside, the Verilog's assertions left out.
_OPTIONS = (
    "--cc", "--exe", "--build", "--prefix", "Vmesh", "--top-module", "mesh", "-o", "driver",
    "--timescale", "1ns/1ps", "-O3", "--x-assign", "fast", "--no-assert",
    "--output-split-cfuncs", "500", "--output-split", "200000", "-MAKEFLAGS", "OPT_FAST=-O3",
    # The packaged Verilator's precompiled headers are broken for models of several files.
    "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Race:
    """What a run of the driver did, and the CPU time of its cycles alone."""

    deliveries: int
    last_ejection_cycle: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class DrivenMesh:
    """A Verilated mesh with all features, of at most 64 nodes, and buffers of ``fifo_depth``."""

    rows: int
    cols: int
    fifo_depth: int

    def __post_init__(self) -> None:
        if not 2 <= self.rows * self.cols <= _MOST_NODES:
            raise InputError(
                f"driver: found a {self.rows}x{self.cols} mesh; allowed: 2 to {_MOST_NODES} nodes"
            )

    @property
    def flit_bits(self) -> int:
        """Bits of a flit, as rtl/noc/noc_pkg.sv has them with multicasts and reductions."""
        masks, length, flags = self.rows + self.cols, self.fifo_depth.bit_length(), 4
        place = _index_bits(self.rows) + _index_bits(self.cols)
        return _PAYLOAD_BITS + place + masks + length + flags

    def build(self) -> Path:
        """The program, from the cache if it is there.

        Raises:
            SimulationError: carrying the end of the tools' output.
        """
        shape = [self.rows, self.cols, self.fifo_depth, *_OPTIONS]
        content = [source_hashes([*_SOURCES, _DRIVER]), shape, tool_versions()]
        nodes = self.rows * self.cols
        shown = f"the bench's mesh of {nodes} nodes"
        found = cached("mesh_driver", content, self._verilate, shown=shown, nodes=nodes)
        return found.folder / "driver"

    def _verilate(self, folder: Path) -> None:
        shape = {"Rows": self.rows, "Cols": self.cols, "FifoDepth": self.fifo_depth}
        command = [
            "verilator", *_OPTIONS, "-j", str(os.cpu_count()), "-Mdir", str(folder),
            "-CFLAGS", f"-DNODES={self.rows * self.cols} -DFLIT_BITS={self.flit_bits}",
            *(f"-G{name}={value}" for name, value in shape.items()),
            *(str(path) for path in (*_SOURCES, _DRIVER)),
        ]  # fmt: skip
        with plain_names() as names:
            environment = names.environment(verilator_environment())
            outcome = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )
        if outcome.returncode:
            output = (outcome.stdout + outcome.stderr)[-4000:]
            raise SimulationError(f"building the driver of mesh failed:\n{output}")

    def run(self, packets: Packets, limit_cycles: int) -> Race:
        """Run unicasts to their delivery, or up to a cycle.

        Raises:
            InputError: for packets that are not unicasts.
            SimulationError: if the program fails.
        """
        program = self.build()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "packets"
            path.write_bytes(self.words(packets).tobytes())
            command = [str(program), str(path), str(len(packets)), str(limit_cycles)]
            outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode:
            raise SimulationError(f"{program} ended with {outcome.returncode}: {outcome.stderr}")
        deliveries, cycle, cpu_s = outcome.stdout.split()
        return Race(int(deliveries), int(cycle), float(cpu_s))

    def words(self, packets: Packets) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
        """The packets as the driver reads them, shape (packets, words); see mesh_driver.cpp.

        Raises:
            InputError: for packets that are not unicasts.
        """
        if (packets.kind != PacketKind.UNICAST).any():
            raise InputError("driver: found a packet that is not a unicast; allowed: unicasts")
        words = np.zeros((len(packets), 3 + -(-self.flit_bits // 32)), dtype="<u4")
        words[:, 0], words[:, 1], words[:, 2] = packets.cycle, packets.source, packets.flits
        words[:, 3] = np.arange(len(packets))
        # A unicast has no masks, and its length is not read.
        place = packets.col_first | packets.row_first << _index_bits(self.cols)
        words[:, 3 + _PAYLOAD_BITS // 32] = place
        return words


def _index_bits(size: int) -> int:
    return max((size - 1).bit_length(), 1)
