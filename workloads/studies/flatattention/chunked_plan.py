"""How attention of a latent cache is cut where its depth comes in chunks (`chunked`)."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from tlm.errors import InputError
from tlm.program import Buffer
from workloads.kernels.attention.core import in_place, softmax_cycles
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.shape import AttentionShape, Block, offchip
from workloads.kernels.parts.collectives import all_reduce_messages, reduce_messages
from workloads.kernels.parts.passes import Factor
from workloads.kernels.parts.pieces import Pieces
from workloads.machine.moved import Moved
from workloads.machine.place import Place

#: Rows and keys of a tile's slice, section V-B, and the depth of a chunk at most, as in SoftHier.
SLICE = 128
#: Chunks of Q, K and V that a tile has room for, as in SoftHier.
HELD = 2
#: Streams that take turns, and buffers for chunks of the output.
TURNS = 2


class Phase(NamedTuple):
    """The product of a chunk.

    Attributes:
        stream: The request's number in its group.
        values: Whether the product is with V, or else of Q and K.
        chunk: Number of the chunk among those of its product.
        width: Its depth.
        slot: Of Q and K, or of V: the buffer.
        out: Of a product with V: the buffer of the chunk of the output.
        last: Whether it is the last chunk of its product.
    """

    stream: int
    values: bool
    chunk: int
    width: int
    slot: int
    out: int
    last: bool

    @property
    def state(self) -> int:
        """Which of the streams under way it is of."""
        return self.stream % TURNS


@dataclass(frozen=True)  # without slots: phases are kept
class ChunkedPlan:
    """Attention of a latent cache on groups of tiles.

    Attributes:
        flat: The same with a depth of one chunk: its groups, slices and streams are those of all.
        shape: The problem.
        held: Chunks of Q, K and V that a tile has room for.
    """

    flat: FlatPlan
    shape: AttentionShape
    held: int = HELD

    @property
    def place(self) -> Place:
        """The grid."""
        return self.flat.place

    @property
    def chunk(self) -> int:
        """Depth of a chunk."""
        return self.flat.shape.v_depth

    @property
    def widths(self) -> tuple[list[int], list[int]]:
        """Depths of chunks: of the scores, whose last may be less, and of the output."""
        values = [self.chunk] * (self.shape.v_depth // self.chunk)
        whole, rest = divmod(self.shape.qk_depth - self.shape.v_depth, self.chunk)
        return values + [self.chunk] * whole + [rest] * (rest > 0), values

    @cached_property
    def phases(self) -> list[Phase]:
        """Products of a tile in their order: scores of two streams, then their outputs."""
        found, count = [], [0, 0]
        for first in range(0, self.flat.streams, TURNS):
            for values in (False, True):
                for stream in range(first, min(first + TURNS, self.flat.streams)):
                    widths = self.widths[values]
                    for chunk, width in enumerate(widths):
                        slot, out = (count[values] % most for most in (self.held, TURNS))
                        last = chunk == len(widths) - 1
                        found.append(Phase(stream, values, chunk, width, slot, out, last))
                        count[values] += 1
        return found

    def of_width(self, width: int) -> FlatPlan:
        """`flat` with chunks of a depth."""
        flat = self.flat
        shape = replace(flat.shape, qk_depth=width)
        return replace(flat, shape=shape, block=replace(flat.block, qk_depth=width))

    def product_cycles(self, phase: Phase) -> int:
        """Cycles of a product."""
        rows, keys = self.flat.block.rows, self.flat.block.keys
        if phase.values:
            after = self.place.after_vector or self.place.matrix
            return after.gemm_cycles(rows, keys, phase.width)
        return self.place.matrix.gemm_cycles(rows, phase.width, keys)

    @property
    def pieces(self) -> Pieces:
        """Blocks of the tiles of a group."""
        return self.flat.pieces

    @property
    def balance(self) -> float:
        """Cycles of a chunk's product over the flits that a tile sends for it."""
        return self.product_cycles(self.phases[0]) / (self.flat.flits("k") + self.flat.flits("q"))

    @property
    def tile_macs(self) -> int:
        """Multiply-accumulates of a tile."""
        area = self.flat.block.rows * self.flat.block.keys
        return self.flat.streams * area * (self.shape.qk_depth + self.shape.v_depth)

    @property
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's products."""
        return sum(map(self.product_cycles, self.phases))

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of the passes that every tile makes, reductions and results apart."""
        return self.flat.streams * softmax_cycles(self.place, self.flat.block, first=True)

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves, as it has whole flits."""
        (rows, cols), streams, groups = self.flat.group, self.flat.streams, self.flat.groups
        q, k = (sum(self.of_width(width).flits(n) for width in self.widths[0]) for n in ("q", "k"))
        v, output = (len(self.widths[1]) * self.flat.flits(name) for name in ("v", "o"))
        total, unit = self.flat.flits("total"), self.place.timing.flit_bytes
        unit *= len(groups.down) * len(groups.across) * streams
        read = unit * (rows * q + cols * (k + v))
        # All tiles take in what is multicast; of rows what comes together.
        taken = rows * cols * (q + k + v) + rows * reduce_messages("network", cols) * output
        taken += 2 * rows * all_reduce_messages("network", cols) * total
        return Moved(read, unit * rows * (output + total), read + unit * taken)


def plan_chunked(
    shape: AttentionShape, place: Place, side: int = SLICE, held: int = HELD
) -> ChunkedPlan:
    """Plan attention by section V-B: slices first, then groups that a request's scores fill.

    Args:
        shape: The problem, on a latent cache.
        place: The grid.
        side: Rows and keys of a slice, and the depth of a chunk, at most.
        held: Chunks of Q, K and V that a tile has room for.

    Raises:
        InputError: if keys or values are no whole number of slices, or a tile has no room.
    """
    if not shape.latent or shape.causal:
        raise InputError("flat-mla: found no latent cache, or a causal mask; allowed: --latent")
    down, across = _most(place.rows, shape.rows, side), _most(place.cols, shape.kv_length, side)
    keys, parts = shape.kv_length // across, -(-shape.v_depth // side)
    if shape.kv_length % across or shape.v_depth % parts:
        raise InputError(
            f"--shape: found {shape.kv_length} keys on {across} columns, values of "
            f"{shape.v_depth} elements in {parts} chunks; allowed: a whole number of each"
        )
    chunk, q_blocks = shape.v_depth // parts, max(1, -(-shape.rows // (down * side)))
    rows = -(-shape.rows // (down * q_blocks))
    of_chunk = replace(shape, qk_depth=chunk, v_depth=chunk, latent=False)
    exponent = Factor.of_exponent(shape.qk_depth**-0.5 / 16)
    flat = FlatPlan(
        place, of_chunk, Block(rows, keys, chunk, chunk), q_blocks, 1, (down, across), "network",
        "async", exponent,
    )  # fmt: skip
    plan = ChunkedPlan(flat, shape, held)
    needed = sum(each.size_bytes for each in buffers_of(plan).values() if _in_tile(each))
    if needed > place.tile_bytes:
        raise InputError(
            f"--shape: a slice takes {needed} bytes of a tile's memory; allowed: {place.tile_bytes}"
        )
    return plan


def _most(tiles: int, length: int, side: int) -> int:
    """The most tiles of a line, a whole number of times, that a length fills with slices."""
    return max(n for n in range(1, tiles + 1) if tiles % n == 0 and (n == 1 or n * side <= length))


def _in_tile(buffer: Buffer) -> bool:
    return not buffer.offchip and buffer.within is None


def buffers_of(plan: ChunkedPlan) -> dict[str, Buffer]:
    """Those of its program: chunks, what becomes of them, and all of these off the chip."""
    place, block, chunk = plan.place, plan.flat.block, plan.chunk
    bits, sums = place.element_bits, place.sum_bits
    column, scores = Buffer(block.rows, 1, sums), Buffer(block.rows, block.keys, sums)
    output = Buffer(block.rows, chunk, sums)
    buffers = dict.fromkeys(("top", "sum", "negative", "total.to"), column)
    buffers |= {"top.total": column, "sum.total": column, "o.sum.total": output}

    def operands(width: int) -> dict[str, Buffer]:
        q, k = Buffer(block.rows, width, bits), Buffer(width, block.keys, bits)
        return {"q": q, "k": k, "v": Buffer(block.keys, width, bits)}

    for slot in range(plan.held):
        for name, buffer in operands(chunk).items():
            buffers[f"{name}.{slot}"] = buffer
            narrow = operands(plan.widths[0][-1])[name]
            buffers[f"{name}.{slot}.narrow"] = replace(narrow, within=f"{name}.{slot}")
    for state in range(TURNS):
        powers = replace(scores, bits=bits)
        powers = replace(scores, within=f"s.{state}") if in_place(place) else powers
        buffers |= {f"s.{state}": scores, f"p.{state}": powers, f"total.{state}": column}
        buffers[f"o.{state}"] = output
    for phase in plan.phases:
        number, of = f"{phase.stream}.{phase.chunk}", operands(phase.width)
        for name in ("v",) if phase.values else ("q", "k"):
            buffers[f"{name}.own.{number}"] = replace(of[name], offchip=True)
        if phase.values:
            buffers[f"o.out.{number}"] = replace(output, offchip=True)
    return buffers | offchip("total.out", column, plan.flat.streams)
