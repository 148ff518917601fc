"""A program's tokens as those of the tiles' sequencers.

A program says which unit of a token each taker gets (docs/programs.md); a sequencer only counts. So
units go by **lanes**: those that one engine takes at a tile of what one stream of operations gives
there in order: an engine, or the transfers from one tile. Off-chip memory answers in an order of
its own, so each token of loads and stores is a stream by itself. Both sides of a lane are in order,
so counting gives every taker its own unit. A lane is a token of the sequencer of the tile that
takes: of slots the source of the transfer, to which the unit comes as a credit. Lanes of the same
two sides, such as those of two buffers in turn, share a token where their units are taken in the
order in which they are given.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from cosim.tiles.descriptors import TOKENS
from tlm.errors import InputError
from tlm.program import OffChip, Program, Reduce
from tlm.program.operations import Engine, Tile
from tlm.program.steps import Step, TransferStep, Unit

#: Who gives: an engine of a tile, the transfers from a tile or of a reduction, or off-chip memory.
_Stream = tuple[object, ...]
_INITIAL: _Stream = ("initial",)
#: The steps that take and give a unit, by their places in the program.
_Places = tuple[int, int]
_AT_START = -1


class Lane(NamedTuple):
    """Units of ``token`` of tile ``at`` that engine ``taker`` of ``owner`` gets of ``stream``."""

    owner: Tile
    token: str
    at: Tile
    taker: Engine | None
    stream: _Stream


@dataclass(slots=True)
class TokenPlan:
    """Numbers of the sequencers' tokens.

    Attributes:
        takes: By step, the tokens that it takes at its own tile.
        local: By step, the tokens that it gives at its own tile when it ends.
        credits: By step, tile and token of units that it gives elsewhere when it ends.
        arrivals: By transfer step, the tokens that it gives where it arrives.
        initial: By tile, units of tokens that are there from the start.
    """

    takes: list[frozenset[int]] = field(default_factory=list)
    local: list[frozenset[int]] = field(default_factory=list)
    credits: list[list[tuple[Tile, int]]] = field(default_factory=list)
    arrivals: list[tuple[int, ...]] = field(default_factory=list)
    initial: dict[Tile, dict[int, int]] = field(default_factory=dict)


def plan_tokens(program: Program, steps: Sequence[Step]) -> TokenPlan:
    """Give every lane of a program a number.

    Args:
        program: The program.
        steps: Its steps (`tlm.program.steps.expand`).

    Raises:
        InputError: if a tile has more lanes than its sequencer has tokens, or a step takes two
            units of one lane.
    """
    streams = _streams(steps)
    initial = {name: token.initial for name, token in program.tokens.items()}
    takers: dict[Unit, list[Lane]] = defaultdict(list)
    takes: list[list[Lane]] = []
    first_stream: dict[tuple[Tile, Unit, Engine], _Stream] = {}
    for step in steps:
        for unit in _taken(step):
            if unit.number >= initial[unit.token]:
                key = (step.tile, unit._replace(number=0), step.engine)
                first_stream.setdefault(key, streams[unit])
    places: dict[Lane, list[_Places]] = defaultdict(list)
    given_by = {unit: place for place, step in enumerate(steps) for unit in _given(step)}
    for place, step in enumerate(steps):
        own = []
        for unit in _taken(step):
            stream = streams.get(unit)
            if unit.number < initial[unit.token]:
                # They come before all others, so they may go by the lane of some of these.
                key = (step.tile, unit._replace(number=0), step.engine)
                stream = first_stream.get(key, _INITIAL)
            assert stream is not None
            lane = Lane(step.tile, unit.token, unit.tile, step.engine, stream)
            there = unit.number < initial[unit.token]
            places[lane].append((place, _AT_START if there else given_by[unit]))
            takers[unit].append(lane)
            own.append(lane)
        takes.append(own)
    classes = _Classes(places)
    arriving = [_arriving(step, takers, classes) for step in steps]
    for own in takes:
        for lane in own:
            classes.find(lane)
    numbers = classes.numbered()
    plan = TokenPlan()
    for step, own, groups in zip(steps, takes, arriving, strict=True):
        taken = frozenset(numbers[lane] for lane in own)
        if len(taken) < len(own):
            raise InputError(
                f"operation {step.number}: takes two units of one token at tile {step.tile}; "
                "allowed: one"
            )
        given = [lane for unit in step.gives for lane in takers.get(unit, ())]
        local = [numbers[lane] for lane in given if lane.owner == step.tile]
        if len(set(local)) < len(local):
            raise InputError(
                f"operation {step.number}: gives two units of one token at tile {step.tile}; "
                "allowed: one"
            )
        plan.takes.append(taken)
        plan.local.append(frozenset(local))
        plan.credits.append(
            [(lane.owner, numbers[lane]) for lane in given if lane.owner != step.tile]
        )
        plan.arrivals.append(tuple(numbers[group[0]] for group in groups))
    for lane, units in places.items():
        count = sum(given == _AT_START for _, given in units)
        if count:
            of_tile = plan.initial.setdefault(lane.owner, {})
            of_tile[numbers[lane]] = of_tile.get(numbers[lane], 0) + count
    return plan


def _taken(step: Step) -> Iterable[Unit]:
    return [*step.takes, *(step.slots if isinstance(step, TransferStep) else ())]


def _given(step: Step) -> Iterable[Unit]:
    arrivals = step.arrivals.values() if isinstance(step, TransferStep) else ()
    return [*step.gives, *(unit for units in arrivals for unit in units)]


def _streams(steps: Sequence[Step]) -> dict[Unit, _Stream]:
    """The stream that gives each unit."""
    streams: dict[Unit, _Stream] = {}
    for step in steps:
        for unit in step.gives:
            streams[unit] = ("engine", step.tile, step.engine)
        if isinstance(step, TransferStep):
            source: _Stream = ("tile", step.tile)
            if isinstance(step.operation, Reduce):
                source = ("reduction", step.members.rows, step.members.cols)
            offchip = isinstance(step.operation, OffChip)
            for units in step.arrivals.values():
                for unit in units:
                    streams[unit] = ("memory", step.tile, unit.token) if offchip else source
    return streams


def _arriving(
    step: Step, takers: Mapping[Unit, list[Lane]], classes: "_Classes"
) -> list[list[Lane]]:
    """Groups of lanes, one a token that a transfer gives, which must have one number."""
    if not isinstance(step, TransferStep):
        return []
    units = [(tile, unit) for tile, there in step.arrivals.items() for unit in there]
    groups = []
    for token in dict.fromkeys(unit.token for _, unit in units if unit in takers):
        group = []
        for tile, unit in units:
            if unit.token == token:
                # A unit that nobody takes comes all the same: its number is nobody else's there.
                nobody = Lane(tile, token, tile, None, ("tile", step.tile))
                group += takers.get(unit, [nobody])
                if any(lane.owner != tile for lane in takers.get(unit, ())):
                    raise InputError(
                        f"operation {step.number}: token '{token}' comes with a transfer and is a "
                        "slot of another tile's; allowed: slots that an engine gives"
                    )
        for lane in group:
            classes.unite(group[0], lane)
        groups.append(group)
    return groups


class _Classes:
    """Lanes, and which of them must have one number.

    Args:
        places: Of each lane, when its units are taken and given, in the order of the takes.
    """

    def __init__(self, places: Mapping[Lane, list[_Places]]) -> None:
        self._places = places
        self._parents: dict[Lane, Lane] = {}
        self._used: dict[tuple[Tile, int], list[Lane]] = defaultdict(list)

    def find(self, lane: Lane) -> Lane:
        """The lane that stands for its class."""
        parent = self._parents.setdefault(lane, lane)
        while parent != self._parents[parent]:
            parent = self._parents[parent]
        self._parents[lane] = parent
        return parent

    def unite(self, one: Lane, other: Lane) -> None:
        """Two lanes have one number."""
        self._parents[self.find(other)] = self.find(one)

    def numbered(self) -> dict[Lane, int]:
        """The least number for each class that it may have at all of its tiles.

        Raises:
            InputError: if a tile needs more numbers than there are.
        """
        members: dict[Lane, list[Lane]] = defaultdict(list)
        for lane in self._parents:
            members[self.find(lane)].append(lane)
        numbers: dict[Lane, int] = {}
        for lanes in members.values():
            fitting = (n for n in range(TOKENS) if all(self._fits(lane, n) for lane in lanes))
            number = next(fitting, None)
            if number is None:
                raise InputError(
                    f"tile {min(lane.owner for lane in lanes)}: the program needs more than "
                    f"{TOKENS} tokens; allowed: as many streams of units that wait for each other"
                )
            for lane in lanes:
                self._used[lane.owner, number].append(lane)
            numbers |= dict.fromkeys(lanes, number)
        return numbers

    def _fits(self, lane: Lane, number: int) -> bool:
        """Whether a lane may have a number at its tile: alone, or in order with those that do."""
        others = self._used.get((lane.owner, number), [])
        if not others:
            return True
        sides = {(other.at, other.taker, other.stream) for other in (lane, *others)}
        if len(sides) > 1 or lane.taker is None:
            return False
        units = sorted(unit for other in (lane, *others) for unit in self._places[other])
        return all(
            before[0] < after[0] and (before[1] < after[1] or before[1] == after[1] == _AT_START)
            for before, after in pairwise(units)
        )
