"""The kernel of the paper's authors for a latent cache, for ``wafertlm kernel FILE:flat_mla``."""

from dataclasses import replace
from typing import Any

from workloads.kernels.attention.shape import AttentionShape
from workloads.kernels.kernel import LATENT, Choices, Kernel, Sizes, without_memory
from workloads.machine.place import Place
from workloads.studies.flatattention.chunked import chunked_attention
from workloads.studies.flatattention.chunked_cycles import chunked_cycles
from workloads.studies.flatattention.chunked_plan import ChunkedPlan, plan_chunked


def _shape(sizes: Sizes) -> AttentionShape:
    batch, q_heads, kv_heads, rows, keys, qk_depth, v_depth = sizes
    return AttentionShape(batch, q_heads, kv_heads, rows, keys, qk_depth, v_depth, latent=True)


def _macs(sizes: Sizes, _: Choices) -> int:
    return _shape(sizes).macs


def _plan(sizes: Sizes, place: Place, _: Choices) -> ChunkedPlan:
    return plan_chunked(_shape(sizes), place)


def _without_memory(plan: Any) -> Any:
    return replace(plan, flat=without_memory(plan.flat))


flat_mla = Kernel(
    LATENT, _macs, _plan, chunked_attention, chunked_cycles, without_memory=_without_memory
)
