"""Requests through the Verilated memory channel: when each is answered, and every command.

The replayer and the recorder stand in rtl/bench/memory_bench.sv; the bench that hands over the
requests and judges the record is calibration/benches/memory_bench.py.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.memory.dram_rules import Command, Kind
from calibration.simulator import Simulation, build
from cosim.memory.channel import ChannelParameters
from cosim.verilog import MEMORY_SOURCES
from tlm.calibrated import REPOSITORY
from tlm.errors import InputError

_BENCH = REPOSITORY / "rtl" / "bench"
_UNBOUNDED = 2**32 - 1
Cycles = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests in the order in which they are offered.

    Attributes:
        cycle: Shape (n,): cycle before which each is not offered, never falling.
        write: Shape (n,): 1 for a write.
        address: Shape (n,): in bursts; from the low end bank group, column, bank, row.
    """

    cycle: Cycles
    write: Cycles
    address: Cycles

    @classmethod
    def of(cls, items: Iterable[tuple[int, int, int]]) -> "Requests":
        """From (cycle, write, address), one a request."""
        return cls(*np.array([*items], dtype=np.int64).reshape(-1, 3).T)

    def __len__(self) -> int:
        return len(self.cycle)


@dataclass(frozen=True, slots=True)
class Answers:
    """How responses are taken.

    Attributes:
        hold_cycles: Cycles before which none is.
        stall_fraction: How often, in [0, 1), one is refused at random.
        seed: Seed of the refusals.
    """

    hold_cycles: int = 0
    stall_fraction: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.stall_fraction < 1:
            raise InputError(f"stall_fraction: {self.stall_fraction}; must be in [0, 1)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was seen at the channel; shapes (n,) over requests, in cycles since reset.

    Attributes:
        offered: The request was first offered (BEGIN_REQ).
        taken: It was taken (END_REQ).
        appeared: Its response was first offered (BEGIN_RESP).
        answered: Its response was taken (END_RESP).
        commands: Every DRAM command in order of time.
        cycles: How long the run was.
    """

    offered: Cycles
    taken: Cycles
    appeared: Cycles
    answered: Cycles
    commands: list[Command]
    cycles: int

    def latency_cycles(self) -> Cycles:
        """From a request's handshake to its response's."""
        return self.answered - self.taken

    def served(self) -> Cycles:
        """Shape (n,): cycle of each request's column command."""
        result = np.full(len(self.taken), -1, dtype=np.int64)
        for command in self.commands:
            if command.request >= 0:
                result[command.request] = command.cycle
        return result


class StandstillError(RuntimeError):
    """Requests are left, and the channel neither takes nor answers any."""


@dataclass(frozen=True, slots=True)
class RtlMemory(ChannelParameters):
    """A Verilated memory channel under cocotb.

    Attributes:
        waves: Whether runs record a VCD.
    """

    waves: bool = False

    def build(self) -> Simulation:
        """The built model, from the cache if it is there."""
        sources = [_BENCH / "bench.vlt", *MEMORY_SOURCES, _BENCH / "memory_bench.sv"]
        return build("memory_bench", sources, self.parameters(), waves=self.waves)

    def simulate(
        self,
        requests: Requests,
        *,
        outstanding: int | None = None,
        answers: Answers | None = None,
        least_cycles: int = 0,
        seed: int = 1,
    ) -> Outcome:
        """Run requests to their answers; data, phases and commands are judged on the way.

        Args:
            requests: What is asked; offered in this order.
            outstanding: Most requests that are taken and not answered; without it, no bound.
            answers: How responses are taken; without it, at once.
            least_cycles: Cycles that the run lasts at least.
            seed: Seed of the written data.

        Raises:
            InputError: for an address that the channel does not have.
            StandstillError: if the channel stands still.
            SimulationError: if the bench finds anything wrong.
        """
        self._check(requests, outstanding)
        answers = answers or Answers()
        plan = {
            "parameters": asdict(self),
            "requests": np.stack([requests.cycle, requests.write, requests.address], 1).tolist(),
            "outstanding": _UNBOUNDED if outstanding is None else outstanding,
            "hold_cycles": answers.hold_cycles,
            "stall": int(answers.stall_fraction * 256),
            "stall_seed": answers.seed,
            "least_cycles": least_cycles,
            "data_seed": seed,
        }
        found = self.build().run("calibration.benches.memory_bench", plan, seed=seed)
        if found["hung_at_cycle"] is not None:
            raise StandstillError(f"memory channel stands still since {found['hung_at_cycle']}")
        commands = [Command(row[0], Kind(row[1]), *row[2:]) for row in found["commands"]]
        offered, taken, appeared, answered = np.array(found["phases"], dtype=np.int64)
        return Outcome(offered, taken, appeared, answered, commands, found["cycles"])

    def _check(self, requests: Requests, outstanding: int | None) -> None:
        bad = np.nonzero((requests.address < 0) | (requests.address >= self.bursts))[0]
        if len(bad):
            raise InputError(
                f"request {bad[0]}: address {requests.address[bad[0]]}; "
                f"must be 0 to {self.bursts - 1}"
            )
        if (np.diff(requests.cycle) < 0).any():
            raise InputError("requests: cycles fall; must be in order of time")
        if outstanding is not None and outstanding < 1:
            raise InputError(f"outstanding: {outstanding}; must be at least 1")
