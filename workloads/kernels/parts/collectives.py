"""Reductions and all-reductions along lines of tiles, in the network or in software.

A part lies in one buffer of every tile of a line. An all-reduction leaves the sum, or the maximum,
of a line's parts in the same buffer of all its tiles; a reduction leaves it at the root alone.

| method | parts come together | the result goes out |
|---|---|---|
| ``network`` | combined by the routers, into a second buffer of the root | multicast |
| ``chain`` | from both ends of the line inwards, every tile adding its part | multicast |
| ``k-tree`` | chains in groups, then a chain of the groups' roots, and so on | multicast |
| ``tree`` | a binomial tree of messages | the same tree backwards |
| ``sequential`` | a message from each tile to the root | a message to each |

In software a tile has two receive buffers, of a K-tree two for each level, and its vector engine
adds what has come.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from tlm.errors import choose
from tlm.program import Buffer, Engine, Operation, Token, Vector, Work
from workloads.kernels.parts.line import (
    Lines,
    Message,
    chain,
    k_tree,
    sequential,
    tree,
)

METHODS = ("network", "chain", "k-tree", "tree", "sequential")
SOFTWARE = METHODS[1:]


@dataclass(frozen=True, slots=True)
class Reduction:
    """A (all-)reduction along lines.

    Attributes:
        lines: The lines.
        root: Place of the root on every line, or one for each line.
        method: One of `METHODS`.
        name: First part of the names of its own buffers and tokens.
        value: Buffer of the parts.
        there: Token of the parts: taken from every tile that has one, given where the result is.
        flits: Length of a part.
        combine_cycles: Cycles of the vector engine to combine two parts.
        operation: ``sum`` or ``maximum``.
        groups: Of a ``k-tree``: groups of each level but the last.
        left: Token given where a part has left; ``NAME.left`` if none is named.

    Raises:
        InputError: for an unknown method.
    """

    lines: Lines
    root: int | tuple[int, ...]
    method: str
    name: str
    value: str
    there: str
    flits: int
    combine_cycles: int
    operation: Literal["sum", "maximum"] = "sum"
    groups: tuple[int, ...] = ()
    left: str = ""

    def __post_init__(self) -> None:
        choose("collective", self.method, METHODS)

    @property
    def result(self) -> str:
        """Buffer of the root in which a reduction leaves its result."""
        return f"{self.name}.total" if self.method == "network" else self.value

    def tokens(self) -> dict[str, Token]:
        """Tokens that the program needs for it, beside ``there``."""
        tokens = {f"{self.name}.total": Token(), self._left: Token()}
        if self.method == "network":
            return tokens | {f"{self.name}.free": Token(initial=1)}
        tokens[f"{self.name}.kept"] = Token()
        for index in range(self._receive_buffers):
            tokens[f"{self.name}.there.{index}"] = Token()
            tokens[f"{self.name}.free.{index}"] = Token(initial=1)
        return tokens

    def buffers(self, part: Buffer) -> dict[str, Buffer]:
        """Buffers that it needs beside that of the parts, which are like ``part``."""
        if self.method == "network":
            return {f"{self.name}.total": part}
        return {f"{self.name}.in.{index}": part for index in range(self._receive_buffers)}

    @property
    def _receive_buffers(self) -> int:
        return 2 * (len(self.groups) + 1)

    def reduce(self) -> Iterator[Operation]:
        """The result at the root, with token ``NAME.total``; ``left`` where a part has left.

        Who has used the result gives `released`.
        """
        if self.method == "network":
            yield self._reduce(gives=(self._left,))
            return
        for part, root in self._rooted():
            for parts in part._gather_stages(root):
                yield from part._gather(parts, gives=(self._left,))
            yield part._turn(range(root, root + 1), self.there, f"{self.name}.total")

    @property
    def released(self) -> str:
        """Token by which the root says that the result of `reduce` is no longer needed."""
        return f"{self.name}.free" if self.method == "network" else self._left

    @property
    def _left(self) -> str:
        return self.left or f"{self.name}.left"

    def all_reduce(self) -> Iterator[Operation]:
        """The result everywhere, where the parts were."""
        if self.method == "network":
            yield self._reduce(gives=())
            yield self._multicast(f"{self.name}.total", f"{self.name}.total", f"{self.name}.free")
            return
        for part, root in self._rooted():
            for parts in part._gather_stages(root):
                yield from part._gather(parts, gives=())
        if self.method in ("chain", "k-tree"):
            yield self._multicast(self.value, self.there)
            return
        for part, root in self._rooted():
            for stage in reversed(part._stages(root)):
                yield from part._spread([(there, here) for here, there in stage])

    def _rooted(self) -> Iterator[tuple["Reduction", int]]:
        """The same reduction on sets of lines that have their roots at one place."""
        if isinstance(self.root, int):
            yield self, self.root
            return
        for line, root in zip(self.lines.lines, self.root, strict=True):
            yield replace(self, lines=replace(self.lines, lines=range(line, line + 1))), root

    def _multicast(self, source: str, takes: str, *gives: str) -> Operation:
        return self.lines.multicast(
            self.root,
            self.flits,
            takes=(takes,),
            gives=gives,
            arrivals=(self.there,),
            source=source,
            target=self.value,
            label=self.name,
        )

    def _reduce(self, gives: tuple[str, ...]) -> Operation:
        return self.lines.reduce(
            self.root,
            self.flits,
            operation=self.operation,
            takes=(self.there,),
            slots=(f"{self.name}.free",),
            gives=gives,
            arrivals=(f"{self.name}.total",),
            source=self.value,
            target=f"{self.name}.total",
            label=self.name,
        )

    def _stages(self, root: int) -> list[list[Message]]:
        stages = {"chain": chain, "tree": tree, "sequential": sequential}[self.method]
        return stages(self.lines.length, root)

    def _gather_stages(self, root: int) -> Iterator[dict[int, list[Message]]]:
        """Messages of each stage by the receive buffer: a tile's are used in turn."""
        if self.method == "k-tree":
            levels = [level.stages for level in k_tree(self.lines.length, self.groups)]
        else:
            levels = [self._stages(root)]
        for level, stages in enumerate(levels):
            received: Counter[int] = Counter()
            for stage in stages:
                by_buffer: dict[int, list[Message]] = {}
                for message in stage:
                    index = 2 * level + received[message[1]] % 2
                    by_buffer.setdefault(index, []).append(message)
                    received[message[1]] += 1
                yield by_buffer

    def _gather(
        self, stage: dict[int, list[Message]], gives: tuple[str, ...]
    ) -> Iterator[Operation]:
        for index, messages in stage.items():
            come, free = f"{self.name}.there.{index}", f"{self.name}.free.{index}"
            received = f"{self.name}.in.{index}"
            yield from self._send(
                messages,
                takes=(self.there,),
                slots=(free,),
                gives=gives,
                arrivals=(come,),
                target=received,
            )
            operation: Literal["add", "maximum"] = "add" if self.operation == "sum" else "maximum"
            for places in self.lines.runs(sorted(target for _, target in messages)):
                yield Work(
                    Engine.VECTOR,
                    self.lines.tiles(places),
                    self.combine_cycles,
                    takes=(self.there, come),
                    gives=(self.there, free),
                    task=Vector(operation, self.value, self.value, b=received),
                    label=self.name,
                )

    def _spread(self, stage: list[Message]) -> Iterator[Operation]:
        """Senders keep what they send."""
        kept = f"{self.name}.kept"
        messages = sorted(stage)
        yield from self._send(
            messages, takes=(self.there,), gives=(kept,), arrivals=(self.there,), target=self.value
        )
        for places in self.lines.runs(source for source, _ in messages):
            yield self._turn(places, kept, self.there)

    def _send(self, messages: list[Message], **names: Any) -> Iterator[Operation]:
        targets = dict(sorted(messages))
        for sources in self.lines.runs(targets):
            yield self.lines.send(
                sources,
                [targets[source] for source in sources],
                self.flits,
                source=self.value,
                label=self.name,
                **names,
            )

    def _turn(self, places: range, taken: str, given: str) -> Operation:
        """A unit of one token becomes one of another."""
        tiles = self.lines.tiles(places)
        return Work(Engine.CONTROL, tiles, 0, takes=(taken,), gives=(given,), label=self.name)


def reduce_messages(method: str, length: int) -> int:
    """Blocks that the tiles of a line take in for a reduction by a method."""
    return 1 if method == "network" else length - 1


def all_reduce_messages(method: str, length: int) -> int:
    """Blocks that the tiles of a line take in for an all-reduction."""
    spread = length - 1 if method in ("tree", "sequential") else length
    return reduce_messages(method, length) + spread
