"""Passes over rows as performance models."""

from functools import lru_cache
from typing import Any

import numpy as np

from tlm.interconnect.transfer_times import arrival_cycles, reduction_cycles_over
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.parts.closed_form import (
    all_reduce_cycles,
    reduce_cycles,
    root_cycles,
)
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines
from workloads.kernels.vector.recipe import Recipe, Step
from workloads.kernels.vector.rows_memory import Which, leaving, loads_of, stores_of
from workloads.kernels.vector.rows_plan import RowsPlan, counts, flits, pass_cycles
from workloads.kernels.vector.softmax import SoftmaxPlan, reductions


def softmax_cycles(plan: SoftmaxPlan, timing: NocTiming) -> int:
    """Cycles of a softmax: the passes, and between them the two all-reductions."""
    both = reductions(plan.place, plan.method, plan.column_flits, plan.block[0])
    return plan.tile_vector_cycles + sum(all_reduce_cycles(each, timing) for each in both)


def rows_cycles(plan: RowsPlan, timing: NocTiming) -> int:
    """Cycles of a kernel of rows."""
    parts, m, n = (np.array([each]) for each in (plan.parts, *plan.block))
    return round(float(candidate_cycles(plan, (parts, m, n), timing)[0]))


def candidate_cycles(problem: RowsPlan, which: Which, timing: NocTiming) -> Any:
    """Cycles of candidates of a problem, whose own parts and block do not matter.

    Either a tile's passes set the pace, or a channel that loads for its tiles and stores for them,
    or the way that a buffer takes from its being free to its being full.
    """
    parts, m, n = which
    number = counts(problem, parts, m, n)
    steps = number.rows * number.blocks * number.inner
    worked = pass_cycles(problem, number, m, n)
    reduced = _reduced_cycles(problem, which, number.rows, timing)
    edge = problem.place.offchip
    if edge is None:
        return worked + reduced
    step = worked / steps
    loads = loads_of(problem, edge, which, timing)
    stores = stores_of(problem, edge, which, timing)
    passes, after = _without_operands(problem.recipe, problem.inner)
    passes = passes * problem.place.vector.pass_cycles_over(m, n)
    before = np.minimum(passes, loads.last)
    # Loads wait for all that is stored before them: not for the results of the last two steps.
    stored_before = np.maximum(0, (steps - 2) // problem.inner) * problem.inner / steps
    loaded = loads.later + stores.held * stored_before
    # It loads nothing between the second step and the third if tiles ask too late for that.
    resumed = loads.resumed + step * (1 - after)
    loaded = np.where(steps > 2, np.maximum(loaded, resumed), loaded)
    # The second buffers are filled behind the first ones; again behind what these had stored, if
    # each step stores.
    behind = loads.behind
    if problem.inner == 1:
        stored = np.maximum(behind, after * step) + stores.held / steps
        behind = np.where(steps > 2, np.maximum(step, stored), behind)
    behind = np.where(steps % 2 == 0, behind, 0)
    turn = step * (1 - after) + loads.again + stores.own
    waited = behind + (steps - 1) // 2 * turn
    # The first passes do not wait for the last operand, which at the end comes behind no other's.
    longest = np.maximum((steps - 1) * step, waited) - before
    longest = np.maximum(longest, loaded - np.minimum(passes, loads.own)) + step + reduced
    # Tiles that were served one after the other store one after the other.
    leave = np.maximum(stores.end, stores.last - loads.lag)
    begun = loads.first - loads.lag - before
    first = leaving(problem.recipe, problem.inner)[0]
    sent = np.maximum(begun + step * first, loads.asked) + stores.posted
    written = loads.first + loads.later + stores.held + stores.kept
    longest = loads.first + longest + leave + stores.answer
    return np.maximum(longest, np.maximum(sent + stores.answer, written))


@lru_cache(64)
def _without_operands(recipe: Recipe, inner: int) -> tuple[int, float]:
    """Passes of the first step before the last operand's; part of a step's after those of all."""
    names = [part.name for part in recipe.operands]
    begin = recipe.passes(Step(0, 0, 0, 0, new_rows=True))
    first = next(number for number, each in enumerate(begin) if names[-1] in each[1:4])
    made = recipe.passes(Step(0, 0, 0, inner - 1, new_rows=False))
    last = max(number for number, each in enumerate(made) if {*names} & {*each[1:4]})
    return first, 1 - (last + 1) / len(made)


def _reduced_cycles(problem: RowsPlan, which: Which, rows: Any, timing: NocTiming) -> Any:
    """Cycles of results of blocks of rows that come together, beyond those of the passes."""
    (parts, m, n), (recipe, vector) = which, (problem.recipe, problem.place.vector)
    if recipe.reduced is None:
        return 0
    combine = vector.pass_cycles_over(m, 1)
    length = flits(problem.place, recipe.parts[recipe.reduced], m, 1)
    # A step's last passes go on beside it.
    made = recipe.passes(Step(0, 0, 0, problem.inner - 1, new_rows=False))
    left = [one.out for one in reversed(made)].index(recipe.reduced)
    ahead = left * vector.pass_cycles_over(m, n)
    before, after = np.zeros(len(parts)), np.zeros(len(parts))
    if problem.method == "network":
        combined = reduction_cycles_over(timing, parts // 2, length)
        after = np.where(parts > 1, np.maximum(0, combined - ahead), 0)
    else:
        for count in np.unique(parts[parts > 1]).tolist():
            same = parts == count
            reduction = Reduction(
                Lines("row", range(1), count), count // 2, problem.method, "", "", "",
                length[same], combine[same],
            )  # fmt: skip
            first: Any = arrival_cycles(timing, 1, length[same])
            after[same] = reduce_cycles(reduction, timing) - np.minimum(ahead[same], first)
            before[same] = root_cycles(reduction, timing)
    reduced = (rows - 1) * before + after
    if problem.place.offchip is None:
        # The root puts the sum where it belongs.
        reduced = reduced + rows * np.where(parts > 1, combine, 0)
    return reduced
