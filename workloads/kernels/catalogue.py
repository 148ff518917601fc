"""The kernels by name."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeGuard

from tlm.errors import InputError, choose
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from workloads.kernels.attention import flash_attention, flat_attention
from workloads.kernels.attention.flash_closed_form import flash_attention_cycles
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flash_search import plan_alone, plan_decode, plan_flash
from workloads.kernels.attention.flat_closed_form import flat_attention_cycles
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.flat_search import plan_flats
from workloads.kernels.attention.shape import AttentionShape
from workloads.kernels.gemm.allgather_gemm import allgather_gemm
from workloads.kernels.gemm.cannon import cannon
from workloads.kernels.gemm.closed_form import (
    allgather_cycles,
    compute_shift_cycles,
    mesh_gemm_t_cycles,
    summa_cycles,
)
from workloads.kernels.gemm.mesh_gemm import mesh_gemm
from workloads.kernels.gemm.mesh_gemm_t import mesh_gemm_t
from workloads.kernels.gemm.partition_closed_form import partition_cycles
from workloads.kernels.gemm.partition_gemm import partition_gemm
from workloads.kernels.gemm.partition_plan import PartitionPlan
from workloads.kernels.gemm.partition_search import find_partition
from workloads.kernels.gemm.plan import GemmPlan, plan_gemm, plan_square_gemm, shifted, summed
from workloads.kernels.gemm.ring import Rings
from workloads.kernels.gemm.stream_closed_form import stream_gemm_cycles
from workloads.kernels.gemm.stream_gemm import stream_gemm
from workloads.kernels.gemm.stream_plan import StreamPlan
from workloads.kernels.gemm.stream_search import plan_stream
from workloads.kernels.gemm.summa import summa
from workloads.kernels.gemv import mesh_gemv, pipeline_gemv, ring_gemv
from workloads.kernels.gemv.closed_form import gemv_cycles, ring_gemv_cycles
from workloads.kernels.gemv.plan import gemv, plan_gemv
from workloads.kernels.gemv.row_sum import RowSumPlan, plan_row_sum
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.found import Found
from workloads.kernels.parts.pieces import Pieces
from workloads.kernels.parts.relayed import RelayedParts, best_parts
from workloads.kernels.vector import recipes, softmax
from workloads.kernels.vector.closed_form import rows_cycles, softmax_cycles
from workloads.kernels.vector.exchange import (
    ExchangePlan,
    exchange,
    exchange_cycles,
    plan_halves,
    plan_rows_to_columns,
)
from workloads.kernels.vector.recipe import Recipe
from workloads.kernels.vector.relayout import plan_relayout, relayout, relayout_cycles
from workloads.kernels.vector.rows import rows
from workloads.kernels.vector.rows_plan import RowsPlan
from workloads.kernels.vector.rows_search import plan_all_rows
from workloads.machine.moved import Moved
from workloads.machine.place import Place

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """What the sizes of a problem mean.

    Attributes:
        text: Their names, in order.
        example: Sizes to write.
    """

    text: str
    example: str

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.text.split(","))


GEMM = Form("M,N,K", "64,64,64")
ROWS = Form("M,N", "64,64")
HEADS = Form("M,N,D", "64,64,16")
SUMS = Form("M,N,K", "64,64,8")
GROUPS = Form("G,M,N,K", "4,64,64,64")
ATTENTION = Form("B,Hq,Hkv,Sq,Skv,Dqk,Dv", "1,4,4,64,64,16,16")
#: The same on a latent cache: one head of keys, which are values in their first elements.
LATENT = Form(ATTENTION.text, "1,4,1,64,64,24,16")


@dataclass(frozen=True, slots=True)
class Choices:
    """Variants of kernels; None is what a kernel does by itself.

    Attributes:
        collective: How reductions are made (`workloads.kernels.parts.collectives`), and blocks
            of operands sent to many (`workloads.kernels.parts.broadcast`).
        groups: Groups of each level but the last of a K-tree.
        schedule: Of FlatAttention: ``naive`` or ``async``.
        group: Rows and columns of its groups of tiles.
        weight_bits: Of an element of B in memory and network, if others than of A.
        resident: Whether B lies in the tiles that use it.
        latent: Of attention: values are the first elements of the keys.
        skewed: Of products by compute and shift: A comes skewed, as one before left it.
        receive_buffers: Of SUMMA: of a tile for panels of each matrix, 1 or 2.
        serial: Of SUMMA: whether panels of B wait for those of A.
        at_root: Of products of a vector: whether sums stay at the roots. Of partitioned ones:
            whether each tile keeps the part that comes together there.
        causal: Of attention: no row sees the keys of tokens after its own.
        heads_per_group: Of FlatAttention: streams that a group has under way.
        partition: Of partitioned products (`workloads.kernels.gemm.partition_plan`).
        placement: Of the same: the order of the tiles (`workloads.machine.order`).
    """

    collective: str | None = None
    groups: tuple[int, ...] | None = None
    schedule: str | None = None
    group: tuple[int, int] | None = None
    weight_bits: float | None = None
    resident: bool | None = None
    latent: bool | None = None
    skewed: bool | None = None
    receive_buffers: int | None = None
    serial: bool | None = None
    at_root: bool | None = None
    causal: bool | None = None
    heads_per_group: int | None = None
    partition: str | None = None
    placement: str | None = None


#: Kernels as they are by themselves.
KERNELS_OWN = Choices()


class Plan(Protocol):
    """A problem cut over tiles."""

    @property
    def pieces(self) -> Pieces:
        """What tiles work on."""

    @property
    def balance(self) -> float:
        """Cycles of a step's work over the flits of its transfers."""

    @property
    def tile_macs(self) -> int:
        """Multiply-accumulates of a tile, those of padding among them."""

    @property
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's products."""

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of the vector passes that every tile makes."""


class MovingPlan(Plan, Protocol):
    """The plan of a kernel whose operands lie in off-chip memory."""

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves."""


def moves(plan: Plan) -> TypeGuard[MovingPlan]:
    """Whether a kernel's operands lie in off-chip memory."""
    return hasattr(type(plan), "moved")


def moved_of(plan: Plan) -> Moved:
    """Bytes that a program moves; none of a kernel whose operands lie in the tiles."""
    return plan.moved if moves(plan) else Moved()


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel at every level.

    Attributes:
        form: What its sizes mean.
        macs: Multiply-accumulates of a problem, without padding and what a mask leaves out.
        plan: Cuts a problem over tiles.
        program: Builds its program.
        closed_form: Its cycles at level `perf`.
        choices: Names of the `Choices` that it has.
        without_memory: The same plan with what lies in off-chip memory there when asked for.
        search: Plans, with their cycles, of problems that differ in one size alone: the first, or
            of attention the keys.
        collective: What it does without a choice of one.
    """

    form: Form
    macs: Callable[[Sizes, Choices], int]
    plan: Callable[[Sizes, Place, Choices], Any]
    program: Callable[[Any], Program]
    closed_form: Callable[[Any, NocTiming], int]
    choices: tuple[str, ...] = ()
    without_memory: Callable[[Any], Any] = lambda plan: plan
    search: Callable[[Sequence[Sizes], Place, Choices], list[Found[Any]]] | None = None
    collective: Callable[[Place], str] = lambda place: place.method(None)

    def known(self, choices: Choices) -> Choices:
        """Those of some choices that the kernel has."""
        return Choices(**{name: getattr(choices, name) for name in self.choices})

    def variant(self, choices: Choices, place: Place) -> str:
        """What comparisons of levels know choices by, beside the kernel; empty: its own."""
        known = self.known(choices)
        own = self.collective(place)
        parts = (
            known.schedule if known.schedule != "async" else None,
            known.collective if known.collective != own else None,
            f"groups of {known.groups}" if known.groups else None,
            "resident" if known.resident else None,
            "skewed" if known.skewed else None,
            "one buffer" if known.receive_buffers == 1 else None,
            "serial" if known.serial else None,
            "at the root" if known.at_root else None,
            "causal" if known.causal else None,
            known.partition if known.partition != "auto" else None,
            known.placement if known.placement != "linear" else None,
            "1 head a group" if known.heads_per_group == 1 and known.schedule != "naive" else None,
        )
        return ", ".join(part for part in parts if part is not None)

    def planned(self, sizes: Sizes, place: Place, choices: Choices = KERNELS_OWN) -> Plan:
        """A plan for some sizes.

        Raises:
            InputError: if their number, the grid or a choice does not fit.
        """
        if len(sizes) != self.form.count:
            text = ",".join(map(str, sizes))
            raise InputError(
                f"--shape: found '{text}'; write {self.form.text}, such as {self.form.example}"
            )
        for field in fields(choices):
            if getattr(choices, field.name) is not None and field.name not in self.choices:
                known = ", ".join(map(_option, self.choices)) or "none"
                raise InputError(f"{_option(field.name)}: this kernel has other choices: {known}")
        plan: Plan = self.plan(sizes, place, choices)
        return plan

    def found(
        self, problems: Sequence[Sizes], place: Place, choices: Choices = KERNELS_OWN
    ) -> list[Found[Any]]:
        """`planned`, with the cycles, of problems as `search` takes them."""
        if self.search is not None:
            return self.search(problems, place, choices)
        plans = [self.planned(sizes, place, choices) for sizes in problems]
        return [Found(plan, self.closed_form(plan, place.timing)) for plan in plans]


def _by_network(_: Place) -> str:
    """Operands go by the network, whatever combines sums there."""
    return "network"


def _product_macs(sizes: Sizes, _: Choices) -> int:
    return math.prod(sizes)


def _attention_macs(sizes: Sizes, choices: Choices) -> int:
    return _attention(sizes, choices).macs


def _no_macs(_: Sizes, __: Choices) -> int:
    return 0


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _gemm(
    plan: Callable[[Any, Place], GemmPlan],
    program: Callable[[GemmPlan], Program],
    form: Callable[[GemmPlan, NocTiming], int],
) -> Kernel:
    return Kernel(
        GEMM,
        _product_macs,
        lambda sizes, place, _: plan(sizes, place),
        program,
        form,
    )


def _panels(
    program: Callable[[GemmPlan], Program],
    form: Callable[[GemmPlan, NocTiming], int],
    *choices: str,
) -> Kernel:
    def plan(sizes: Any, place: Place, choices: Choices) -> GemmPlan:
        method = choose("collective", choices.collective or "network", ["network", *BY_MESSAGES])
        buffers = choices.receive_buffers or 2
        if buffers > 2:
            raise InputError(f"--receive-buffers: found {buffers}; allowed: 1 or 2")
        return replace(
            plan_gemm(sizes, place),
            method=method,
            receive_buffers=buffers,
            serial=bool(choices.serial),
        )

    kernel = _gemm(plan_gemm, program, form)
    return replace(kernel, plan=plan, choices=("collective", *choices), collective=_by_network)


def _compute_shift(program: Callable[..., Program], rings: Callable[[int, int], Rings]) -> Kernel:
    """A product by compute and shift on rings."""

    def plan(sizes: Any, place: Place, choices: Choices) -> GemmPlan:
        return replace(plan_gemm(sizes, place, shifted), skewed=bool(choices.skewed))

    whole = _gemm(
        plan_gemm,
        lambda plan: program(plan, align=not plan.skewed),
        lambda plan, timing: compute_shift_cycles(plan, rings(plan.rows, plan.cols), timing),
    )
    return replace(whole, plan=plan, choices=("skewed",))


def _plan_transposed(sizes: Any, place: Place, choices: Choices) -> GemmPlan:
    method = choices.collective or _moving_sum(place)
    choose("collective", method, ["network", "stream"])
    plan = plan_square_gemm(sizes, place, summed)
    if method == "network":
        place.method(method)
        return plan
    if not place.streams:
        raise InputError(
            "kernel: mesh-gemm-t sums in the network or by streams, and this chip's profile has "
            "neither noc.reduce_cycles nor software.stage_cycles"
        )
    if place.relay_cycles is not None:
        return replace(plan, relay_cycles=place.relay_cycles)

    whole = place.cols * place.word_columns(plan.block[2])
    plan = plan_square_gemm((sizes[0], whole, sizes[2]), place, summed)

    def cycles(parts: RelayedParts) -> int:
        return mesh_gemm_t_cycles(replace(plan, relayed=parts), place.timing)

    return replace(plan, relayed=best_parts(place, (plan.block[0], plan.block[2]), cycles))


def _moving_sum(place: Place) -> str:
    """How sums come together whose root is another tile in each step."""
    return "network" if place.in_network else "stream"


def _partitioned(sizes: Any, place: Place, choices: Choices) -> PartitionPlan:
    place = replace(place, placement=choices.placement or place.placement)
    partition = choices.partition or "auto"
    return find_partition(sizes, place, partition, scattered=bool(choices.at_root))


def _gemv(
    plan: Callable[[Any, Place, Choices], Any],
    program: Callable[[Any], Program] = gemv,
    form: Callable[[Any, NocTiming], int] = gemv_cycles,
    choices: tuple[str, ...] = (),
) -> Kernel:
    return Kernel(GEMM, _product_macs, plan, program, form, choices)


def _plan_row_sum(sizes: Sizes, place: Place, choices: Choices) -> RowSumPlan:
    return plan_row_sum((sizes[0], sizes[1]), place, choices.groups, choices.collective)


def _stream(form: Form) -> Kernel:
    """A product, or as many as the first of four sizes says."""

    def plan(sizes: Sizes, place: Place, choices: Choices) -> StreamPlan:
        m, n, k = sizes[-3:]
        _check_weights(choices.weight_bits, place)
        method, groups = place.method(choices.collective), math.prod(sizes[:-3])
        weight_bits, resident = choices.weight_bits, bool(choices.resident)
        return plan_stream((m, n, k), place, method, groups, weight_bits, resident=resident)

    return Kernel(
        form,
        _product_macs,
        plan,
        stream_gemm,
        stream_gemm_cycles,
        ("collective", "weight_bits", "resident"),
        _without_memory,
    )


def _check_weights(bits: float | None, place: Place) -> None:
    if bits is not None and (place.whole_lines or not 0 < bits <= place.element_bits):
        allowed = f"above 0, to {place.element_bits}"
        if place.whole_lines:
            allowed = "none, as the project's own tiles do not widen weights"
        raise InputError(f"--weight-bits: found {bits:g}; allowed here: {allowed}")


_Streaming = FlatPlan | FlashPlan | StreamPlan | RowsPlan | PartitionPlan


def _without_memory(plan: _Streaming) -> _Streaming:
    return replace(plan, place=replace(plan.place, offchip=None))


def _attention(sizes: Sizes, choices: Choices) -> AttentionShape:
    batch, q_heads, kv_heads, rows, keys, qk_depth, v_depth = sizes
    flags = bool(choices.latent), bool(choices.causal)
    return AttentionShape(batch, q_heads, kv_heads, rows, keys, qk_depth, v_depth, *flags)


def _find_flat(problems: Sequence[Sizes], place: Place, choices: Choices) -> list[Found[FlatPlan]]:
    method, schedule = place.method(choices.collective), choices.schedule or "async"
    shapes = [_attention(sizes, choices) for sizes in problems]
    operands = choices.collective or "network"
    heads = choices.heads_per_group
    return plan_flats(shapes, place, method, schedule, operands, choices.group, heads)


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
        _without_memory,
    )


def _flash(turns: int, *choices: str, latent: bool = False) -> Kernel:
    return _apart(lambda shape, place, _: plan_flash(shape, place, turns), *choices, latent=latent)


def _rows(
    recipe: Recipe,
    form: Form = ROWS,
    search: Callable[[Sequence[Sizes], Place, Choices], list[Found[RowsPlan]]] | None = None,
) -> Kernel:
    def found(problems: Sequence[Sizes], place: Place, choices: Choices) -> list[Found[RowsPlan]]:
        method = place.method(choices.collective)
        return plan_all_rows(recipe, _first(problems), problems[0][1], place, method)

    search = search or found
    return Kernel(
        form,
        _no_macs,
        lambda sizes, place, choices: search([sizes], place, choices)[0].plan,
        rows,
        rows_cycles,
        () if recipe.reduced is None else ("collective",),
        _without_memory,
        search,
    )


def _relayout(*, to_blocks: bool) -> Kernel:
    return Kernel(
        ROWS,
        _no_macs,
        lambda sizes, place, _: plan_relayout((sizes[0], sizes[1]), place, to_blocks=to_blocks),
        relayout,
        relayout_cycles,
    )


def _moved(plan: Callable[[tuple[int, int], Place], ExchangePlan]) -> Kernel:
    """Messages among the tiles, in the order of a placement."""
    return Kernel(
        ROWS,
        _no_macs,
        lambda sizes, place, choices: plan(
            (sizes[0], sizes[1]), replace(place, placement=choices.placement or place.placement)
        ),
        exchange,
        exchange_cycles,
    )


def _first(problems: Sequence[Sizes]) -> list[int]:
    return [sizes[0] for sizes in problems]


def _find_rotary(problems: Sequence[Sizes], place: Place, _: Choices) -> list[Found[RowsPlan]]:
    columns, depth = problems[0][1:]
    if depth < 2 or depth % 2 or columns % depth:
        raise InputError(
            f"--shape: found rows of {columns} in heads of {depth}; allowed: whole heads of an "
            "even depth"
        )
    return plan_all_rows(ROTARY, _first(problems), columns // 2, place, width=depth // 2)


def _find_sum(problems: Sequence[Sizes], place: Place, _: Choices) -> list[Found[RowsPlan]]:
    columns, operands = problems[0][1:]
    return plan_all_rows(WEIGHTED_SUM, _first(problems), columns, place, inner=operands)


ROTARY, WEIGHTED_SUM = recipes.rotary(), recipes.weighted_sum()
KERNELS = {
    "mesh-gemm": _compute_shift(mesh_gemm, Rings.interleaved),
    "mesh-gemm-t": replace(
        _gemm(plan_gemm, mesh_gemm_t, mesh_gemm_t_cycles),
        plan=_plan_transposed,
        choices=("collective",),
        collective=_moving_sum,
    ),
    "cannon": _compute_shift(cannon, Rings.natural),
    "summa": _panels(summa, summa_cycles, "receive_buffers", "serial"),
    "allgather-gemm": _panels(allgather_gemm, allgather_cycles),
    "partitioned-gemm": Kernel(
        GEMM,
        _product_macs,
        _partitioned,
        partition_gemm,
        partition_cycles,
        ("partition", "placement", "at_root"),
        _without_memory,
    ),
    "stream-gemm": _stream(GEMM),
    "grouped-gemm": _stream(GROUPS),
    "mesh-gemv": replace(
        _gemv(
            lambda sizes, place, choices: replace(
                mesh_gemv.plan_mesh_gemv(sizes, place, choices.groups, choices.collective),
                at_root=bool(choices.at_root),
            ),
            choices=("collective", "groups", "at_root"),
        ),
        collective=mesh_gemv.own_method,
    ),
    "pipeline-gemv": _gemv(
        lambda sizes, place, choices: replace(
            pipeline_gemv.plan_pipeline_gemv(sizes, place), at_root=bool(choices.at_root)
        ),
        choices=("at_root",),
    ),
    "ring-gemv": _gemv(
        lambda sizes, place, _: plan_gemv(sizes, place, ring=True),
        ring_gemv.ring_gemv,
        ring_gemv_cycles,
    ),
    "rows-to-blocks": _relayout(to_blocks=True),
    "blocks-to-rows": _relayout(to_blocks=False),
    "exchange": replace(_moved(plan_rows_to_columns), choices=("placement",)),
    "hand-over": _moved(plan_halves),
    "softmax": Kernel(
        ROWS,
        _no_macs,
        lambda sizes, place, choices: softmax.plan_softmax(
            (sizes[0], sizes[1]), place, place.method(choices.collective)
        ),
        softmax.softmax,
        softmax_cycles,
        ("collective",),
    ),
    "row-sum": Kernel(ROWS, _no_macs, _plan_row_sum, gemv, gemv_cycles, ("collective", "groups")),
    "rms-norm": _rows(recipes.rms_norm()),
    "rotary": _rows(ROTARY, HEADS, _find_rotary),
    "residual": _rows(recipes.residual()),
    "gate": _rows(recipes.gate()),
    "kv-append": _rows(recipes.kv_append()),
    "weighted-sum": _rows(WEIGHTED_SUM, SUMS, _find_sum),
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
        _without_memory,
        _find_flat,
        collective=_by_network,
    ),
}
