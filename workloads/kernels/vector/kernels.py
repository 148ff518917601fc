"""Kernels of the vector engines, and changes of layout, by name."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tlm.errors import InputError
from workloads.kernels.gemv.closed_form import gemv_cycles
from workloads.kernels.gemv.plan import gemv
from workloads.kernels.gemv.row_sum import RowSumPlan, plan_row_sum
from workloads.kernels.kernel import (
    HEADS,
    ROWS,
    SUMS,
    Choices,
    Form,
    Kernel,
    Sizes,
    no_macs,
    without_memory,
)
from workloads.kernels.parts.found import Found
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
from workloads.machine.place import Place


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
        no_macs,
        lambda sizes, place, choices: search([sizes], place, choices)[0].plan,
        rows,
        rows_cycles,
        () if recipe.reduced is None else ("collective",),
        without_memory,
        search,
    )


def _relayout(*, to_blocks: bool) -> Kernel:
    return Kernel(
        ROWS,
        no_macs,
        lambda sizes, place, _: plan_relayout((sizes[0], sizes[1]), place, to_blocks=to_blocks),
        relayout,
        relayout_cycles,
    )


def _moved(plan: Callable[[tuple[int, int], Place], ExchangePlan]) -> Kernel:
    """Messages among the tiles, in the order of a placement."""
    return Kernel(
        ROWS,
        no_macs,
        lambda sizes, place, choices: plan(
            (sizes[0], sizes[1]), replace(place, placement=choices.placement or place.placement)
        ),
        exchange,
        exchange_cycles,
    )


def _plan_row_sum(sizes: Sizes, place: Place, choices: Choices) -> RowSumPlan:
    return plan_row_sum((sizes[0], sizes[1]), place, choices.groups, choices.collective)


def _first(problems: Sequence[Sizes]) -> list[int]:
    return [sizes[0] for sizes in problems]


def _find_rotary(problems: Sequence[Sizes], place: Place, _: Choices) -> list[Found[RowsPlan]]:
    columns, depth = problems[0][1:]
    if depth < 2 or depth % 2 or columns % depth:
        raise InputError(
            f"--shape: found rows of {columns} in heads of {depth}; allowed: whole heads of an "
            "even depth"
        )
    return plan_all_rows(_ROTARY, _first(problems), columns // 2, place, width=depth // 2)


def _find_sum(problems: Sequence[Sizes], place: Place, _: Choices) -> list[Found[RowsPlan]]:
    columns, operands = problems[0][1:]
    return plan_all_rows(_WEIGHTED_SUM, _first(problems), columns, place, inner=operands)


_ROTARY, _WEIGHTED_SUM = recipes.rotary(), recipes.weighted_sum()
KERNELS = {
    "rows-to-blocks": _relayout(to_blocks=True),
    "blocks-to-rows": _relayout(to_blocks=False),
    "exchange": replace(_moved(plan_rows_to_columns), choices=("placement",)),
    "hand-over": _moved(plan_halves),
    "softmax": Kernel(
        ROWS,
        no_macs,
        lambda sizes, place, choices: softmax.plan_softmax(
            (sizes[0], sizes[1]), place, place.method(choices.collective)
        ),
        softmax.softmax,
        softmax_cycles,
        ("collective",),
    ),
    "row-sum": Kernel(ROWS, no_macs, _plan_row_sum, gemv, gemv_cycles, ("collective", "groups")),
    "rms-norm": _rows(recipes.rms_norm()),
    "rotary": _rows(_ROTARY, HEADS, _find_rotary),
    "residual": _rows(recipes.residual()),
    "gate": _rows(recipes.gate()),
    "kv-append": _rows(recipes.kv_append()),
    "weighted-sum": _rows(_WEIGHTED_SUM, SUMS, _find_sum),
}
