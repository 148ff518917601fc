"""Collectives between a root and a group of tiles that lie anywhere, as software does them.

They are the messages and additions of kernels' reductions (`Reduction`) and broadcasts
(`Broadcast`), on one line of tiles: root and group in the order of the node numbers.

| kind | how |
|---|---|
| ``seq-multicast`` | a message of the root to each other tile, in their order |
| ``tree-multicast`` | a binomial tree of messages, far ones first |
| ``seq-reduce`` | a message of each other tile to the root, which adds one after the other |
| ``tree-reduce`` | a binomial tree of messages, whose tiles add what comes before they send |
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tlm.errors import choose
from tlm.interconnect.collectives import check_transfer
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import Launching, NocTiming
from tlm.program import Buffer, Engine, Operation, Program, Token, Work
from tlm.program.operations import Tile
from tlm.tiles.layout import SUM_BITS, WORD_BITS
from tlm.tiles.timing import QueueTiming
from workloads.kernels.parts.broadcast import Broadcast
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Path, sequential, tree
from workloads.kernels.parts.message_times import (
    sequential_gather,
    sequential_spread,
    tree_gather,
    tree_spread,
)

KINDS = ("seq-multicast", "tree-multicast", "seq-reduce", "tree-reduce")
_METHODS = {"seq": "sequential", "tree": "tree"}
BLOCK = "block"
"""The buffer of what is sent, or added up."""
_THERE = "there"
_PANEL_ROWS, _PANEL_WORDS = 8, 32
"""Rows and words of the smallest block to which a scratchpad adds no padding."""


@dataclass(frozen=True, slots=True)
class SoftwareCollective:
    """A block from a root to a group, or the sum of a group's blocks at a root.

    A root inside the group has its block already. One outside has a block of zeros, to which it
    adds what comes.

    Attributes:
        kind: One of `KINDS`.
        rows: Rows of the grid.
        cols: Columns.
        root: Row and column of the root.
        group: The other side.
        flits: Flits of the block, words of two 32-bit sums.

    Raises:
        InputError: for another kind, no flit or too many, or a group without another tile.
    """

    kind: str
    rows: int
    cols: int
    root: Tile
    group: TileSet
    flits: int

    def __post_init__(self) -> None:
        choose("collective", self.kind, KINDS)
        check_transfer(self.root, self.group, self.flits)

    @property
    def reduces(self) -> bool:
        """Whether blocks go inwards, and are added up."""
        return self.kind.endswith("reduce")

    @property
    def messages(self) -> int:
        """Messages that tiles send."""
        return len(self.order) - 1

    @property
    def flit_hops(self) -> int:
        """Flits times links crossed, over all messages."""
        stages = tree if self.method == "tree" else sequential
        messages = [each for stage in stages(self.messages + 1, self._place) for each in stage]
        sources, targets = np.array(messages).T
        return self.flits * int(self._line.hops(sources, targets).sum())

    @property
    def order(self) -> list[Tile]:
        """Root and group, a tile once, in the order of the node numbers."""
        return sorted({self.root, *self.group})

    @property
    def method(self) -> str:
        """The method of kernels."""
        return _METHODS[self.kind.split("-")[0]]

    def shortest(self) -> "SoftwareCollective":
        """The same between two tiles: one message, and one addition if it reduces."""
        return replace(self, rows=1, cols=2, root=(0, 0), group=TileSet(range(1), range(2)))

    def cropped(self) -> "SoftwareCollective":
        """The same on the smallest grid around root and group, which XY routes never leave."""
        tiles = self.order
        top, left = (min(tile[axis] for tile in tiles) for axis in (0, 1))
        bottom, right = (max(tile[axis] for tile in tiles) for axis in (0, 1))
        group = TileSet(_shifted(self.group.rows, top), _shifted(self.group.cols, left))
        root = self.root[0] - top, self.root[1] - left
        return replace(self, rows=bottom - top + 1, cols=right - left + 1, root=root, group=group)

    def reduction(self, combine_cycles: int) -> Reduction:
        """The messages and additions inwards, an addition of so many cycles."""
        return Reduction(
            self._line, self._place, self.method, "sum", BLOCK, _THERE, self.flits, combine_cycles
        )

    def broadcast(self) -> Broadcast:
        """The messages outwards."""
        return Broadcast(
            self._line, self._place, self.method, self.flits, BLOCK, BLOCK, (), _THERE,
            takes=(_THERE,), label=self.kind,
        )  # fmt: skip

    def program(self) -> Program:
        """What the tiles do; `tlm.tiles.programs.on_tiles` knows what an addition costs them."""
        rows = 1 if self.flits % _PANEL_WORDS else _PANEL_ROWS
        block = Buffer(rows, self.flits * WORD_BITS // SUM_BITS // rows, SUM_BITS)
        part = self.reduction(0) if self.reduces else self.broadcast()
        tokens, buffers = {_THERE: Token()} | part.tokens(), {BLOCK: block}
        if isinstance(part, Reduction):
            buffers |= part.buffers(block)
        return Program(self.rows, self.cols, tokens, self._operations, buffers)

    def last_arrival(
        self, combine_cycles: int, timing: NocTiming, credits: NocTiming, queues: QueueTiming
    ) -> int:
        """From the start of the first transfer to the arrival of the last, in closed form.

        Args:
            combine_cycles: Cycles of an addition.
            timing: Of the network.
            credits: Of the network of credits.
            queues: Costs of the tiles' sequencers and interfaces.
        """
        launching = Launching.of(timing, queues.launch_cycles)
        if self.reduces:
            gather = tree_gather if self.method == "tree" else sequential_gather
            return int(gather(self.reduction(combine_cycles), launching, credits)[0].max())
        spread = tree_spread if self.method == "tree" else sequential_spread
        return int(spread(self._line, self._place, self.flits, launching, queues).max())

    @property
    def _line(self) -> Path:
        return Path.of(self.order)

    @property
    def _place(self) -> int:
        return self.order.index(self.root)

    def _operations(self) -> Iterator[Operation]:
        """First who has a block says so, last who got one takes notice."""
        if self.reduces:
            yield from self._notices(self.order, gives=(_THERE,))
            yield from self.reduction(0).reduce()
            return
        yield from self._notices([self.root], gives=(_THERE,))
        yield from self.broadcast().operations()
        yield from self._notices((t for t in self.order if t != self.root), takes=(_THERE,))

    def _notices(
        self, tiles: Iterable[Tile], takes: tuple[str, ...] = (), gives: tuple[str, ...] = ()
    ) -> Iterator[Operation]:
        for tile in tiles:
            at = TileSet.tile(*tile)
            yield Work(Engine.CONTROL, at, 0, takes=takes, gives=gives, label=self.kind)


def _shifted(places: range, by: int) -> range:
    return range(places.start - by, places.stop - by, places.step)
