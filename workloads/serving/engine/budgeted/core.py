"""Iterations with a budget of prompt tokens, compiled: the rules of `engine.engine`, in order."""

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
    tell_outputs,
    tell_prompts,
)
from workloads.serving.engine.budgeted.stages import duration_of, spend, stages_of
from workloads.serving.engine.budgeted.state import (
    NEVER,
    NOBODY,
    Ended,
    Field,
    Log,
    Queues,
    RequestColumns,
    Rules,
    StagePrices,
)
from workloads.serving.engine.budgeted.stretch import stretch
from workloads.serving.engine.engine import LONGEST_STRETCH


@compiled
def rows_of_a_step(max_sequences: int) -> int:
    """Rows that an iteration logs of each request, twice at most, or a stretch of its runs."""
    return 2 * max_sequences + LONGEST_STRETCH + 2


@compiled
def serve(
    at: Numbers[int],
    requests: RequestColumns,
    queues: Queues,
    prices: StagePrices,
    log: Log,
    rules: Rules,
) -> int:
    """Go on until something is to be done elsewhere; returns what (`Ended`)."""
    rows = len(log.ended) - rows_of_a_step(rules.max_sequences)
    while at[Field.FINISHED] < len(requests.arrival_ps):
        if not at[Field.PLANNED]:
            told = max(at[Field.INTERVALS], at[Field.OUTPUTS])
            if max(told, at[Field.PROMPTS], at[Field.ENDED]) > rows:
                return Ended.FULL
            _secure_blocks(at, requests, queues)
            _plan(at, requests, queues, rules)
            at[Field.NEXT_PS] = _next_ps(at, requests)
            if not (at[Field.CHUNKS] or at[Field.DECODING]):
                if at[Field.NEXT_PS] == NEVER:
                    return Ended.STUCK
                at[Field.NOW_PS] = at[Field.NEXT_PS]
                continue
            at[Field.STEPS] = 1 if at[Field.CHUNKS] else _steps_ahead(at, requests, queues)
            at[Field.PLANNED] = 1
        if at[Field.STEPS] == 1:
            ended = _iterate(at, requests, queues, prices, log, rules)
        else:
            ended = stretch(at, requests, queues, prices, log, rules)
        if ended != Ended.DONE:
            return ended
        at[Field.PLANNED] = 0
    return Ended.DONE


@compiled
def _secure_blocks(at: Numbers[int], requests: RequestColumns, queues: Queues) -> None:
    """Preempt until those that decode have the blocks of their next step."""
    while blocks_due_in(at, queues, 1) > at[Field.FREE]:
        if at[Field.PREFILLING]:
            at[Field.PREFILLING] -= 1
            one = queues.prefilling[at[Field.PREFILLING]]
            at[Field.FREE] += blocks_of(requests.to_prefill[one])
        else:
            one = at[Field.LAST]
            at[Field.FREE] += leave(at, requests, queues, one)
            find_next_finish(at, requests)
        at[Field.PREEMPTIONS] += 1
        requests.prefilled[one] = 0
        requests.to_prefill[one] = requests.prompt_tokens[one] + requests.emitted[one]
        queues.returned[at[Field.RETURNED]] = one
        at[Field.RETURNED] += 1


@compiled
def _plan(at: Numbers[int], requests: RequestColumns, queues: Queues, rules: Rules) -> None:
    """Prompt chunks of the next iteration, those that have begun before new ones."""
    at[Field.CHUNKS] = at[Field.COMPLETE] = 0
    if rules.waits and at[Field.DECODING]:
        return
    left, begun = rules.budget - at[Field.DECODING], at[Field.PREFILLING]
    while left > 0:
        number = at[Field.CHUNKS]
        one = queues.prefilling[number] if number < begun else _admit(at, requests, queues, rules)
        if one == NOBODY:
            return
        whole = requests.to_prefill[one] - requests.prefilled[one]
        tokens = min(whole, left)
        queues.chunks[number, 0], queues.chunks[number, 1] = one, tokens
        at[Field.CHUNKS] += 1
        at[Field.COMPLETE] += 1 if tokens == whole else 0
        left -= tokens


@compiled
def _admit(at: Numbers[int], requests: RequestColumns, queues: Queues, rules: Rules) -> int:
    """Admit who is next in line, if there is room."""
    running = at[Field.DECODING] + at[Field.PREFILLING]
    if running >= rules.max_sequences:
        return NOBODY
    returned, one = at[Field.RETURNED], at[Field.TAKEN]
    if returned:
        one = queues.returned[returned - 1]
    elif one == len(requests.arrival_ps) or requests.arrival_ps[one] > at[Field.NOW_PS]:
        return NOBODY
    blocks = blocks_of(requests.to_prefill[one])
    spare = rules.spare if running else 0
    if blocks > at[Field.FREE] - blocks_due_in(at, queues, 1) - spare:
        return NOBODY
    take(at, blocks)
    if returned:
        at[Field.RETURNED] -= 1
    else:
        at[Field.TAKEN] += 1
    queues.prefilling[at[Field.PREFILLING]] = one
    at[Field.PREFILLING] += 1
    if requests.start_ps[one] < 0:
        requests.start_ps[one] = at[Field.NOW_PS]
    return one


@compiled
def _next_ps(at: Numbers[int], requests: RequestColumns) -> int:
    """When somebody else will be next in line; who is there stays so."""
    one = at[Field.TAKEN]
    if at[Field.RETURNED] or one == len(requests.arrival_ps):
        return NEVER
    arrival_ps = requests.arrival_ps[one]
    return arrival_ps if arrival_ps > at[Field.NOW_PS] else NEVER


@compiled
def _steps_ahead(at: Numbers[int], requests: RequestColumns, queues: Queues) -> int:
    """How many iterations that only decode can be taken in one stretch."""
    steps = min(at[Field.NEXT_FINISH] - at[Field.STEP], LONGEST_STRETCH)
    if at[Field.NEXT_PS] != NEVER:
        left_ps = at[Field.NEXT_PS] - at[Field.NOW_PS]
        steps = min(steps, left_ps // at[Field.LAST_DURATION_PS] + 2)
    if blocks_due_in(at, queues, steps) <= at[Field.FREE]:
        return steps
    least, most = 1, steps  # there are blocks for the least, not for the most
    while most - least > 1:
        middle = (least + most) // 2
        if blocks_due_in(at, queues, middle) <= at[Field.FREE]:
            least = middle
        else:
            most = middle
    return least


@compiled
def _iterate(
    at: Numbers[int],
    requests: RequestColumns,
    queues: Queues,
    prices: StagePrices,
    log: Log,
    rules: Rules,
) -> int:
    """An iteration, if its stages have prices."""
    decoding, context, late_ps = at[Field.DECODING], at[Field.CONTEXT], rules.late_ps
    stages = stages_of(at, requests, queues)
    duration_ps = duration_of(at, prices, queues, stages, rules)
    if duration_ps < 1:
        return Ended.UNKNOWN if duration_ps < 0 else Ended.NO_TIME
    if duration_ps > rules.last_ps - at[Field.NOW_PS]:
        return Ended.TOO_LONG
    at[Field.NOW_PS] += duration_ps
    spend(at, prices, queues, stages, 1)
    at[Field.ITERATIONS] += 1
    at[Field.BUSY_PS] += duration_ps
    at[Field.TOKENS] += decoding
    at[Field.PAIRS] += context + decoding
    at[Field.LOGIT_ROWS] += decoding + at[Field.COMPLETE]
    if decoding:
        at[Field.DECODE_ITERATIONS] += 1
        at[Field.DECODED] += decoding
        take(at, blocks_due_in(at, queues, 1))
        tell_decoded(at, requests, queues, log, late_ps)
        advance(at, requests, queues, log, 1)
    _prefilled(at, requests, queues, log, late_ps)
    return Ended.DONE


@compiled
def _prefilled(
    at: Numbers[int], requests: RequestColumns, queues: Queues, log: Log, late_ps: int
) -> None:
    """Chunks are computed; a complete prompt has emitted a token, and joins those that decode."""
    tokens = left = 0
    for number in range(at[Field.CHUNKS]):
        one, new = queues.chunks[number, 0], queues.chunks[number, 1]
        before = requests.prefilled[one]
        at[Field.PAIRS] += new * before + new * (new + 1) // 2
        requests.prefilled[one] += new
        tokens += new
    at[Field.TOKENS] += tokens
    if tokens:
        tell_prompts(at, log, tokens)
    for number in range(at[Field.CHUNKS]):
        one = queues.chunks[number, 0]
        if requests.prefilled[one] == requests.to_prefill[one]:
            _emit(at, requests, queues, log, one, late_ps)
    for place in range(at[Field.PREFILLING]):
        one = queues.prefilling[place]
        if requests.prefilled[one] < requests.to_prefill[one]:
            queues.prefilling[left] = one
            left += 1
    at[Field.PREFILLING] = left


@compiled
def _emit(
    at: Numbers[int], requests: RequestColumns, queues: Queues, log: Log, one: int, late_ps: int
) -> None:
    """The first token of a request, or after a preemption the next one."""
    requests.emitted[one] += 1
    if requests.first_token_ps[one] < 0:
        requests.first_token_ps[one] = at[Field.NOW_PS]
    else:
        tell_emitted(at, requests, log, one, late_ps)
    requests.last_token_ps[one] = at[Field.NOW_PS]
    tell_outputs(at, log, 0, 1, 1)
    if requests.emitted[one] == requests.output_tokens[one]:
        finish(at, log, one, blocks_of(requests.to_prefill[one]))
    else:
        join(at, requests, queues, one)


forget_stale(serve)
