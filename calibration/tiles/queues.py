"""Calibration of a tile's sequencer and network interface: what a descriptor costs.

Each constant is read off a small program that shows it, with those before it known, and held
against another. Cycles of programs are those of the level `at`. The blind check are programs drawn
at random in which tasks go from tile to tile, or credits to tiles that wait for them, on tiles for
operands of the other width, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibration.experiment import LawContradictedError, Parameters, Targets
from calibration.tiles.experiment import FITTED, OTHER_WIDTH, TileExperiment, exact
from cosim.tiles.lowering import lower
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from tlm.calibrated import Parameter, load_result
from tlm.engines.at import run_at
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Operation, Program, Send, Token, Work
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.programs import on_tiles
from tlm.tiles.timing import TileTiming, queue_timing, stream_timing

_Built = tuple[dict[str, Token], list[Operation]]
_ENGINES = (Engine.MATRIX, Engine.VECTOR, Engine.CONTROL)
_CANDIDATES = {
    "least_work_cycles": range(8),
    "launch_cycles": range(8),
    "outstanding": range(1, 6),
    "start_interval_cycles": range(2),
    "credit_interval_cycles": range(4),
    "credits_at_end": range(16, 0, -1),
    "credit_depth": range(5, 0, -1),
}


#: Tiles that give credits to one, whose port cannot take all of them at once.
_CROWD, _CROWDED = (0, 1, 3), 2
_LONG = 300
"""Cycles of work that ends when all else has."""


@dataclass(frozen=True, slots=True)
class QueueCase:
    """A program.

    Attributes:
        label: What it does.
        constant: The constant that it shows; empty of blind cases.
        build: Its tokens and operations.
        model: The tiles.
        banks: Words of transfers wait for each other at banks in the law, too.
    """

    label: str
    constant: str
    build: Callable[[], _Built]
    model: TileModel = FITTED
    banks: bool = False


class TileQueues(TileExperiment[QueueCase]):
    """Programs by what their descriptors cost."""

    name = "tile-queues"
    subject = "cycles of programs by what their descriptors cost: starts, launches, credits"
    seed = 20240601
    targets = Targets(mean_pct=0.5, worst_pct=2.0)

    def fit_cases(self) -> list[QueueCase]:
        """Two of each constant: one to read it off, one to contradict it."""
        builds: dict[str, list[tuple[str, Callable[[], _Built]]]] = {
            "least_work_cycles": [(f"{n} works of no cycle", partial(_works, n)) for n in (3, 7)],
            "launch_cycles": [(f"{n} flits, then work", partial(_send, n)) for n in (5, 16)],
            "outstanding": [(f"{n} transfers of a flit", partial(_sends, n)) for n in (7, 12)],
            "start_interval_cycles": [
                (f"{n} engines that could start together", partial(_together, n)) for n in (2, 3)
            ],
            "credit_interval_cycles": [
                (f"{n} senders that wait for a credit each", partial(_credits, n)) for n in (2, 3)
            ],
            "credits_at_end": [
                (f"work that gives {n} credits, then work", partial(_many_credits, n))
                for n in (9, 13)
            ],
            "credit_depth": [
                (f"works that give one tile {n} credits each, then work", partial(_crowd, n))
                for n in (6, 8)
            ],
        }
        return [
            QueueCase(label, constant, build)
            for constant, cases in builds.items()
            for label, build in cases
        ]

    def check_cases(self, *, quick: bool) -> list[QueueCase]:
        """Programs drawn at random; ``quick`` draws a set of credits and those of one walker."""
        cases = [_credits_case(0, FITTED), *_walk_cases(1, FITTED)]
        if not quick:
            cases += [_credits_case(1, FITTED), _credits_case(2, OTHER_WIDTH)]
            for walkers, model in ((2, FITTED), (3, FITTED), (2, OTHER_WIDTH)):
                cases += _walk_cases(walkers, model)
        return cases

    def situation(self, case: QueueCase) -> str:
        """The constant that it shows, or that it was drawn at random."""
        return f"programs that show {case.constant}" if case.constant else "random programs"

    def cycles(self, machine: TileMachine, case: QueueCase) -> int:
        """Of the program from its first start to its last end."""
        return machine.run(lower(_program(case), case.model).images).cycles

    def law(self, parameters: Parameters, case: QueueCase) -> int:
        """The same at the level `at`."""
        timing, queues = rtl_timing(), queue_timing(parameters)
        streams = stream_timing(load_result("tile-streams").parameters)
        tile = TileTiming(case.model.array_size, case.model.banks, streams, queues)
        shape = case.model.rows, case.model.cols
        mesh = TiledMesh(*shape, timing, tile) if case.banks else HandshakeMesh(*shape, timing)
        return run_at(on_tiles(_program(case), tile), timing, mesh, queues=queues).cycles

    def identify(self, cases: Sequence[QueueCase], values: Sequence[float]) -> dict[str, Parameter]:
        """The constants that give every program its cycles.

        Raises:
            LawContradictedError: if there are none, naming the constant.
        """
        # The least of each costs nothing.
        found = {name: candidates[0] for name, candidates in _CANDIDATES.items()}
        for name, candidates in _CANDIDATES.items():
            chosen = [pair for pair in zip(cases, values, strict=True) if pair[0].constant == name]
            fitting = [
                value
                for value in candidates
                if all(self.law(_parameters(found | {name: value}), c) == v for c, v in chosen)
            ]
            if len(fitting) != 1:
                raise LawContradictedError(
                    f"{name}: values that give the programs their cycles: {fitting}; expected: one"
                )
            [found[name]] = fitting
        return _parameters(found)

    def words(self, case: QueueCase) -> str:
        """The program in words."""
        return case.label


def _parameters(values: dict[str, int]) -> dict[str, Parameter]:
    units = {"outstanding": "transfers", "credits_at_end": "credits", "credit_depth": "credits"}
    return exact(values, **units)


def _program(case: QueueCase) -> Program:
    tokens, operations = case.build()
    return Program(case.model.rows, case.model.cols, tokens, lambda: operations)


def _walk_cases(walkers: int, model: TileModel) -> list[QueueCase]:
    label = f"{walkers} walkers of 12 steps, number"
    return [QueueCase(f"{label} {n}", "", partial(_walks, walkers, n), model) for n in range(8)]


def _credits_case(number: int, model: TileModel) -> QueueCase:
    build = partial(_drawn_credits, number)
    return QueueCase(f"credits of 12 ends, number {number}", "", build, model, banks=True)


def _tile(number: int) -> TileSet:
    return TileSet.tile(*divmod(number, FITTED.cols))


def _transfer(
    here: int,
    there: int,
    flits: int,
    *,
    takes: tuple[str, ...] = (),
    slots: tuple[str, ...] = (),
    arrivals: tuple[str, ...] = (),
) -> Send:
    row, col = (np.array([place]) for place in divmod(there, FITTED.cols))
    return Send(_tile(here), row, col, flits, takes=takes, slots=slots, arrivals=arrivals)


def _works(count: int) -> _Built:
    return {}, [Work(Engine.CONTROL, _tile(0), 0) for _ in range(count)]


def _send(flits: int) -> _Built:
    send = _transfer(0, 3, flits, arrivals=("there",))
    return {"there": Token()}, [send, Work(Engine.VECTOR, _tile(3), 9, takes=("there",))]


def _sends(count: int) -> _Built:
    return {}, [_transfer(0, 1, 1) for _ in range(count)]


def _together(count: int) -> _Built:
    return {}, [Work(engine, _tile(0), 5) for engine in _ENGINES[:count]]


def _credits(count: int) -> _Built:
    names = tuple(f"free.{sender}" for sender in range(1, count + 1))
    free = Work(Engine.CONTROL, _tile(0), 5, gives=names)
    return dict.fromkeys(names, Token()), [
        free,
        *(_transfer(n, 0, 1, slots=(f"free.{n}",)) for n in range(1, count + 1)),
    ]


def _many_credits(count: int) -> _Built:
    names = [f"free.{n}" for n in range(count)]
    free = Work(Engine.CONTROL, _tile(0), 5, gives=tuple(names))
    return dict.fromkeys(names, Token()), [
        free,
        Work(Engine.CONTROL, _tile(0), _LONG),  # starts when the last credits have been given
        *(_transfer(1 + n % 3, 0, 1, slots=(name,)) for n, name in enumerate(names)),
    ]


def _crowd(count: int) -> _Built:
    names = [f"free.{n}" for n in range(2 * count)]
    operations: list[Operation] = []
    for giver in _CROWD:
        for given in (names[:count], names[count:]):
            operations.append(Work(Engine.CONTROL, _tile(giver), 2, gives=tuple(given)))
        operations.append(Work(Engine.CONTROL, _tile(giver), _LONG))
    operations += [
        _transfer(_CROWDED, giver, 1, slots=(name,)) for name in names for giver in _CROWD
    ]
    return dict.fromkeys(names, Token()), operations


def _drawn_credits(number: int) -> _Built:
    """Works of all engines that give credits, and the transfers for which they make room."""
    draw = np.random.default_rng((TileQueues.seed, number))
    tokens: dict[str, Token] = {}
    works: list[Operation] = []
    transfers: list[Operation] = []
    for step in range(12):
        giver, engine = int(draw.integers(0, FITTED.tiles)), int(draw.integers(0, 3))
        names = tuple(f"{step}.{n}" for n in range(int(draw.integers(1, 12))))
        tokens |= dict.fromkeys(names, Token())
        works.append(Work(_ENGINES[engine], _tile(giver), int(draw.integers(2, 20)), gives=names))
        transfers += [
            _transfer(
                (giver + int(draw.integers(1, FITTED.tiles))) % FITTED.tiles, giver,
                int(draw.integers(1, 4)), slots=(name,),
            )
            for name in names
        ]  # fmt: skip
    return tokens, works + transfers


def _walks(walkers: int, number: int) -> _Built:
    """Walkers that go from tile to tile, with work of some engine at each."""
    draw = np.random.default_rng((TileQueues.seed, walkers, number))
    places = draw.integers(0, FITTED.tiles, walkers).tolist()
    tokens: dict[str, Token] = {}
    operations: list[Operation] = []
    for step, walker in ((s, w) for s in range(12) for w in range(walkers)):
        here, there = places[walker], int(draw.integers(0, FITTED.tiles))
        came, done = f"{walker}.{step}.came", f"{walker}.{step}.done"
        tokens |= {came: Token(), done: Token()}
        takes = (f"{walker}.{step - 1}.done",) if step else ()
        operations += [
            _transfer(here, there, int(draw.integers(1, 20)), takes=takes, arrivals=(came,)),
            Work(
                _ENGINES[int(draw.integers(0, 3))],
                _tile(there),
                int(draw.integers(2, 30)),
                takes=(came,),
                gives=(done,),
            ),
        ]
        places[walker] = there
    return tokens, operations
