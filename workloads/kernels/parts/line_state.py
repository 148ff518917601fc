"""Tiles on lines that multicast blocks and add partial sums: what they do, and what they have done.

What tiles do step by step is `line_steps`, their sums `line_sums`, packets between them
`line_packets`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import internal
from workloads.kernels.parts.line_packets import NOBODY, Packets, Table, Times

#: What a tile sends in a turn.
OWN, SUM, SENT = range(3)

# Rows of `Line.table`.
TURN = 0  # three of each step: what a tile sends next
START = 1  # when it begins to
LEFT = 2  # flits of a block of which packets have gone
DONE = 3  # how many products have ended
ENGINE = 4  # when the transfer engine is free
VECTOR = 5  # when the vector engine is
COUNTED = 6  # how many sums of its children a tile has added
PARENT, AWAY, BEHIND = 7, 8, 9  # see `LineTiles`
FIRST, END = 10, 11  # where a tile's children begin and end in the next row
CHILDREN = 12
ASKS = 13  # whether it has to be found out again when a tile sends what is next
ROWS = 14

# Of `Line.times`.
ENDS = 0  # when products have ended; by step
RID = 1  # when partial sums have left; by pass
GOT = 2  # when they have come to the tile's parent
ADDED = 3  # when they have been added there
TIMES = 4

# Rows of `Line.groups`.
FROM, TO = 0, 1  # tiles of a line
SOONEST = 2  # when the next event there is
PLACE = 3  # which it is: the way and the tile
CHANGED = 4  # whether that has to be found again
GROUP_ROWS = 5


class LineSteps(NamedTuple):
    """Steps in which roots multicast blocks, every tile sends itself one, and all multiply.

    Attributes:
        sent: Flits of a block that is multicast.
        own: Flits of a tile's own block.
        own_first: Whether a root sends its own block first.
        buffers: Blocks of either kind for which a tile has room.
        product: Cycles of a step's product.
        depth: Steps of a pass, behind which tiles send their partial sums; 0: they have none.
        summed: Flits of a partial sum.
        combine: Cycles to add one, and to put the whole sum in its place.
        in_network: Whether routers combine them.
    """

    sent: int
    own: int
    own_first: bool
    buffers: int
    product: int
    depth: int = 0
    summed: int = 0
    combine: int = 0
    in_network: bool = False


class LineTiles(NamedTuple):
    """Tiles on one line, or on several side by side, which are numbered line after line.

    Attributes:
        tree: Whose blocks come to a tile; shape (tiles,).
        ends: The first tile and the last one of a tree; shape (trees, 2).
        stride: From each to the next one.
        parent: To which tile a partial sum goes; -1: here it is whole; shape (tiles,).
        away: Links to that one; shape (tiles,).
        first: Where those of which a tile is the parent begin in ``children``; shape (tiles + 1,).
        children: In the order in which their sums are added.
        behind: Whose sum has to be added before there is a buffer for a tile's own; -1: no one's.
    """

    tree: NDArray[np.int64]
    ends: NDArray[np.int64]
    stride: int
    parent: NDArray[np.int64]
    away: NDArray[np.int64]
    first: NDArray[np.int64]
    children: NDArray[np.int64]
    behind: NDArray[np.int64]


def one_line(count: int) -> LineTiles:
    """A line of one tree whose tiles sum up nothing."""
    none, zeros = np.full(count, NOBODY), np.zeros(count + 1, dtype=np.int64)
    ends = np.array([[0, count - 1]])
    return LineTiles(zeros[:-1], ends, 1, none, zeros[:-1], zeros, none[:0], none)


class LineLaws(NamedTuple):
    """Cycles, and flits: see `NocTiming`."""

    launch: int
    following: int  # from a last flit's leaving a tile's buffer to the next one's being in front
    credit: int  # of a tile to itself
    buffer: int  # into which a whole operand of a reduction goes
    reduced: int  # a hop of it
    result: int  # from the meeting of a reduction's operands to its leaving the port
    operands: int  # of a packet of it
    tail: int  # of its last flits


class Line(NamedTuple):
    """Tiles, what they have done, and packets between them.

    Attributes:
        steps: What each step takes.
        laws: Of the network.
        packets: In it.
        table: Of tiles; shape (rows named above, tiles).
        times: By step or pass; shape (4, steps + 1, tiles).
        roots: From which tile a block is multicast to a tile; shape (steps, tiles).
        stride: From each tile of a tree to the next one.
        groups: Lines that meet in sums alone; shape (rows named above, lines).
    """

    steps: LineSteps
    laws: LineLaws
    packets: Packets
    table: Table
    times: Times
    roots: Table
    stride: int
    groups: Table


@internal
def kind_of(steps: LineSteps, turn: int) -> int:
    """What a tile sends in a turn."""
    kind = turn % 3
    return kind if steps.own_first else 2 - kind


@internal
def ended(line: Line, turn: int) -> int:
    """The last step of the pass whose partial sums are sent in a turn; -1: of none."""
    step, depth, count = turn // 3 - 2, line.steps.depth, len(line.roots)
    if depth == 0 or step < 0 or step >= count:
        return -1
    return step if (step + 1) % depth == 0 or step + 1 == count else -1


@internal
def look_at_all(line: Line) -> None:
    """Have the next event found again on all lines: their tiles may send sooner than was known."""
    for group in range(line.groups.shape[1]):
        line.groups[CHANGED, group] = 1
