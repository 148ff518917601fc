"""Decoding requests, their memory and their tokens, compiled.

It is what `engine.decoding`, `engine.kv` and `result.metrics` do for a request at a time.
"""

from tlm.compiled import Numbers, compiled
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.serving.engine.budgeted.state import (
    NEVER,
    NOBODY,
    Field,
    Log,
    Queues,
    RequestColumns,
)


@compiled
def blocks_of(tokens: int) -> int:
    """Blocks that hold so many tokens."""
    return -(-tokens // BLOCK_TOKENS)


@compiled
def blocks_due_in(at: Numbers[int], queues: Queues, steps: int) -> int:
    """Blocks that the next steps need in all, if nobody joins or leaves."""
    due = steps // BLOCK_TOKENS * at[Field.DECODING]
    for step in range(steps % BLOCK_TOKENS):
        due += queues.pages[(at[Field.STEP] + step) % BLOCK_TOKENS]
    return due


@compiled
def take(at: Numbers[int], blocks: int) -> None:
    """Take blocks, which are there."""
    at[Field.FREE] -= blocks
    at[Field.LEAST_FREE] = min(at[Field.LEAST_FREE], at[Field.FREE])


@compiled
def join(at: Numbers[int], requests: RequestColumns, queues: Queues, one: int) -> None:
    """A request joins those that decode."""
    step, last = at[Field.STEP], at[Field.LAST]
    requests.joined_step[one] = step
    queues.pages[(step - requests.to_prefill[one]) % BLOCK_TOKENS] += 1
    requests.before[one], requests.behind[one] = last, NOBODY
    if last == NOBODY:
        at[Field.FIRST] = one
    else:
        requests.behind[last] = one
    at[Field.LAST] = one
    at[Field.DECODING] += 1
    at[Field.CONTEXT] += requests.to_prefill[one]
    at[Field.NEXT_FINISH] = min(at[Field.NEXT_FINISH], _last_step(requests, one))
    queues.fresh[at[Field.FRESH]] = one
    at[Field.FRESH] += 1


@compiled
def leave(at: Numbers[int], requests: RequestColumns, queues: Queues, one: int) -> int:
    """A request decodes no more; returns the blocks it holds."""
    page = (requests.joined_step[one] - requests.to_prefill[one]) % BLOCK_TOKENS
    queues.pages[page] -= 1
    before, behind = requests.before[one], requests.behind[one]
    if before == NOBODY:
        at[Field.FIRST] = behind
    else:
        requests.behind[before] = behind
    if behind == NOBODY:
        at[Field.LAST] = before
    else:
        requests.before[behind] = before
    at[Field.DECODING] -= 1
    steps = at[Field.STEP] - requests.joined_step[one]
    stored = requests.to_prefill[one] + steps
    requests.emitted[one] += steps
    at[Field.CONTEXT] -= stored
    if at[Field.FRESH] and queues.fresh[at[Field.FRESH] - 1] == one:
        at[Field.FRESH] -= 1
    else:
        requests.last_token_ps[one] = at[Field.EMITTED_PS]
        if at[Field.LATE_STEP] > requests.joined_step[one]:
            requests.late_token[one] = 1
    return blocks_of(stored)


@compiled
def find_next_finish(at: Numbers[int], requests: RequestColumns) -> None:
    """Find when the first of them ends."""
    at[Field.NEXT_FINISH], one = NEVER, at[Field.FIRST]
    while one != NOBODY:
        at[Field.NEXT_FINISH] = min(at[Field.NEXT_FINISH], _last_step(requests, one))
        one = requests.behind[one]


@compiled
def _last_step(requests: RequestColumns, one: int) -> int:
    """The step behind which it ends: what it emits after joining is counted when it leaves."""
    step: int = requests.joined_step[one] + requests.output_tokens[one] - requests.emitted[one]
    return step


@compiled
def advance(
    at: Numbers[int], requests: RequestColumns, queues: Queues, log: Log, steps: int
) -> None:
    """All emit a token in each of some steps; who has emitted the last one ends."""
    at[Field.CONTEXT] += at[Field.DECODING] * steps
    at[Field.STEP] += steps
    if at[Field.NEXT_FINISH] > at[Field.STEP]:
        return
    one = at[Field.FIRST]
    while one != NOBODY:
        behind = requests.behind[one]
        if _last_step(requests, one) == at[Field.STEP]:
            finish(at, log, one, leave(at, requests, queues, one))
        one = behind
    find_next_finish(at, requests)


@compiled
def finish(at: Numbers[int], log: Log, one: int, blocks: int) -> None:
    """A request has emitted its last token, and gives its blocks back."""
    at[Field.FREE] += blocks
    log.ended[at[Field.ENDED]] = one
    at[Field.ENDED] += 1
    at[Field.FINISHED] += 1


@compiled
def tell_interval(at: Numbers[int], log: Log, picoseconds: int, requests: int, times: int) -> None:
    """So many requests have waited for a token, as often."""
    row = at[Field.INTERVALS]
    log.intervals[row, 0], log.intervals[row, 1] = picoseconds, requests
    log.intervals[row, 2] = times
    at[Field.INTERVALS] += 1


@compiled
def tell_outputs(at: Numbers[int], log: Log, every_ps: int, times: int, tokens: int) -> None:
    """Tokens come from now on, as often."""
    row = at[Field.OUTPUTS]
    log.outputs[row, 0], log.outputs[row, 1] = at[Field.NOW_PS], every_ps
    log.outputs[row, 2], log.outputs[row, 3] = times, tokens
    at[Field.OUTPUTS] += 1


@compiled
def tell_prompts(at: Numbers[int], log: Log, tokens: int) -> None:
    """Prompt tokens have been computed by now."""
    row = at[Field.PROMPTS]
    log.prompts[row, 0], log.prompts[row, 1] = at[Field.NOW_PS], 0
    log.prompts[row, 2], log.prompts[row, 3] = 1, tokens
    at[Field.PROMPTS] += 1


@compiled
def tell_decoded(
    at: Numbers[int], requests: RequestColumns, queues: Queues, log: Log, late_ps: int
) -> None:
    """All that decode have emitted a token now."""
    now_ps, members, fresh = at[Field.NOW_PS], at[Field.DECODING], at[Field.FRESH]
    if members > fresh:
        interval_ps = now_ps - at[Field.EMITTED_PS]
        tell_interval(at, log, interval_ps, members - fresh, 1)
        if interval_ps > late_ps:
            at[Field.LATE_STEP] = at[Field.STEP]
    for place in range(fresh):
        tell_emitted(at, requests, log, queues.fresh[place], late_ps)
    at[Field.FRESH] = 0
    at[Field.EMITTED_PS] = now_ps
    tell_outputs(at, log, 0, 1, members)


@compiled
def tell_emitted(
    at: Numbers[int], requests: RequestColumns, log: Log, one: int, late_ps: int
) -> None:
    """A request has emitted a token now, which is not its first."""
    interval_ps = at[Field.NOW_PS] - requests.last_token_ps[one]
    tell_interval(at, log, interval_ps, 1, 1)
    if interval_ps > late_ps:
        requests.late_token[one] = 1
