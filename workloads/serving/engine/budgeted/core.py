"""Iterations with a budget of prompt tokens, compiled: the rules of `engine.engine`, in order."""

import numpy as np

from tlm.compiled import Numbers, compiled, forget_stale
from workloads.serving.engine.budgeted.decoding import (
    advance,
    blocks_due_in,
    blocks_of,
    find_next_finish,
    finish,
    join,
    leave,
    take,
    tell_decoded,
    tell_emitted,
    tell_interval,
    tell_outputs,
    tell_prompts,
)
from workloads.serving.engine.budgeted.state import (
    ENERGY_UNIT,
    NEVER,
    NOBODY,
    Ended,
    Log,
    Prices,
    Queues,
    Requests,
    Rules,
    State,
)
from workloads.serving.engine.engine import LONGEST_STRETCH
from workloads.serving.load.traces import PS_PER_S
from workloads.serving.price.stage_cells import (
    attended_cell,
    decoded_cell,
    head_cell,
    passed_cell,
)
from workloads.serving.result.usage import PJ_PER_J

_PS_PER_S, _PJ_PER_J = float(PS_PER_S), float(PJ_PER_J)


@compiled
def rows_of_a_step(max_sequences: int) -> int:
    """Rows that an iteration logs of each request, twice at most, or a stretch of its runs."""
    return 2 * max_sequences + LONGEST_STRETCH + 2


@compiled
def serve(
    at: Numbers[int], requests: Requests, queues: Queues, prices: Prices, log: Log, rules: Rules
) -> int:
    """Go on until something is to be done elsewhere; returns what (`Ended`)."""
    rows = len(log.ended) - rows_of_a_step(rules.max_sequences)
    while at[State.FINISHED] < len(requests.arrival_ps):
        if not at[State.PLANNED]:
            told = max(at[State.INTERVALS], at[State.OUTPUTS])
            if max(told, at[State.PROMPTS], at[State.ENDED]) > rows:
                return Ended.FULL
            _secure_blocks(at, requests, queues)
            _plan(at, requests, queues, rules)
            at[State.NEXT_PS] = _next_ps(at, requests)
            if not (at[State.CHUNKS] or at[State.DECODING]):
                if at[State.NEXT_PS] == NEVER:
                    return Ended.STUCK
                at[State.NOW_PS] = at[State.NEXT_PS]
                continue
            at[State.STEPS] = 1 if at[State.CHUNKS] else _steps_ahead(at, requests, queues)
            at[State.PLANNED] = 1
        if at[State.STEPS] == 1:
            ended = _iterate(at, requests, queues, prices, log, rules)
        else:
            ended = _stretch(at, requests, queues, prices, log, rules)
        if ended != Ended.DONE:
            return ended
        at[State.PLANNED] = 0
    return Ended.DONE


@compiled
def _secure_blocks(at: Numbers[int], requests: Requests, queues: Queues) -> None:
    """Preempt until those that decode have the blocks of their next step."""
    while blocks_due_in(at, queues, 1) > at[State.FREE]:
        if at[State.PREFILLING]:
            at[State.PREFILLING] -= 1
            one = queues.prefilling[at[State.PREFILLING]]
            at[State.FREE] += blocks_of(requests.to_prefill[one])
        else:
            one = at[State.LAST]
            at[State.FREE] += leave(at, requests, queues, one)
            find_next_finish(at, requests)
        at[State.PREEMPTIONS] += 1
        requests.prefilled[one] = 0
        requests.to_prefill[one] = requests.prompt_tokens[one] + requests.emitted[one]
        queues.returned[at[State.RETURNED]] = one
        at[State.RETURNED] += 1


@compiled
def _plan(at: Numbers[int], requests: Requests, queues: Queues, rules: Rules) -> None:
    """Prompt chunks of the next iteration, those that have begun before new ones."""
    at[State.CHUNKS] = at[State.COMPLETE] = 0
    if rules.waits and at[State.DECODING]:
        return
    left, begun = rules.budget - at[State.DECODING], at[State.PREFILLING]
    while left > 0:
        number = at[State.CHUNKS]
        one = queues.prefilling[number] if number < begun else _admit(at, requests, queues, rules)
        if one == NOBODY:
            return
        whole = requests.to_prefill[one] - requests.prefilled[one]
        tokens = min(whole, left)
        queues.chunks[number, 0], queues.chunks[number, 1] = one, tokens
        at[State.CHUNKS] += 1
        at[State.COMPLETE] += 1 if tokens == whole else 0
        left -= tokens


@compiled
def _admit(at: Numbers[int], requests: Requests, queues: Queues, rules: Rules) -> int:
    """Admit who is next in line, if there is room."""
    running = at[State.DECODING] + at[State.PREFILLING]
    if running >= rules.max_sequences:
        return NOBODY
    returned, one = at[State.RETURNED], at[State.TAKEN]
    if returned:
        one = queues.returned[returned - 1]
    elif one == len(requests.arrival_ps) or requests.arrival_ps[one] > at[State.NOW_PS]:
        return NOBODY
    blocks = blocks_of(requests.to_prefill[one])
    spare = rules.spare if running else 0
    if blocks > at[State.FREE] - blocks_due_in(at, queues, 1) - spare:
        return NOBODY
    take(at, blocks)
    if returned:
        at[State.RETURNED] -= 1
    else:
        at[State.TAKEN] += 1
    queues.prefilling[at[State.PREFILLING]] = one
    at[State.PREFILLING] += 1
    if requests.start_ps[one] < 0:
        requests.start_ps[one] = at[State.NOW_PS]
    return one


@compiled
def _next_ps(at: Numbers[int], requests: Requests) -> int:
    """When somebody else will be next in line; who is there stays so."""
    one = at[State.TAKEN]
    if at[State.RETURNED] or one == len(requests.arrival_ps):
        return NEVER
    arrival_ps = requests.arrival_ps[one]
    return arrival_ps if arrival_ps > at[State.NOW_PS] else NEVER


@compiled
def _steps_ahead(at: Numbers[int], requests: Requests, queues: Queues) -> int:
    """How many iterations that only decode can be taken in one stretch."""
    steps = min(at[State.NEXT_FINISH] - at[State.STEP], LONGEST_STRETCH)
    if at[State.NEXT_PS] != NEVER:
        left_ps = at[State.NEXT_PS] - at[State.NOW_PS]
        steps = min(steps, left_ps // at[State.LAST_DURATION_PS] + 2)
    if blocks_due_in(at, queues, steps) <= at[State.FREE]:
        return steps
    least, most = 1, steps  # there are blocks for the least, not for the most
    while most - least > 1:
        middle = (least + most) // 2
        if blocks_due_in(at, queues, middle) <= at[State.FREE]:
            least = middle
        else:
            most = middle
    return least


@compiled
def _iterate(
    at: Numbers[int], requests: Requests, queues: Queues, prices: Prices, log: Log, rules: Rules
) -> int:
    """An iteration, if its stages have prices."""
    decoding, context, late_ps = at[State.DECODING], at[State.CONTEXT], rules.late_ps
    stages = _stages(at, requests, queues)
    duration_ps = _duration_ps(at, prices, queues, stages, rules)
    if duration_ps < 1:
        return Ended.UNKNOWN if duration_ps < 0 else Ended.NO_TIME
    if duration_ps > rules.last_ps - at[State.NOW_PS]:
        return Ended.TOO_LONG
    at[State.NOW_PS] += duration_ps
    _spend(at, prices, queues, stages, 1)
    at[State.ITERATIONS] += 1
    at[State.BUSY_PS] += duration_ps
    at[State.TOKENS] += decoding
    at[State.PAIRS] += context + decoding
    at[State.LOGIT_ROWS] += decoding + at[State.COMPLETE]
    if decoding:
        at[State.DECODE_ITERATIONS] += 1
        at[State.DECODED] += decoding
        take(at, blocks_due_in(at, queues, 1))
        tell_decoded(at, requests, queues, log, late_ps)
        advance(at, requests, queues, log, 1)
    _prefilled(at, requests, queues, log, late_ps)
    return Ended.DONE


@compiled
def _stages(at: Numbers[int], requests: Requests, queues: Queues) -> int:
    """Write down the cells of an iteration's stages, in their order; returns how many."""
    decoding, chunks, cells = at[State.DECODING], at[State.CHUNKS], queues.cells
    tokens = decoding
    for number in range(chunks):
        one, new = queues.chunks[number, 0], queues.chunks[number, 1]
        tokens += new
        cells[1 + number] = attended_cell(new, requests.prefilled[one])
    cells[0] = passed_cell(tokens)
    count = 1 + chunks
    if decoding:
        cells[count] = decoded_cell(decoding, -(-at[State.CONTEXT] // decoding))
        count += 1
    if decoding + at[State.COMPLETE]:
        cells[count] = head_cell(decoding + at[State.COMPLETE])
        count += 1
    return count


@compiled
def _duration_ps(
    at: Numbers[int], prices: Prices, queues: Queues, stages: int, rules: Rules
) -> int:
    """Time of the iteration whose stages are written down; below 0 if one has no price."""
    cycles = 0.0
    for stage in range(stages):
        cell = queues.cells[stage]
        if np.isnan(prices.cycles[cell]):
            at[State.CELL] = cell
            return -1
        cycles += prices.cycles[cell]
    return int(np.rint(cycles / rules.clock_hz * _PS_PER_S))


@compiled
def _spend(at: Numbers[int], prices: Prices, queues: Queues, stages: int, times: int) -> None:
    """Count the stages that are written down, and their energy, as often."""
    joules = 0.0
    for stage in range(stages):
        cell = queues.cells[stage]
        prices.times[cell] += times
        joules += prices.joules[cell]
    at[State.ENERGY_PJ] += int(np.rint(joules * _PJ_PER_J)) * times
    at[State.ENERGY_UNITS] += at[State.ENERGY_PJ] // ENERGY_UNIT
    at[State.ENERGY_PJ] %= ENERGY_UNIT


@compiled
def _prefilled(
    at: Numbers[int], requests: Requests, queues: Queues, log: Log, late_ps: int
) -> None:
    """Chunks are computed; a complete prompt has emitted a token, and joins those that decode."""
    tokens = left = 0
    for number in range(at[State.CHUNKS]):
        one, new = queues.chunks[number, 0], queues.chunks[number, 1]
        before = requests.prefilled[one]
        at[State.PAIRS] += new * before + new * (new + 1) // 2
        requests.prefilled[one] += new
        tokens += new
    at[State.TOKENS] += tokens
    if tokens:
        tell_prompts(at, log, tokens)
    for number in range(at[State.CHUNKS]):
        one = queues.chunks[number, 0]
        if requests.prefilled[one] == requests.to_prefill[one]:
            _emit(at, requests, queues, log, one, late_ps)
    for place in range(at[State.PREFILLING]):
        one = queues.prefilling[place]
        if requests.prefilled[one] < requests.to_prefill[one]:
            queues.prefilling[left] = one
            left += 1
    at[State.PREFILLING] = left


@compiled
def _emit(
    at: Numbers[int], requests: Requests, queues: Queues, log: Log, one: int, late_ps: int
) -> None:
    """The first token of a request, or after a preemption the next one."""
    requests.emitted[one] += 1
    if requests.first_token_ps[one] < 0:
        requests.first_token_ps[one] = at[State.NOW_PS]
    else:
        tell_emitted(at, requests, log, one, late_ps)
    requests.last_token_ps[one] = at[State.NOW_PS]
    tell_outputs(at, log, 0, 1, 1)
    if requests.emitted[one] == requests.output_tokens[one]:
        finish(at, log, one, blocks_of(requests.to_prefill[one]))
    else:
        join(at, requests, queues, one)


@compiled
def _stretch(
    at: Numbers[int], requests: Requests, queues: Queues, prices: Prices, log: Log, rules: Rules
) -> int:
    """Iterations that only decode, in runs of alike ones, if their stages have prices."""
    decoding, context, steps = at[State.DECODING], at[State.CONTEXT], at[State.STEPS]
    cells, runs, now_ps = queues.cells, log.runs, at[State.NOW_PS]
    cells[0], cells[2] = passed_cell(decoding), head_cell(decoding)
    first, count, end_ps = -(-context // decoding), 0, now_ps
    for step in range(steps):
        cell = decoded_cell(decoding, first + step)
        if count and runs[count - 1, 0] == cell:
            runs[count - 1, 2] += 1
        else:
            cells[1] = cell
            duration_ps = _duration_ps(at, prices, queues, 3, rules)
            if duration_ps < 1:
                return Ended.UNKNOWN if duration_ps < 0 else Ended.NO_TIME
            runs[count, 0], runs[count, 1], runs[count, 2] = cell, duration_ps, 1
            count += 1
        if runs[count - 1, 1] > rules.last_ps - end_ps:
            return Ended.TOO_LONG
        end_ps += runs[count - 1, 1]
    at[State.LAST_DURATION_PS] = runs[count - 1, 1]
    if end_ps > at[State.NEXT_PS]:
        count = _until(runs, now_ps, at[State.NEXT_PS])
    steps = 0
    for run in range(count):
        cells[1] = runs[run, 0]
        _spend(at, prices, queues, 3, runs[run, 2])
        steps += runs[run, 2]
    at[State.ITERATIONS] += steps
    at[State.DECODE_ITERATIONS] += steps
    at[State.DECODED] += decoding * steps
    at[State.TOKENS] += decoding * steps
    at[State.PAIRS] += (context + decoding) * steps + decoding * (steps * (steps - 1) // 2)
    at[State.LOGIT_ROWS] += decoding * steps
    take(at, blocks_due_in(at, queues, steps))
    _tell_stretch(at, requests, queues, log, count, rules.late_ps)
    at[State.BUSY_PS] += at[State.NOW_PS] - now_ps
    advance(at, requests, queues, log, steps)
    return Ended.DONE


@compiled
def _tell_stretch(
    at: Numbers[int], requests: Requests, queues: Queues, log: Log, count: int, late_ps: int
) -> None:
    """All that decode have emitted a token in each iteration of some runs."""
    runs = log.runs
    at[State.NOW_PS] += runs[0, 1]
    tell_decoded(at, requests, queues, log, late_ps)
    step = at[State.STEP]
    for run in range(count):
        duration_ps, times = runs[run, 1], runs[run, 2]
        if run == 0:
            times -= 1
        if times == 0:
            continue
        tell_interval(at, log, duration_ps, at[State.DECODING], times)
        tell_outputs(at, log, duration_ps, times, at[State.DECODING])
        at[State.NOW_PS] += duration_ps * times
        step += times
        if duration_ps > late_ps:
            at[State.LATE_STEP] = step
    at[State.EMITTED_PS] = at[State.NOW_PS]


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


forget_stale(serve)
