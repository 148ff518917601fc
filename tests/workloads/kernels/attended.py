"""Attention as the kernels compute it, in whole numbers, without padding."""

import numpy as np

from tlm.program.arithmetic import Integers, vector
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.shape import AttentionShape


def attended(plan: FlatPlan | FlashPlan, q: Integers, k: Integers, v: Integers) -> Integers:
    """Output and, in a last column, sums of a head's rows: blocks of keys are cut off, not filled.

    Keys that a row does not see are none. Every column of a group has its own slice of a block, and
    all share maxima and sums.
    """
    cols = plan.group[1] if isinstance(plan, FlatPlan) else 1
    step, wide, factor = plan.block.keys, plan.place.sum_bits, plan.exponent
    scale = {"multiplier": factor.multiplier, "shift": factor.shift}
    visible = np.arange(len(k)) < seen(plan.shape)[:, None]
    top = np.full((len(q), 1), -(1 << 62))
    total = np.zeros_like(top)
    outputs = np.zeros((cols, len(q), v.shape[1]), dtype=np.int64)
    for start in range(0, len(k), step * cols):
        here = slice(start, start + step * cols)
        scores = np.where(visible[:, here], q @ k[here].T, -(1 << 40))
        before, top = top, np.maximum(top, scores.max(axis=1, keepdims=True))
        if start:
            share = vector("scale", before - top, None, wide, **scale)
            share = vector("exp", share, None, wide) >> 2
            total = vector("multiply", total, share, wide, shift=14)
            outputs = (outputs * share) >> 14
        powers = vector("exp", vector("scale", scores - top, None, wide, **scale), None, wide)
        total = total + powers.sum(axis=1, keepdims=True)
        parts = vector("quantize", powers, None, 8, multiplier=127, shift=16)
        for col in range(cols):
            own = slice(col * step, (col + 1) * step)
            outputs[col] += parts[:, own] @ v[here][own]
    return np.hstack([outputs.sum(axis=0), total])


def seen(shape: AttentionShape) -> Integers:
    """Keys that each row sees, rows head after head."""
    rows = np.full(shape.q_length, shape.kv_length)
    if shape.causal:
        rows = np.arange(shape.q_length) + shape.kv_length - shape.q_length + 1
    return np.tile(rows, shape.q_heads // shape.kv_heads)
