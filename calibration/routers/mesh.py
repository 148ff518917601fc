"""Packets through a Verilated mesh that a specification describes: what comes out, and when.

Stimuli go to the replayers and handshakes come from the recorders of rtl/bench/blackbox_bench.sv;
the bench that runs them is calibration/benches/blackbox_bench.py.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from calibration.benches.mesh_bench import Log, expected_deliveries, judge, read_log
from calibration.simulator import Simulation, build
from cosim.errors import HangError, SimulationError, UnfinishedError, WrongDataError
from cosim.spec.adapter import SizedMesh
from cosim.spec.flits import Words
from tlm.calibrated import REPOSITORY
from tlm.interconnect.packets import Deliveries, Packets
from tlm.scratch import run_folder

_BENCH = REPOSITORY / "rtl" / "bench"
_BENCH_SOURCES = tuple(
    _BENCH / name for name in ("blackbox.vlt", "flit_replayer.sv", "blackbox_bench.sv")
)
_LONGEST_CYCLES, _OBSERVED_CYCLES = 10_000_000, 100_000
#: A flit that is due takes no longer, even if all go one by one; and what any run may take.
_FLIT_CYCLES, _LEAST_CYCLES = 200, 20_000
_UNBOUNDED = 2**32 - 1
#: More than four times the flits that are due, and some: a mesh that makes flits of its own.
_EXCESS = (4, 10_000)


class BlackBoxMesh(SizedMesh):
    """A mesh under cocotb."""

    def build(self, waves: bool = False) -> Simulation:
        """The built model, from the cache if it is there.

        Raises:
            SimulationError: carrying the end of Verilator's output.
        """
        layout = self.layout()
        parameters = {
            "Nodes": self.rows * self.cols,
            "FlitWidth": layout.width,
            "PayloadLsb": layout.payload_lsb,
            "LastBit": layout.last_bit,
        }
        return build(
            "blackbox_bench",
            [*self.spec.source_files(), *_BENCH_SOURCES],
            parameters,
            waves=waves,
            # Warnings about a user's Verilog are hers.
            flags=["-Wno-fatal", *self.spec.rtl.flags()],
            include_folders=self.spec.include_folders(),
            written={"blackbox_dut.sv": self.adapter()},
            shown=self.name,
            nodes=self.rows * self.cols,
        )

    def simulate(
        self, packets: Packets, *, loopback: bool = True, keep_failures: bool = True
    ) -> Deliveries:
        """Run packets to their delivery; each node sends its own in the order of their numbers.

        Every flit is checked on the way: data, order, completeness, exactly one copy a destination.

        Args:
            packets: What is sent.
            loopback: A sender among the destinations of its multicast gets a copy.
            keep_failures: The folder of a run that goes wrong is kept, and the error names it. Not
                where it is tried whether packets get through.

        Raises:
            InputError: for a packet that headers of this mesh cannot express.
            HangError: if the mesh stands still though flits are due.
            SimulationError: if the model cannot be built, or anything comes out wrong.
        """
        folder = run_folder()
        keep = False
        try:
            return self._deliveries(packets, loopback, folder)
        except (UnfinishedError, WrongDataError) as error:
            keep = keep_failures
            raise type(error)(f"{error}; see {folder}" if keep else str(error)) from error
        except SimulationError:
            keep = keep_failures
            raise
        finally:
            if not keep:
                shutil.rmtree(folder)

    def _deliveries(self, packets: Packets, loopback: bool, folder: Path) -> Deliveries:
        """What `simulate` says, in a folder."""
        words = self.layout().encode(packets)
        wanted = expected_deliveries(packets, self.cols, loopback=loopback)
        due = int(packets.flits[wanted[:, 0]].sum())
        most = _EXCESS[0] * due + _EXCESS[1]
        longest = int(packets.cycle.max(initial=0)) + _FLIT_CYCLES * due + _LEAST_CYCLES
        longest = min(longest, _LONGEST_CYCLES)
        log, outcome = self._run(packets, words, (), longest, most, folder)
        injected, ejected = (int((log[:, 0] == kind).sum()) for kind in (0, 1))
        missing = injected < len(words) or ejected < due
        what = self.name
        counts = f"{injected} of {len(words)} flits injected, {ejected} of {due} ejected"
        if outcome["quiet"] and missing:
            since = int(log[-1, 2]) + 1 if len(log) else 0
            raise HangError(f"{what} stands still since cycle {since}: {counts}")
        if not outcome["quiet"]:
            raise UnfinishedError(f"{what} moves still in cycle {outcome['cycles']}: {counts}")
        try:
            return judge(packets, log, wanted, self.spec.data_law)
        except AssertionError as error:
            raise WrongDataError(f"{what}: {error}") from error

    def observe(
        self, packets: Packets, held: tuple[int, ...] = (), *, keep_failures: bool = True
    ) -> Log:
        """Run packets and judge nothing: what the mesh does is to be found out.

        Args:
            packets: What is sent.
            held: Nodes that never take a flit.
            keep_failures: The folder of a run that goes wrong is kept, and the error names it.

        Returns:
            Every handshake in order of time, shape (handshakes, 5): 0 injection or 1 ejection,
            node, cycle, last bit, low 64 bits of the payload.

        Raises:
            InputError: for a packet that headers of this mesh cannot express.
            SimulationError: if the model cannot be built, or an assertion in it fails.
        """
        words = self.layout().encode(packets)
        folder = run_folder()
        keep = False
        try:
            return self._run(packets, words, held, _OBSERVED_CYCLES, _UNBOUNDED, folder)[0]
        except SimulationError:
            keep = keep_failures
            raise
        finally:
            if not keep:
                shutil.rmtree(folder)

    def wave_from(self, packets: Packets) -> int:
        """Cycle of a run from which a model with waves records one."""
        return 0

    def _run(
        self,
        packets: Packets,
        words: Words,
        held: tuple[int, ...],
        most_cycles: int,
        most_flits: int,
        folder: Path,
    ) -> tuple[Log, Any]:
        """One run in a folder: its handshakes, and the last ``cycles`` and whether ``quiet``."""
        nodes = self.rows * self.cols
        starts = packets.cycle.repeat(packets.flits)
        senders = packets.source.repeat(packets.flits)
        digits = -(-self.layout().width // 4)
        lines = np.array([*map(" ".join, zip(map(str, starts), _hex(words, digits), strict=True))])
        for node in range(nodes):
            text = "\n".join(lines[senders == node].tolist())
            (folder / f"stimulus_{node}.txt").write_text(text)
        plan = {
            "reset_cycles": self.spec.reset.cycles,
            "held_nodes": held,
            "most_cycles": most_cycles,
            "most_flits": min(most_flits, _UNBOUNDED),
            "wave_from": self.wave_from(packets),
        }
        bench = "calibration.benches.blackbox_bench"
        outcome = self.build().run(bench, plan, seed=1, folder=folder, bench_waves=True)
        return read_log(folder / "handshakes.bin"), outcome


def _hex(words: Words, digits: int) -> list[str]:
    """Each flit in hexadecimal."""
    text = np.ascontiguousarray(words[:, ::-1]).astype(">u8").tobytes().hex()
    whole = 16 * words.shape[1]
    return [text[end - digits : end] for end in range(whole, len(text) + 1, whole)]
