"""A block of each line's root to all tiles of its line, by the network or in software.

| method | how |
|---|---|
| ``network`` | one multicast, copied by the routers |
| ``tree`` | messages: in each round every tile that has the block sends it to another |
| ``sequential`` | messages of the root to each tile |

A tile that sends a block on keeps its buffer until it has: only then is the block there for others.
A root whose source is the target has the block already, and it is there when all messages have
left; any other sends itself a copy.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tlm.program import Engine, Operation, Token, Work
from workloads.kernels.parts.line import Lines, tree

#: Ways of reductions that send what they bring together out again by messages.
BY_MESSAGES = ("tree", "sequential")


@dataclass(frozen=True, slots=True)
class Broadcast:
    """What is sent along lines, and how.

    Attributes:
        lines: The lines.
        root: Place of the root on every line, or one for each line.
        method: ``network``, ``tree`` or ``sequential``; other ways of reductions (chains) leave
            it to the network.
        flits: Length of the block.
        source: Buffer of the root.
        target: Buffer of every tile of the line, the root among them.
        free: Tokens that say that the target can be written to.
        there: Token given where the block is there.
        takes: Tokens of the root that say that the source is there.
        gives: Tokens given at the root when it has left.
        label: What it is for.
    """

    lines: Lines
    root: int | tuple[int, ...]
    method: str
    flits: int
    source: str
    target: str
    free: tuple[str, ...]
    there: str
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    label: str = ""

    def tokens(self) -> dict[str, Token]:
        """Tokens that the program needs for it, beside those that it names."""
        return {self._kept: Token()} if self.method in BY_MESSAGES else {}

    @property
    def _has_own(self) -> bool:
        """Whether the root's block lies where it is wanted; a tree takes ``there`` of it."""
        return self.source == self.target

    @property
    def _kept(self) -> str:
        return f"{self.there}.kept"

    def operations(self) -> Iterator[Operation]:
        """The block on its way."""
        if self.method not in BY_MESSAGES:
            yield self.lines.multicast(
                self.root,
                self.flits,
                takes=self.takes,
                gives=self.gives,
                slots=self.free,
                arrivals=(self.there,),
                source=self.source,
                target=self.target,
                label=self.label,
            )
            return
        for part, root in self._rooted():
            yield from part._in_turn(root) if self.method == "sequential" else part._by_tree(root)

    def _rooted(self) -> Iterator[tuple["Broadcast", int]]:
        """The same on sets of lines that have their roots at one place."""
        if isinstance(self.root, int):
            yield self, self.root
            return
        for line, root in zip(self.lines.lines, self.root, strict=True):
            yield replace(self, lines=replace(self.lines, lines=range(line, line + 1))), root

    def _in_turn(self, root: int) -> Iterator[Operation]:
        places = [place for place in range(self.lines.length) if place != root]
        own = range(root, root + 1)
        places += [] if self._has_own else [root]
        last = (*self.gives, self._kept) if self._has_own else self.gives
        for number, place in enumerate(places):
            yield self._send(
                own,
                [place],
                takes=self.takes if number == 0 else (),
                gives=last if number == len(places) - 1 else (),
                source=self.source,
            )
        if self._has_own:
            yield self._keep(own, self._kept if places else self.takes[0])

    def _by_tree(self, root: int) -> Iterator[Operation]:
        """The root's own copy first: like all others it sends that on."""
        own = range(root, root + 1)
        if not self._has_own:
            yield self._send(own, [root], takes=self.takes, gives=self.gives, source=self.source)
        for stage in reversed(tree(self.lines.length, root)):
            yield from self._stage(dict(sorted((there, here) for here, there in stage)))

    def _stage(self, targets: dict[int, int]) -> Iterator[Operation]:
        senders = list(self.lines.runs(targets))
        for sources in senders:
            to = [targets[source] for source in sources]
            yield self._send(
                sources, to, takes=(self.there,), gives=(self._kept,), source=self.target
            )
        for places in senders:
            yield self._keep(places, self._kept)

    def _keep(self, places: range, sent: str) -> Work:
        """The block is there for who has sent it on."""
        tiles, takes, gives = self.lines.tiles(places), (sent,), (self.there,)
        return Work(Engine.CONTROL, tiles, 0, takes=takes, gives=gives, label=self.label)

    def _send(self, sources: range, to: list[int], **names: Any) -> Operation:
        return self.lines.send(
            sources,
            to,
            self.flits,
            slots=self.free,
            arrivals=(self.there,),
            target=self.target,
            label=self.label,
            **names,
        )
