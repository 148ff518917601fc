"""Attention by name."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from workloads.kernels.attention import flash_attention, flat_attention
from workloads.kernels.attention.flash_closed_form import flash_attention_cycles
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flash_search import plan_alone, plan_decode, plan_flash
from workloads.kernels.attention.flat_closed_form import flat_attention_cycles
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.flat_search import plan_flats
from workloads.kernels.attention.shape import AttentionShape
from workloads.kernels.kernel import (
    ATTENTION,
    LATENT,
    Choices,
    Kernel,
    Sizes,
    by_network,
    without_memory,
)
from workloads.kernels.parts.found import Found
from workloads.machine.place import Place


def _attention_macs(sizes: Sizes, choices: Choices) -> int:
    return _attention(sizes, choices).macs


def _attention(sizes: Sizes, choices: Choices) -> AttentionShape:
    batch, q_heads, kv_heads, rows, keys, qk_depth, v_depth = sizes
    flags = bool(choices.latent), bool(choices.causal)
    return AttentionShape(batch, q_heads, kv_heads, rows, keys, qk_depth, v_depth, *flags)


def find_flats(
    shapes: Sequence[AttentionShape], place: Place, choices: Choices
) -> list[Found[FlatPlan]]:
    """Plans of FlatAttention, with their cycles, of problems that differ in their keys alone."""
    method, schedule = place.method(choices.collective), choices.schedule or "async"
    operands = choices.collective or "network"
    heads = choices.heads_per_group
    return plan_flats(shapes, place, method, schedule, operands, choices.group, heads)


def _find_flat(problems: Sequence[Sizes], place: Place, choices: Choices) -> list[Found[FlatPlan]]:
    return find_flats([_attention(sizes, choices) for sizes in problems], place, choices)


def _apart(
    planned: Callable[[AttentionShape, Place, Choices], FlashPlan],
    *choices: str,
    latent: bool = False,
) -> Kernel:
    """Attention on tiles, or runs of them, that know nothing of each other."""

    def plan(sizes: Sizes, place: Place, choices: Choices) -> FlashPlan:
        choices = replace(choices, latent=latent or choices.latent)
        return planned(_attention(sizes, choices), place, choices)

    return Kernel(
        LATENT if latent else ATTENTION,
        _attention_macs,
        plan,
        flash_attention.flash_attention,
        flash_attention_cycles,
        choices,
        without_memory,
    )


def _flash(turns: int, *choices: str, latent: bool = False) -> Kernel:
    return _apart(lambda shape, place, _: plan_flash(shape, place, turns), *choices, latent=latent)


KERNELS = {
    "flash-attention-2": _flash(1, "latent", "causal"),
    "flash-attention-3": _flash(2, "latent", "causal"),
    "flash-mla": _flash(1, "latent", latent=True),
    "tile-attention": _apart(lambda shape, place, _: plan_alone(shape, place), "latent", "causal"),
    "decode-attention": _apart(
        lambda shape, place, choices: plan_decode(shape, place, place.method(choices.collective)),
        "collective",
        "latent",
    ),
    "flat-attention": Kernel(
        ATTENTION,
        _attention_macs,
        lambda sizes, place, choices: _find_flat([sizes], place, choices)[0].plan,
        flat_attention.flat_attention,
        flat_attention_cycles,
        ("collective", "schedule", "group", "heads_per_group", "latent", "causal"),
        without_memory,
        _find_flat,
        collective=by_network,
    ),
}
