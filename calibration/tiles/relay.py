"""Calibration of routing in software: what a stage costs in which a tile hands a block on.

A chain of tiles: each receives a block, and then sends it on as it is ("forward"), or adds a block
of its own to it first ("touch"), as in a reduction without the network's help. Nothing of a block
leaves before all of it is there. A stage of F flits over h links costs

    STAGE_cycles + F x FLIT_cycles + h x HOP_cycles

from the start of the transfer that brings the block to the start of the one that takes it on. The
three constants of each way are found on chains of some lengths and checked on others, also on tiles
for operands of the other width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibration.experiment import Parameters
from calibration.solve import solve_exactly
from calibration.tiles.experiment import APART, FITTED, OTHER_WIDTH, TileExperiment, pass_job
from cosim.errors import SimulationError
from cosim.tiles.blocks import block_of, rows_of, wrapped
from cosim.tiles.descriptors import Descriptor, Transfer, TransferKind
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from tlm.calibrated import Parameter
from tlm.program.operations import Engine

Way = Literal["forward", "touch"]
_WAYS: tuple[Way, Way] = ("forward", "touch")
_UNITS = {"stage": "cycles/stage", "flit": "cycles/flit", "hop": "cycles/hop"}
#: Tiles that a chain goes round, by the links of a stage.
_ROUNDS = {0: (0,), 1: (0, 1, 3, 2), 2: (0, 3)}
#: Addresses of blocks that come, one's own, and their sum.
_CAME, _OWN, _SUM = APART
_ARRIVED, _ADDED = 1, 2
_FIT = ((3, 4, 1), (2, 9, 1), (4, 5, 2), (5, 16, 2))
_CHECK = ((1, 1, 1), (8, 1, 2), (6, 12, 0), (9, 33, 1), (2, 100, 2), (12, 7, 1))
_OTHER_WIDTH_CHECK = ((1, 16, 1), (7, 3, 2), (5, 40, 1))


@dataclass(frozen=True, slots=True)
class RelayCase:
    """A chain of tiles that hand a block on."""

    way: Way
    stages: int
    flits: int
    hops: int
    model: TileModel = FITTED

    @property
    def row(self) -> list[int]:
        """How often each constant counts."""
        return [self.stages, self.stages * self.flits, self.stages * self.hops]


class Relay(TileExperiment[RelayCase]):
    """Routing in software."""

    name = "relay"
    subject = "cycles of chains of tiles that receive a block, touch it or not, and send it on"

    def fit_cases(self) -> list[RelayCase]:
        """Of each way one more than there are constants."""
        return [RelayCase(way, *sizes) for way in _WAYS for sizes in _FIT]

    def check_cases(self, *, quick: bool) -> list[RelayCase]:
        """Other lengths, blocks and distances; ``quick`` leaves out tiles of the other width."""
        cases = [RelayCase(way, *sizes) for way in _WAYS for sizes in _CHECK]
        if quick:
            return cases
        others = [(way, sizes) for way in _WAYS for sizes in _OTHER_WIDTH_CHECK]
        return cases + [RelayCase(way, *sizes, OTHER_WIDTH) for way, sizes in others]

    def situation(self, case: RelayCase) -> str:
        """What the tiles do with the block."""
        return f"chains of tiles: {case.way}"

    def cycles(self, machine: TileMachine, case: RelayCase) -> int:
        """From the start of the first transfer to that of the one behind the last stage.

        Raises:
            SimulationError: if a wrong block comes to the end.
        """
        return _measured(machine, case)

    def law(self, parameters: Parameters, case: RelayCase) -> float:
        """The same by the law."""
        names = (_name(case.way, term) for term in _UNITS)
        return sum(
            count * parameters[name].value for name, count in zip(names, case.row, strict=True)
        )

    def identify(self, cases: Sequence[RelayCase], values: Sequence[float]) -> dict[str, Parameter]:
        """The constants of each way.

        Raises:
            LawContradictedError: if there are none.
        """
        found: dict[str, Parameter] = {}
        for way in _WAYS:
            pairs = [
                (case.row, value)
                for case, value in zip(cases, values, strict=True)
                if case.way == way
            ]
            constants = solve_exactly([row for row, _ in pairs], [value for _, value in pairs])
            for term, constant in zip(_UNITS, constants, strict=True):
                found[_name(way, term)] = Parameter.exact(constant, _UNITS[term])
        return found

    def words(self, case: RelayCase) -> str:
        """The chain in words."""
        return f"{case.way}: {case.stages} stages, {case.flits} flits, {case.hops} hops"


def _name(way: Way, term: str) -> str:
    return f"{way}_{term}_cycles"


def _measured(machine: TileMachine, case: RelayCase) -> int:
    """From the start of the first transfer to that of the one behind the last stage."""
    round_ = _ROUNDS[case.hops]
    path = [round_[stage % len(round_)] for stage in range(case.stages + 2)]
    rng = np.random.default_rng(0)
    blocks = rng.integers(-(2**31), 2**31, (2, 1, 2 * case.flits))
    # Every block of the chain has words of its own, at the same banks; what they hold before is
    # random, so that the end shows if a transfer or a pass wrote nothing, or elsewhere.
    came = [_CAME + stage * _whole_banks(case) for stage in range(case.stages + 2)]
    memory = rng.integers(0, 2**64, (case.model.tiles, case.model.memory_words), dtype=np.uint64)
    memory[:, _OWN : _OWN + case.flits] = rows_of(blocks[1])
    memory[path[0], came[0] : came[0] + case.flits] = rows_of(blocks[0])
    images = {tile: TileImage(memory={0: memory[tile]}) for tile in path}
    touches = case.way == "touch"
    for stage, (here, there) in enumerate(zip(path, path[1:], strict=False)):
        touched = touches and stage > 0
        job = Transfer(
            TransferKind.UNICAST, case.flits, _SUM if touched else came[stage], came[stage + 1],
            row=there // case.model.cols, col=there % case.model.cols, tokens=(_ARRIVED,),
        )  # fmt: skip
        queues = images[here].queues
        if touched:
            add = pass_job("add", case.flits, 1, (came[stage], _OWN, _SUM))
            passed = Descriptor(add, frozenset([_ARRIVED]), frozenset([_ADDED]))
            queues.setdefault(Engine.VECTOR, []).append(passed)
        token = _ADDED if touched else _ARRIVED
        takes = frozenset([token] if stage else [])
        queues.setdefault(Engine.TRANSFER, []).append(Descriptor(job, takes))
    run = machine.run(images)
    last = block_of(machine.read(path[-1], came[-1], case.flits), blocks[0].shape)
    if (last != wrapped(blocks[0] + touches * case.stages * blocks[1])).any():
        raise SimulationError(f"{machine.model.name}: {case}: another block came to the end")
    starts = sorted(span.start_cycle for span in run.spans if span.engine is Engine.TRANSFER)
    return starts[-1] - starts[0]


def _whole_banks(case: RelayCase) -> int:
    """Words of a block, and what it lacks to a row of all banks."""
    return -(-case.flits // case.model.banks) * case.model.banks
