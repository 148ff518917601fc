"""A vector times a matrix over a grid of tiles: partial sums and an all-reduction of columns.

c[N] = a[K] B[K,N]. Tile (r, c) has part r of a, which all tiles of its row have too, and the block
(r, c) of B. It multiplies them; the partial sums of a column are then added, and every tile of the
column gets the sum, so that the next product can begin (WaferLLM, section 6.2).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from tlm.compute.base import ceil_div, check_shape
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Engine, Gemm, Operation, Program, Token, Work
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from tlm.program.relays import relays_as_messages
from workloads.kernels.gemm.plan import Shape
from workloads.kernels.parts.blocks import cut
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.pieces import Pieces
from workloads.kernels.parts.relayed import RelayedParts, best_parts
from workloads.kernels.parts.streams import StreamedSum, Tree, streamed_all_reduce_cycles
from workloads.machine.place import Place

P = TypeVar("P", bound="GemvPlan")


@dataclass(frozen=True, slots=True)
class GemvPlan:
    """A product of a vector and a matrix on ``rows`` x ``cols`` tiles, padded to whole blocks.

    Attributes:
        rows: Rows of tiles.
        cols: Columns of tiles.
        block: Depth and columns (k, n) of a tile's block of B.
        product_cycles: Cycles of a tile's product.
        c_flits: Flits of a tile's part of c.
        combine_cycles: Cycles of the vector engine to add two parts of c.
        element_bits: Bits of an element of a and B.
        sum_bits: Bits of an element of c.
        parts: Parts into which c is cut (ring), each of a whole number of flits; else 1. Where it
            has fewer flits than a column has tiles each is a part, and not all tiles pass one on.
        method: How partial sums come together (`workloads.kernels.parts.collectives`); not of a
            ring.
        root: The tile of a column where they do.
        groups: Of a K-tree: groups of each level but the last.
        tree: How chains lie that stream the sums; None: they go by messages or in the network.
        relay_cycles: Of a stream, from a word's arrival at a tile to its leaving.
        all_reduce_cycles: Fixed, of a streamed all-reduction.
        relayed: Parts in which the project's own tiles stream; None: word by word.
        at_root: Whether the sums stay at the roots.
    """

    rows: int
    cols: int
    block: tuple[int, int]
    product_cycles: int
    c_flits: int
    combine_cycles: int
    element_bits: int = 8
    sum_bits: int = 32
    parts: int = 1
    method: str = "chain"
    root: int = 0
    groups: tuple[int, ...] = ()
    tree: Tree | None = None
    relay_cycles: int = 1
    all_reduce_cycles: int = 0
    relayed: RelayedParts | None = None
    at_root: bool = False

    @property
    def balance(self) -> float:
        """Cycles of a product over the flits of its result."""
        return self.product_cycles / (self.c_flits * self.parts)

    @property
    def tile_macs(self) -> int:
        """Multiply-accumulates of a tile, those of padding among them."""
        return self.block[0] * self.block[1]

    @property
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's product."""
        return self.product_cycles

    @property
    def tile_vector_cycles(self) -> int:
        """Additions of the all-reduction are not counted here."""
        return 0

    @property
    def pieces(self) -> Pieces:
        """Each tile has a block of the matrix; the tiles of a column add up."""
        k, n = self.block
        return Pieces((self.rows, 1), {"n": n, "k": k}, {"n": 1, "k": 1})

    @property
    def reduction(self) -> Reduction | StreamedSum:
        """The (all-)reduction of the partial sums."""
        if self.tree is not None:
            return StreamedSum(
                self.columns,
                self.tree,
                "sum",
                "c",
                "c.there",
                self.c_flits,
                self.relay_cycles,
                self.all_reduce_cycles,
                self.relayed,
            )
        return Reduction(
            self.columns,
            self.root,
            self.method,
            "sum",
            "c",
            "c.there",
            self.c_flits,
            self.combine_cycles,
            groups=self.groups,
        )

    @property
    def columns(self) -> Lines:
        """The columns of tiles, along which sums are made."""
        return Lines("column", range(self.cols), self.rows)

    @property
    def everywhere(self) -> TileSet:
        """All tiles."""
        return TileSet(range(self.rows), range(self.cols))

    @property
    def buffers(self) -> dict[str, Buffer]:
        """Buffers ``a``, ``b`` and ``c``."""
        k, n = self.block
        return {
            "a": Buffer(1, k, self.element_bits),
            "b": Buffer(k, n, self.element_bits),
            "c": Buffer(1, n, self.sum_bits),
        }

    def product(self, gives: tuple[str, ...]) -> Work:
        """The product of every tile."""
        return Work(
            Engine.MATRIX,
            self.everywhere,
            self.product_cycles,
            gives=gives,
            task=Gemm("a", "b", "c"),
            label="C",
        )


def plan_gemv(shape: Shape, place: Place, *, ring: bool = False) -> GemvPlan:
    """Plan a product ``shape`` = (1, N, K); for a ``ring`` c is cut into parts.

    Raises:
        InputError: for an M other than 1, or a size below 1.
    """
    size_m, size_n, size_k = shape
    if size_m != 1:
        raise InputError(f"--shape: found M = {size_m}; a vector times a matrix has M = 1")
    check_shape(1, size_k, size_n)
    parts, part = 1, ceil_div(size_n, place.cols)
    if ring:
        flit = max(1, 8 * place.timing.flit_bytes // place.sum_bits)
        parts = min(place.rows, ceil_div(part, flit))
        part = ceil_div(ceil_div(part, parts), flit) * flit
    k, n = ceil_div(size_k, place.rows), part * parts
    return GemvPlan(
        rows=place.rows,
        cols=place.cols,
        block=(k, n),
        product_cycles=place.matrix.gemm_cycles(1, k, n),
        c_flits=place.flits(1, part, place.sum_bits),
        combine_cycles=place.vector.pass_cycles(1, part),
        element_bits=place.element_bits,
        sum_bits=place.sum_bits,
        parts=parts,
    )


def streamed(plan: GemvPlan, place: Place, tree: Tree) -> GemvPlan:
    """The same with sums that are streamed.

    Raises:
        InputError: if the chip's cores do not stream sums.
    """
    if not place.streams:
        raise InputError(
            "--collective: found a stream; this chip's profile has no software.stage_cycles: "
            "choose k-tree, chain, tree or sequential"
        )
    relay, fixed = place.relay_cycles, place.software.all_reduce_cycles
    if relay is None:
        return in_parts(replace(plan, tree=tree, root=tree.root), place)
    return replace(plan, tree=tree, root=tree.root, relay_cycles=relay, all_reduce_cycles=fixed)


def in_parts(plan: P, place: Place) -> P:
    """The same with streams that go part by part; a row of sums is padded to whole words."""
    if plan.buffers["c"].rows == 1:
        k, n = plan.block
        plan = replace(plan, block=(k, place.word_columns(n)))

    def cycles(parts: RelayedParts) -> int:
        reduction = replace(plan, relayed=parts).reduction
        assert isinstance(reduction, StreamedSum)
        return streamed_all_reduce_cycles(reduction, place.timing)

    return replace(plan, relayed=best_parts(place, plan.buffers["c"].shape, cycles))


def gemv(plan: GemvPlan) -> Program:
    """Program of the product; every tile of column j then has part j of it in buffer ``c``.

    Of sums that stay at the roots these alone have it.
    """
    reduction = plan.reduction

    def operations() -> Iterator[Operation]:
        yield plan.product(("c.there",))
        yield from reduction.reduce() if plan.at_root else reduction.all_reduce()

    tokens = {"c.there": Token()} | reduction.tokens()
    buffers = plan.buffers | reduction.buffers(plan.buffers["c"])
    program = Program(plan.rows, plan.cols, tokens, operations, buffers)
    if plan.relayed is None:
        return program
    return relays_as_messages(program, plan.relayed.size, plan.relayed.add_cycles)


def put(plan: GemvPlan, memory: TileBlocks, a: Integers, b: Integers) -> None:
    """Put a (1, K) and B (K, N) where the program expects them."""
    memory["a"][:] = cut(a, 1, plan.rows).swapaxes(0, 1)
    memory["b"][:] = cut(b, plan.rows, plan.cols, width=plan.block[1])
