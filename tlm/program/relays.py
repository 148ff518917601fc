"""Relays as messages: tiles that cannot add words on their way receive a part, add, and send it on.

A block is cut into parts. The outermost tiles send theirs inwards one after the other. Each tile on
the way adds its own part to the one that comes, where that lies, and sends the sum on while it adds
the next one. Three receive buffers a side are enough for this pace: one is written, one is added
to, one is sent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program.data import Buffer, Vector
from tlm.program.operations import Engine, Indices, Operation, Relay, Send, Work
from tlm.program.program import Program
from tlm.program.tokens import Token

RECEIVE_BUFFERS = 3
_SIDES = ("rising", "falling")


def relays_as_messages(program: Program, part: int, add_cycles: int) -> Program:
    """The same program with a message for each part of a relay's block at each of its tiles.

    Args:
        program: Its relays' blocks have one shape.
        part: Rows of a part; of a block of one row, its elements.
        add_cycles: Of the vector engine, to add two parts.

    Raises:
        InputError: for a part below 1, relays without blocks, or blocks of several shapes.
    """
    relays = [each for each in program.built() if isinstance(each, Relay)]
    if not relays:
        return program
    parts = _Parts(program.buffers, relays, part)

    def operations() -> Iterator[Operation]:
        before = 0  # parts of earlier relays: the next one begins with the buffer behind theirs
        for operation in program.built():
            if isinstance(operation, Relay):
                for place, lines in operation.roots_by_place():
                    for some in _even(lines):
                        chains = _Chains(operation, some, place, parts, before, add_cycles)
                        yield from chains.operations()
                before += len(parts.sizes)
            else:
                yield operation

    tokens, buffers = {**program.tokens, **_tokens()}, {**program.buffers, **parts.buffers}
    return Program(program.rows, program.cols, tokens, operations, buffers)


def _tokens() -> dict[str, Token]:
    """Of the receive buffers, and of sums that may be sent on."""
    tokens = {f"relay.{side}.added": Token() for side in _SIDES}
    for side in _SIDES:
        for index in range(RECEIVE_BUFFERS):
            tokens[f"relay.{side}.{index}.there"] = Token()
            tokens[f"relay.{side}.{index}.free"] = Token(initial=1)
    return tokens


class _Parts:
    """Buffers of the parts of blocks, and of those that come.

    Attributes:
        buffers: Those beside the program's own.
        sizes: Share of a block that each part is.
    """

    def __init__(self, buffers: Mapping[str, Buffer], relays: list[Relay], part: int) -> None:
        names = {name for relay in relays for name in (relay.source, relay.target)}
        if None in names:
            raise InputError("relay: found no block; allowed as messages: a source and a target")
        blocks = {name: buffers[name] for name in sorted(name for name in names if name)}
        shapes = {(block.shape, block.bits) for block in blocks.values()}
        if len(shapes) > 1:
            found = ", ".join(sorted(f"{rows}x{cols}" for (rows, cols), _ in shapes))
            raise InputError(f"relays: found blocks of {found}; allowed as messages: of one shape")
        (((rows, columns), bits),) = shapes
        length, across = (columns, 1) if rows == 1 else (rows, columns)
        if part < 1:
            raise InputError(f"part: found {part}; allowed: 1 or more")
        cuts = [(first, min(part, length - first)) for first in range(0, length, part)]
        self.sizes = [size / length for _, size in cuts]
        self._whole = len(cuts) == 1
        self._cuts = cuts
        self.buffers: dict[str, Buffer] = {}

        def cut(name: str, first: int, size: int) -> Buffer:
            shape = (1, size) if rows == 1 else (size, columns)
            return Buffer(*shape, bits, within=name, offset=first * across)

        if not self._whole:
            for name in blocks:
                for number, (first, size) in enumerate(cuts):
                    self.buffers[self.of(name, number)] = cut(name, first, size)
        shape = (1, cuts[0][1]) if rows == 1 else (cuts[0][1], columns)
        for side in _SIDES:
            for index in range(RECEIVE_BUFFERS):
                received = f"relay.{side}.{index}"
                self.buffers[received] = Buffer(*shape, bits)
                if cuts[-1][1] < cuts[0][1]:
                    self.buffers[f"{received}.rest"] = cut(received, 0, cuts[-1][1])

    def of(self, name: str, number: int) -> str:
        """A part of a block."""
        return name if self._whole else f"{name}.part.{number}"

    def received(self, name: str, number: int) -> str:
        """Where a part lies that came into a receive buffer."""
        return name if self._cuts[number][1] == self._cuts[0][1] else f"{name}.rest"


@dataclass(frozen=True, slots=True)
class _Chains:
    """A relay on some lines, whose roots lie at one place."""

    relay: Relay
    lines: range
    root: int
    parts: _Parts
    before: int
    add_cycles: int

    def operations(self) -> Iterator[Operation]:
        """Part by part, from the outermost tiles inwards."""
        members = self.relay.segment
        middle = members.index(self.root)
        # The root adds what the shorter side brings first.
        pairs = zip(_SIDES, (members[: middle + 1], members[middle:][::-1]), strict=True)
        sides = dict(sorted((pair for pair in pairs if len(pair[1]) > 1), key=_length))
        if not sides:
            yield self._alone()
            return
        count = len(self.parts.sizes)
        for number in range(count):
            for side, chain in sides.items():
                yield from self._to_root(number, side, chain)
            yield from self._at_root(number, list(sides))

    def _to_root(self, number: int, side: str, chain: range) -> Iterator[Operation]:
        first, last = number == 0, number + 1 == len(self.parts.sizes)
        buffer, added = self._buffer(side, number), f"relay.{side}.added"
        received = self.parts.received(buffer, number)
        there, free = f"{buffer}.there", f"{buffer}.free"
        flits = self._flits(number)
        for index, (place, inner) in enumerate(zip(chain, chain[1:], strict=False)):
            outermost = index == 0
            takes, gives = self.relay.takes if first else (), self.relay.gives if last else ()
            if not outermost:
                own = self._own(number)
                yield self._add(place, own, received, received, (*takes, there), (added,))
                takes, gives = (added,), (*gives, free)
            yield Send(
                self._tiles(place),
                *self._numbers(inner),
                flits,
                takes=takes,
                slots=(free,),
                gives=gives,
                arrivals=(there,),
                source=self._own(number) if outermost else received,
                target=received,
                label=self.relay.label,
            )

    def _at_root(self, number: int, sides: list[str]) -> Iterator[Operation]:
        relay, last = self.relay, number + 1 == len(self.parts.sizes)
        target = self.parts.of(relay.target or "", number)
        own = self._own(number)
        for side in sides:
            takes = (*relay.takes, *relay.slots) if number == 0 and side == sides[0] else ()
            gives = (*relay.gives, *relay.arrivals) if last and side == sides[-1] else ()
            buffer = self._buffer(side, number)
            received = self.parts.received(buffer, number)
            takes, gives = (*takes, f"{buffer}.there"), (*gives, f"{buffer}.free")
            yield self._add(self.root, own, received, target, takes, gives)
            own = target

    def _alone(self) -> Work:
        """A root without other members: its own block is the sum."""
        relay = self.relay
        source, target = relay.source or "", relay.target or ""
        copied = source != target
        return Work(
            Engine.VECTOR if copied else Engine.CONTROL,
            self._tiles(self.root),
            self.add_cycles * len(self.parts.sizes) if copied else 0,
            takes=(*relay.takes, *relay.slots),
            gives=(*relay.gives, *relay.arrivals),
            task=Vector("scale", source, target) if copied else None,
            label=relay.label,
        )

    def _add(
        self, place: int, own: str, other: str, out: str, takes: tuple[str, ...],
        gives: tuple[str, ...],
    ) -> Work:  # fmt: skip
        return Work(
            Engine.VECTOR,
            self._tiles(place),
            self.add_cycles,
            takes=takes,
            gives=gives,
            task=Vector("add", own, out, b=other),
            label=self.relay.label,
        )

    def _own(self, number: int) -> str:
        return self.parts.of(self.relay.source or "", number)

    def _buffer(self, side: str, number: int) -> str:
        return f"relay.{side}.{(self.before + number) % RECEIVE_BUFFERS}"

    def _flits(self, number: int) -> int:
        return max(1, round(self.relay.flits * self.parts.sizes[number]))

    def _tiles(self, place: int) -> TileSet:
        return TileSet(*self.relay.on_grid(self.lines, range(place, place + 1)))

    def _numbers(self, place: int) -> tuple[Indices, Indices]:
        rows, cols = self.relay.on_grid(np.array(self.lines), np.array([place]))
        return rows, cols


def _length(side: tuple[str, range]) -> int:
    return len(side[1])


def _even(lines: Indices) -> Iterator[range]:
    """Lines as one evenly spaced range, or each by itself."""
    steps = np.unique(np.diff(lines))
    if len(steps) < 2:
        step = int(steps[0]) if len(steps) else 1
        yield range(int(lines[0]), int(lines[-1]) + 1, step)
    else:
        yield from (range(line, line + 1) for line in lines.tolist())
