"""C[M,N] = A[M,K] B[K,N] with operands in off-chip memory, cut over a grid of tiles.

Rows and columns of the grid each cut M, N and K (`GridCut`). A tile computes its share of C in
passes over blocks that stay in its memory while panels of K stream past. Tiles that share a block
of A lie in one row, those that share a block of B in one column, and the partial blocks of a cut of
K lie side by side: so each is a line of the grid, and a stretch of K's tiles lies innermost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import law
from tlm.interconnect.packets import TileSet
from tlm.program import Roots
from tlm.program.data import Buffer
from workloads.kernels.gemm.plan import Shape
from workloads.kernels.parts.collectives import Reduction, reduce_messages
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.pieces import Pieces
from workloads.machine.moved import Moved
from workloads.machine.place import Place


class GridCut(NamedTuple):
    """Into how many parts rows and columns of tiles cut M, N and K.

    Along a column of tiles those of N lie outermost, then those of M, then those of K; along a row
    those of M, then those of N, then those of K.
    """

    m_rows: int
    n_rows: int
    k_rows: int
    m_cols: int
    n_cols: int
    k_cols: int

    @property
    def parts(self) -> tuple[int, int, int]:
        """Parts of M, N and K."""
        return self.m_rows * self.m_cols, self.n_rows * self.n_cols, self.k_rows * self.k_cols


class Sharing(NamedTuple):
    """Tiles on each of all lines that share blocks, and the tile of each line that sends them.

    Attributes:
        segment: Their places.
        roots: Shape (lines,): the place of the sender.
    """

    segment: range
    roots: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """A product, or ``groups`` of one shape one after the other, whose operands stream in.

    Attributes:
        place: The grid.
        shape: M, N and K of each product.
        groups: Products, each with an A and a B of its own.
        cut: What rows and columns of tiles cut.
        block: Rows, columns and depth (m, n, k) of a block product.
        method: How partial blocks of a cut of K come together (`parts.collectives`).
        weight_bits: Bits of an element of B in memory and network, if others than of A: tiles
            widen it, and no values are computed.
        resident: B lies in the tiles that use it, all of it, as weights do that are kept there.
    """

    place: Place
    shape: Shape
    groups: int
    cut: GridCut
    block: tuple[int, int, int]
    method: str
    weight_bits: float | None = None
    resident: bool = False

    @property
    def blocks(self) -> tuple[int, int, int]:
        """Blocks of a tile's share along M, N and K."""
        m, n, k = (
            blocks_along(size, parts, side)
            for size, parts, side in zip(self.shape, self.cut.parts, self.block, strict=True)
        )
        return m, n, k

    @property
    def passes(self) -> int:
        """Blocks of C that a tile computes, one after the other."""
        return self.groups * self.blocks[0] * self.blocks[1]

    @property
    def steps(self) -> int:
        """Block products of a pass."""
        return self.blocks[2]

    @property
    def step_cycles(self) -> int:
        """Cycles of a block product."""
        m, n, k = self.block
        return self.place.matrix.gemm_cycles(m, k, n)

    @property
    def flits(self) -> dict[str, int]:
        """Flits of a block of ``a``, ``b`` and ``c``."""
        (m, n, k), place = self.block, self.place
        return {
            "a": place.flits(k, m, place.element_bits),
            "b": int(place.flits(k, n, self.b_bits)),  # type: ignore[arg-type]  # may be a fraction
            "c": place.flits(m, n, place.sum_bits),
        }

    @property
    def b_bits(self) -> float:
        """Bits of an element of B in memory and network."""
        return self.place.element_bits if self.weight_bits is None else self.weight_bits

    @property
    def shared(self) -> dict[str, bool]:
        """Whether several tiles share a block of ``a`` and of ``b``; else each loads its own."""
        return {"a": self.cut.n_cols > 1, "b": self.cut.m_rows > 1 and not self.resident}

    @property
    def coming(self) -> str:
        """Names of the operands that come to the tiles."""
        return "a" if self.resident else "ab"

    @property
    def reduced(self) -> bool:
        """Whether K is cut."""
        return self.cut.parts[2] > 1

    @property
    def balance(self) -> float:
        """Cycles of a block product over the flits of its two blocks."""
        return self.step_cycles / sum(self.flits[name] for name in self.coming)

    @property
    def tile_macs(self) -> int:
        """Multiply-accumulates of a tile, those of padding among them."""
        m, n, k = self.block
        return m * n * k * self.passes * self.steps

    @property
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's block products."""
        return self.step_cycles * self.passes * self.steps

    @property
    def tile_vector_cycles(self) -> int:
        """There are no passes of the vector engine but those of reductions."""
        return 0

    @property
    def slots(self) -> int:
        """Buffers for blocks of A and of B on their way."""
        return min(2, self.passes * self.steps)

    @property
    def sums(self) -> int:
        """Buffers for blocks of C."""
        return min(2, self.passes)

    @property
    def pieces(self) -> Pieces:
        """All tiles share the product; a tile has its blocks of C one after the other."""
        (m, n, k), (high, wide, deep) = self.block, self.blocks
        blocks = {"m": high, "n": wide, "k": deep}
        return Pieces((self.place.rows, self.place.cols), {"m": m, "n": n, "k": k}, blocks)

    def sharing(self, name: str) -> tuple[Sharing, ...]:
        """Tiles that share blocks of ``a`` along rows, or of ``b`` along columns.

        Senders of A lie on the diagonal, those of B on one beside it: all channels of off-chip
        memory load, and as few tiles as can be send both.
        """
        return _sharing(self.place.rows, self.place.cols, self.cut)[name == "b"]

    def senders(self, name: str) -> Iterator[TileSet]:
        """Tiles that load blocks of ``a`` or ``b``, in sets."""
        rows, cols = self.place.rows, self.place.cols
        if not self.shared[name]:
            yield TileSet(range(rows), range(cols))
            return
        for each in self.sharing(name):
            for root in np.unique(each.roots).tolist():
                lines = np.flatnonzero(each.roots == root).tolist()
                for run in _runs(lines):
                    place = range(root, root + 1)
                    yield TileSet(run, place) if name == "a" else TileSet(place, run)

    def roots(self, name: str, sharing: Sharing) -> Roots:
        """Senders of a sharing."""
        return Roots(range(len(sharing.roots)), sharing.roots)

    def reductions(self, slot: int) -> list[Reduction]:
        """How partial blocks of C in a buffer come together, if K is cut."""
        cut, place = self.cut, self.place
        if cut.k_cols > 1:
            length = cut.k_cols
            own = np.arange(place.rows) * length // place.rows
            lines = [
                (Lines("row", run, length, first), root)
                for first in range(0, place.cols, length)
                for root in np.unique(own).tolist()
                for run in _runs(np.flatnonzero(own == root).tolist())
            ]
        else:
            length = cut.k_rows
            lines = [
                (Lines("column", range(place.cols), length, first), length // 2)
                for first in range(0, place.rows, length)
            ]
        m, n, _ = self.block
        name = f"c.{slot}"
        return [
            Reduction(
                each, root, self.method, name, name, f"c.there.{slot}", self.flits["c"],
                place.vector.pass_cycles(m, n),
            )
            for each, root in lines
        ]  # fmt: skip

    def results(self) -> list[TileSet]:
        """Tiles that have whole blocks of C, in the order in which they go to off-chip memory."""
        if self.reduced:
            return [
                each.lines.tiles(range(each.root, each.root + 1))
                for each in self.reductions(0)
                if isinstance(each.root, int)
            ]
        return [
            TileSet(range(row, row + 1), range(self.place.cols)) for row in range(self.place.rows)
        ]

    def parts_of(self, dimension: str) -> NDArray[np.int64]:
        """Shape (rows, columns): which part of ``m``, ``n`` or ``k`` each tile has."""
        cut = self.cut
        row, col = np.arange(self.place.rows)[:, None], np.arange(self.place.cols)
        of_row = {
            "n": row // (cut.m_rows * cut.k_rows),
            "m": row // cut.k_rows % cut.m_rows,
            "k": row % cut.k_rows,
        }
        of_col = {
            "m": col // (cut.n_cols * cut.k_cols),
            "n": col // cut.k_cols % cut.n_cols,
            "k": col % cut.k_cols,
        }
        counts = {"m": cut.m_cols, "n": cut.n_cols, "k": cut.k_cols}
        parts: NDArray[np.int64] = of_row[dimension] * counts[dimension] + of_col[dimension]
        return parts

    def panels(self) -> dict[str, Buffer]:
        """A block of ``a``, ``b`` and ``c`` as it lies in a tile."""
        (m, n, k), place = self.block, self.place
        b = Buffer(k, n, place.element_bits)
        if self.weight_bits is not None:
            b = Buffer(1, int(-(-k * n * self.weight_bits // 8)), 8)
        return {
            "a": Buffer(m, k, place.element_bits),
            "b": b,
            "c": Buffer(m, n, place.sum_bits),
            "b.wide": Buffer(k, n, place.element_bits),
        }

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes if operands come from off-chip memory."""
        return int(needed_bytes(self, self.cut, *self.block))

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        flits, (rows, cols) = self.flits, (self.place.rows, self.place.cols)
        cut, products = self.cut, self.passes * self.steps
        senders = {
            "a": rows * cut.m_cols * cut.k_cols,
            "b": cols * cut.n_rows * cut.k_rows,
        }
        loads = {name: senders[name] if self.shared[name] else rows * cols for name in "ab"}
        read = products * sum(loads[name] * flits[name] for name in self.coming)
        # What is shared comes to its sender, and then to all.
        taken = products * rows * cols * sum(flits[name] for name in "ab" if self.shared[name])
        stored = self.passes * rows * cols // cut.parts[2] * flits["c"]
        if self.reduced:
            added = reduce_messages(self.method, self.reductions(0)[0].lines.length)
            taken += rows * cols // cut.parts[2] * added * self.passes * flits["c"]
        unit = self.place.timing.flit_bytes
        return Moved(read * unit, stored * unit, (read + taken) * unit)


@lru_cache(1 << 12)
def _sharing(rows: int, cols: int, cut: GridCut) -> tuple[tuple[Sharing, ...], tuple[Sharing, ...]]:
    """`StreamPlan.sharing` of A and of B."""
    a = _shared(rows, (cut.m_cols, cut.n_cols, cut.k_cols))
    sends = np.zeros((rows, cols), dtype=bool)
    for each in a:
        sends[np.arange(rows), each.roots] = True
    b = _shared(cols, (cut.n_rows, cut.m_rows, cut.k_rows), cut.m_rows // 2)
    return a, tuple(_beside(each, sends) for each in b)


def _beside(sharing: Sharing, sends: NDArray[np.bool_]) -> Sharing:
    """The same along columns, its senders elsewhere where tiles send, shape (rows, columns)."""
    free = np.argsort(sends[list(sharing.segment)], axis=0, kind="stable")[0]
    busy = sends[sharing.roots, np.arange(len(sharing.roots))]
    return sharing._replace(roots=np.where(busy, np.array(sharing.segment)[free], sharing.roots))


def _shared(lines: int, counts: tuple[int, int, int], shift: int = 0) -> tuple[Sharing, ...]:
    """Sharings along some lines whose tiles are cut into outer, sharing and inner parts."""
    outer, length, inner = counts
    own = (np.arange(lines) * length // lines + shift) % length
    return tuple(
        Sharing(
            range(first * length * inner + k, (first + 1) * length * inner, inner),
            first * length * inner + own * inner + k,
        )
        for first in range(outer)
        for k in range(inner)
    )


class Room(NamedTuple):
    """What of a problem decides how much memory its blocks take.

    Attributes:
        m: Rows of C.
        n: Columns.
        k: Depth.
        groups: Products.
        element_bits: Bits of an element of A.
        b_bits: Of B in memory; it may be a fraction.
        sum_bits: Of C.
        partial: Partial blocks that are there at a time, where K is cut.
        resident: Whether B lies in the tiles.
        widened: Whether B has other bits in the tiles.
    """

    m: int
    n: int
    k: int
    groups: int
    element_bits: int
    b_bits: float
    sum_bits: int
    partial: int
    resident: bool
    widened: bool

    @classmethod
    def of(cls, problem: StreamPlan) -> "Room":
        """That of a problem."""
        place = problem.place
        # Of partial blocks the sum, or two that come, are there, too.
        partial = 2 if problem.method == "network" else 3
        return cls(
            *problem.shape, problem.groups, place.element_bits, problem.b_bits, place.sum_bits,
            partial, problem.resident, problem.weight_bits is not None,
        )  # fmt: skip


def needed_bytes(problem: StreamPlan, cut: GridCut, m: Any, n: Any, k: Any) -> Any:
    """`StreamPlan.tile_bytes` of a cut and a block of a problem, or of arrays of them."""
    return block_bytes(Room.of(problem), cut.parts, cut.m_rows, cut.n_cols, m, n, k)


@law
def blocks_along(size: Any, parts: Any, side: Any) -> Any:
    """Blocks of a side along a tile's share of a size that is cut into parts."""
    share = -(-size // parts)
    return -(-share // side)


@law
def block_bytes(of: Room, parts: Any, m_rows: Any, n_cols: Any, m: Any, n: Any, k: Any) -> Any:
    """`needed_bytes` by the parts of M, N and K, of them M's of rows and N's of columns."""
    high = blocks_along(of.m, parts[0], m)
    wide, deep = blocks_along(of.n, parts[1], n), blocks_along(of.k, parts[2], k)
    passes = of.groups * high * wide
    slots, sums = np.minimum(2, passes * deep), np.minimum(2, passes)
    a, b, c = (
        -(-m * k * of.element_bits // 8), -(-k * n * of.b_bits // 8), -(-m * n * of.sum_bits // 8),
    )  # fmt: skip
    copies = 1 + (parts[2] > 1) * (of.partial - 1)
    # What is shared comes to other buffers before it is in place.
    needed = slots * (1 + (n_cols > 1)) * a + sums * copies * c
    kept = of.groups * wide * deep if of.resident else slots * (1 + (m_rows > 1))
    own = -(-k * n * of.element_bits // 8) if of.widened else 0 * k
    return needed + kept * b + own


def _runs(numbers: list[int]) -> Iterator[range]:
    """Rising numbers as ranges without gaps."""
    first = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield range(numbers[first], numbers[at - 1] + 1)
            first = at
