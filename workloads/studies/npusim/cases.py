"""What the study runs: a prompt on one group of cores, products packet by packet."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from tlm.chips import find_tiles
from tlm.chips.parts import PacketRouter, chip_router
from tlm.compute.base import ceil_div
from tlm.interconnect.lines import MeshPort
from tlm.on_routers import run_on_routers
from workloads.kernels.catalogue import KERNELS, Choices, Sizes
from workloads.kernels.gemm.partition_gemm import partition_gemm
from workloads.kernels.gemm.partition_plan import PartitionPlan
from workloads.kernels.gemm.partition_search import find_partition
from workloads.machine.order import footprint
from workloads.machine.place import Place, chip_place
from workloads.models import find_model
from workloads.models.operators import Attention, Product, Rows, projections, prompt_attention
from workloads.studies.campaign import Figures

CHIP = "npusim-large"
_BF16_BITS = 16


class PromptCase(NamedTuple):
    """All layers of a model on the new tokens of one prompt.

    Attributes:
        model: Its name.
        tokens: Of the prompt.
        cores: Of the tensor-parallel group.
        partition: Of its products.
        placement: Of the group.
        link_bytes_per_cycle: Of the network.
        channel: What an output is locked for: ``none``, ``output`` or ``receiver``.
        scattered: Sums are left where they come together, as the next product takes them.
        chip_cols: Columns of the square chip.
        outputs: Tokens that come out after it, one by one.
        layers: How many of the model's are run; 0: all.
        more: Other fields of the chip.
    """

    model: str
    tokens: int
    cores: int
    partition: str
    placement: str
    link_bytes_per_cycle: int
    channel: str = "output"
    scattered: bool = False
    chip_cols: int = 8
    outputs: int = 0
    layers: int = 0
    more: tuple[str, ...] = ()


class _Ran(NamedTuple):
    """A product: cycles and waits, bytes that a core sends, those of its memory, parts of rows."""

    cycles: int
    waited: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"
    sent_bytes: int
    tile_bytes: int
    parts: int


def prompt_figures(case: PromptCase) -> Figures:
    """Products at level `at`, one after the other; all else in closed form on the same tiles.

    The others need no network: each core works on its own rows or heads. A token that comes out
    sees the prompt.
    """
    model = find_model(case.model)
    place, _ = _place(case)
    waited = np.zeros((place.rows, place.cols, len(MeshPort)), dtype=np.int64)
    cycles = others = sent = needed = parts = 0
    for operator, times in _work(case):
        if not isinstance(operator, Product):
            others += times * _alone(place, operator)
            continue
        ran = _product((operator.rows, operator.columns, operator.depth), case)
        cycles, waited = cycles + times * ran.cycles, waited + times * ran.waited
        sent += times * ran.sent_bytes
        needed, parts = max(needed, ran.tile_bytes), max(parts, ran.parts)
    row, col, port = np.unravel_index(waited.argmax(), waited.shape)
    layers = case.layers or model.layers
    seconds = layers / find_tiles(CHIP).clock_hz
    return {
        "seconds": seconds * (cycles + others),
        "products_s": seconds * cycles,
        "sent_bytes": float(layers * sent),
        "tile_bytes": float(needed),
        "parts": float(parts),
        "waited_pct": 100 * float(waited.max()) / cycles,
        "all_waited_pct": 100 * float(waited.sum()) / cycles,
        "waited_row": float(row),
        "waited_col": float(col),
        "waited_port": float(port),
    }


def product_plan(shape: Sizes, case: PromptCase) -> PartitionPlan:
    """How a group cuts a product."""
    size_m, size_n, size_k = shape
    place, _ = _place(case)
    return find_partition((size_m, size_n, size_k), place, case.partition, scattered=case.scattered)


@cache
def _product(shape: Sizes, case: PromptCase) -> _Ran:
    """A product, in as few equal parts of its rows, one after the other, as fit a tile's memory."""
    place, packet_flits = _place(case)
    for parts in range(1, shape[0] + 1):
        plan = product_plan((ceil_div(shape[0], parts), *shape[1:]), case)
        program = partition_gemm(plan)
        if program.tile_bytes <= place.tile_bytes:
            break
    outcome, mesh = run_on_routers(program, PacketRouter(place.timing, packet_flits))
    waited = parts * mesh.waited_cycles.astype(np.int64)
    cycles, sent = parts * outcome.cycles, parts * plan.sent_bytes
    return _Ran(cycles, waited, sent, program.tile_bytes, parts)


def _work(case: PromptCase) -> Iterator[tuple[Attention | Product | Rows, int]]:
    """What a layer does, and how often: for the prompt, and for each token after it."""
    model = find_model(case.model)
    for new, context, times in ((case.tokens, 0, 1), (1, case.tokens, case.outputs)):
        if times:
            yield from ((each, times) for each in prompt_attention(model, new, context, None))
            yield from ((each, times) for each in projections(model, new, experts=None))


@cache
def _place(case: PromptCase) -> tuple[Place, int]:
    return group_place(
        case.cores,
        case.placement,
        case.link_bytes_per_cycle,
        chip_cols=case.chip_cols,
        more=(f"noc.channel={case.channel}", *case.more),
    )


def group_place(
    cores: int, placement: str, link_bytes: int, *, chip_cols: int, more: Sequence[str]
) -> tuple[Place, int]:
    """A group, on the chip with the most memory of the configuration space, and a packet.

    Args:
        cores: Of the group.
        placement: Its.
        link_bytes: That a link carries in a cycle.
        chip_cols: Columns of the square chip.
        more: Other fields of the chip.
    """
    changes = (
        f"noc.flit_bytes={link_bytes}",
        f"grid.rows={chip_cols}",
        f"grid.cols={chip_cols}",
        "tile.sram_kib=131072",
        *more,
    )
    chip = find_tiles(CHIP, changes).for_dtype("bf16")
    timing, packet_flits = chip_router(chip)
    tiles = footprint(placement, cores, chip.grid.cols)
    place = chip_place(chip, tiles, timing, _BF16_BITS, _BF16_BITS)
    return replace(place, placement=placement), packet_flits


def _alone(place: Place, operator: Attention | Rows) -> int:
    """Cycles of work that cores do side by side."""
    free = replace(place, timing=replace(place.timing, channel="none"))
    choices = Choices()
    if isinstance(operator, Attention):
        name, choices = "flash-attention-2", Choices(causal=operator.causal)
        sizes: Sizes = (
            operator.sequences, operator.q_heads, operator.kv_heads, operator.new, operator.keys,
            operator.qk_depth, operator.v_depth,
        )  # fmt: skip
    else:
        name, sizes = operator.kind, (operator.rows, operator.columns)
        if name == "rotary":
            sizes = (*sizes, operator.head_dim)
    plan = KERNELS[name].planned(sizes, free, choices)
    return KERNELS[name].closed_form(plan, free.timing)
