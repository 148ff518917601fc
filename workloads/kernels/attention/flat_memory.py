"""How much of a tile's memory FlatAttention takes, for numbers, arrays and compiled code."""

from typing import Any, NamedTuple

import numpy as np

from tlm.compiled import law
from workloads.kernels.attention.plan import held_blocks


@law
def alike_streams(streams: Any, q_blocks: Any) -> Any:
    """`FlatPlan.alike` of so many streams, of heads cut into so many blocks of rows."""
    part = 1 + (q_blocks % streams == 0) * (streams - 1)
    return part + (streams % q_blocks == 0) * (q_blocks - part)


@law
def brought_blocks(q_blocks: Any, kv_blocks: Any, streams: Any, states: Any) -> Any:
    """`FlatPlan.loads` of so many streams, some of which are under way at a time."""
    alike = alike_streams(streams, q_blocks)
    turns = streams // alike * -(-alike // states)
    return (streams + (alike > 1) * (turns - streams)) * kv_blocks


class Sizes(NamedTuple):
    """What of a problem decides how much memory a cut takes.

    Attributes:
        rows: Rows of tiles of the grid.
        cols: Columns.
        heads: Problems of their own.
        keys: Of a head.
        qk_depth: Columns of Q and K.
        v_depth: Columns of V.
        sum_bits: Bits of a sum.
        element_bits: Bits of an operand.
        shared: Whether values are taken from the blocks of keys.
        in_place: Whether exponentials take the room of scores.
        causal: Whether there is a causal mask.
        offchip: Whether blocks lie in off-chip memory.
        turns: Blocks under way, if there are as many.
        states: Streams under way, at most.
        parts: Of what comes together, blocks that are there beside a tile's own.
    """

    rows: int
    cols: int
    heads: int
    keys: int
    qk_depth: int
    v_depth: int
    sum_bits: int
    element_bits: int
    shared: bool
    in_place: bool
    causal: bool
    offchip: bool
    turns: int
    states: int
    parts: int


@law
def cut_bytes(
    sizes: Sizes, rows: Any, keys: Any, q_blocks: Any, kv_blocks: Any, down: Any, across: Any
) -> Any:
    """`FlatPlan.tile_bytes` of cuts of the rows and keys of a head, in groups of rows and columns.

    All of them are numbers, or arrays that broadcast.
    """
    sums, elements = sizes.sum_bits, sizes.element_bits
    streams = -(-sizes.heads * q_blocks // ((sizes.rows // down) * (sizes.cols // across)))
    depth = np.minimum(sizes.turns, streams * kv_blocks)
    column, output = -(-rows * sums // 8), -(-rows * sizes.v_depth * sums // 8)
    q, kv = -(-rows * sizes.qk_depth * elements // 8), -(-sizes.qk_depth * keys * elements // 8)
    if not sizes.shared:
        kv = kv + -(-keys * sizes.v_depth * elements // 8)
    scores = -(-rows * keys * sums // 8)
    powers = 0 * scores if sizes.in_place else -(-rows * keys * elements // 8)
    padded = (keys * kv_blocks * across > sizes.keys) | sizes.causal
    mask = padded * scores
    # What comes together: the sum, or two parts that come.
    states = np.minimum(np.minimum(depth, sizes.states), streams)
    loads = brought_blocks(q_blocks, kv_blocks, streams, states)
    kept = held_blocks(sizes.shared, depth, loads) * kv
    items = states * (q + output + 2 * column) + depth * (scores + powers) + kept
    copied = column if sizes.offchip else 0 * column
    if sizes.causal:
        mask = mask + (down * across > 1) * column
    return (4 + 2 * sizes.parts) * column + sizes.parts * output + mask + items + copied
