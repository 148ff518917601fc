"""Iterations that only decode, taken in one stretch, compiled."""

from tlm.compiled import Numbers, compiled
from workloads.serving.engine.budgeted.decoding import (
    advance,
    blocks_due_in,
    take,
    tell_decoded,
    tell_interval,
    tell_outputs,
)
from workloads.serving.engine.budgeted.stages import duration_of, spend
from workloads.serving.engine.budgeted.state import (
    Ended,
    Field,
    Log,
    Queues,
    RequestColumns,
    Rules,
    StagePrices,
)
from workloads.serving.price.stage_cells import decoded_cell, head_cell, passed_cell


@compiled
def stretch(
    at: Numbers[int],
    requests: RequestColumns,
    queues: Queues,
    prices: StagePrices,
    log: Log,
    rules: Rules,
) -> int:
    """Iterations that only decode, in runs of alike ones, if their stages have prices."""
    decoding, context, steps = at[Field.DECODING], at[Field.CONTEXT], at[Field.STEPS]
    cells, runs, now_ps = queues.cells, log.runs, at[Field.NOW_PS]
    cells[0], cells[2] = passed_cell(decoding), head_cell(decoding)
    first, count, end_ps = -(-context // decoding), 0, now_ps
    for step in range(steps):
        cell = decoded_cell(decoding, first + step)
        if count and runs[count - 1, 0] == cell:
            runs[count - 1, 2] += 1
        else:
            cells[1] = cell
            duration_ps = duration_of(at, prices, queues, 3, rules)
            if duration_ps < 1:
                return Ended.UNKNOWN if duration_ps < 0 else Ended.NO_TIME
            runs[count, 0], runs[count, 1], runs[count, 2] = cell, duration_ps, 1
            count += 1
        if runs[count - 1, 1] > rules.last_ps - end_ps:
            return Ended.TOO_LONG
        end_ps += runs[count - 1, 1]
    at[Field.LAST_DURATION_PS] = runs[count - 1, 1]
    if end_ps > at[Field.NEXT_PS]:
        count = _until(runs, now_ps, at[Field.NEXT_PS])
    steps = 0
    for run in range(count):
        cells[1] = runs[run, 0]
        spend(at, prices, queues, 3, runs[run, 2])
        steps += runs[run, 2]
    at[Field.ITERATIONS] += steps
    at[Field.DECODE_ITERATIONS] += steps
    at[Field.DECODED] += decoding * steps
    at[Field.TOKENS] += decoding * steps
    at[Field.PAIRS] += (context + decoding) * steps + decoding * (steps * (steps - 1) // 2)
    at[Field.LOGIT_ROWS] += decoding * steps
    take(at, blocks_due_in(at, queues, steps))
    _tell_stretch(at, requests, queues, log, count, rules.late_ps)
    at[Field.BUSY_PS] += at[Field.NOW_PS] - now_ps
    advance(at, requests, queues, log, steps)
    return Ended.DONE


@compiled
def _tell_stretch(
    at: Numbers[int], requests: RequestColumns, queues: Queues, log: Log, count: int, late_ps: int
) -> None:
    """All that decode have emitted a token in each iteration of some runs."""
    runs = log.runs
    at[Field.NOW_PS] += runs[0, 1]
    tell_decoded(at, requests, queues, log, late_ps)
    step = at[Field.STEP]
    for run in range(count):
        duration_ps, times = runs[run, 1], runs[run, 2]
        if run == 0:
            times -= 1
        if times == 0:
            continue
        tell_interval(at, log, duration_ps, at[Field.DECODING], times)
        tell_outputs(at, log, duration_ps, times, at[Field.DECODING])
        at[Field.NOW_PS] += duration_ps * times
        step += times
        if duration_ps > late_ps:
            at[Field.LATE_STEP] = step
    at[Field.EMITTED_PS] = at[Field.NOW_PS]


@compiled
def _until(runs: Numbers[tuple[int, int]], begin_ps: int, time_ps: int) -> int:
    """Cut runs behind the first iteration that ends at a time or later; returns how many stay."""
    end_ps, count = begin_ps, 0
    while end_ps < time_ps:
        left = -(-(time_ps - end_ps) // runs[count, 1])
        runs[count, 2] = min(runs[count, 2], left)
        end_ps += runs[count, 1] * runs[count, 2]
        count += 1
    return count
