"""Attention as the kernels compute it, in whole numbers, and exactly."""

from itertools import product
from types import ModuleType
from typing import Any

import numpy as np

from tests.workloads.kernels.products import computed
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from tlm.engines.lt import run_lt
from tlm.program import Program
from tlm.program.arithmetic import Integers, vector
from workloads.kernels.attention import flash_attention, flat_attention
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.shape import AttentionShape
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.machine.place import chip_place

METHODS = ["network", "chain", "tree", "sequential"]
UNIT = 1 / 4096


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


def exact_softmax(scores: Integers, unit: float) -> np.ndarray:
    scaled = scores * unit
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def build(plan: FlatPlan | FlashPlan) -> Program:
    """The program of a plan."""
    if isinstance(plan, FlatPlan):
        return flat_attention.flat_attention(plan)
    return flash_attention.flash_attention(plan)


def run(plan: FlatPlan | FlashPlan, seed: int = 0, *, latent: bool = False) -> tuple[Integers, ...]:
    """Operands, the output and the sums of rows that the program computes.

    With ``latent`` values are the first elements of the keys.
    """
    kernel: ModuleType = flat_attention if isinstance(plan, FlatPlan) else flash_attention
    shape = plan.shape
    rng = np.random.default_rng(5)
    q = rng.integers(-90, 90, (shape.heads, shape.rows, shape.qk_depth))
    k = rng.integers(-90, 90, (shape.heads, shape.kv_length, shape.qk_depth))
    v = rng.integers(-128, 128, (shape.heads, shape.kv_length, shape.v_depth))
    v = k[:, :, : shape.v_depth] if latent else v
    memory = computed(build(plan), lambda at: kernel.put(plan, at, q, k, v), seed)
    return q, k, v, *kernel.result(plan, memory)


def attention(plan: FlatPlan | FlashPlan, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Attention as the program has it, and exactly."""
    q, k, v, output, totals = run(plan, seed)
    exact = exact_softmax(q @ k.swapaxes(1, 2), UNIT) @ v
    return output / 127 * 2**16 / totals[:, :, None], exact


def lt_errors(name: str, kernels: list[str], shapes: list[tuple[int, ...]], *, latent: bool) -> Any:
    """The closed forms' errors against `lt`, in per cent, with and without off-chip memory."""
    chip, found = load_chip(name).for_dtype("fp16"), []
    timing = noc_timing(chip)
    choices = Choices(latent=latent or None)
    for grid, kernel, memory in product([(4, 4), (3, 5), (8, 8)], kernels, [False, True]):
        tiles = chip_place(chip, grid, timing, 16, 16, memory=memory and name != "wse2")
        for sizes in shapes:
            plan = KERNELS[kernel].planned(sizes, tiles, choices)
            lt = run_lt(KERNELS[kernel].program(plan), timing, offchip=tiles.offchip).cycles
            found.append(100 * (KERNELS[kernel].closed_form(plan, timing) / lt - 1))
    return np.abs(found)
