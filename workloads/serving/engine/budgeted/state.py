"""What a compiled run keeps of its requests, memory and prices: a name and its meaning a line."""

from enum import IntEnum, auto
from typing import NamedTuple

from workloads.serving.price.cost import Float64s, Int64s, Truths

NOBODY = -1
NEVER = 2**63 - 1


class Ended(IntEnum):
    """Why the loop ended."""

    DONE = 0  # all requests have finished
    FULL = auto()  # the log has no room for another iteration
    UNKNOWN = auto()  # the stage of `Field.CELL` has no price
    STUCK = auto()  # nobody runs, and nobody else will come
    TOO_LONG = auto()  # time would pass `Rules.last_ps`
    NO_TIME = auto()  # an iteration would take none


class Field(IntEnum):
    """Numbers of the engine."""

    NOW_PS = 0
    PLANNED = auto()  # whether iterations are planned, but have no price yet
    STEPS = auto()  # how many
    NEXT_PS = auto()  # when somebody else will be next in line; `NEVER`
    CHUNKS = auto()  # prompt chunks of the iteration
    COMPLETE = auto()  # of these, those that complete their prompt
    CELL = auto()  # whose price is not known
    LAST_DURATION_PS = auto()  # of the last iteration of the last stretch
    TAKEN = auto()  # requests of the trace that were admitted
    RETURNED = auto()  # preempted ones that wait
    PREFILLING = auto()  # admitted ones whose prompt is not complete
    FINISHED = auto()
    PREEMPTIONS = auto()
    # Decoding requests.
    DECODING = auto()  # how many
    STEP = auto()  # iterations in which any decoded
    CONTEXT = auto()  # their tokens in the cache
    FIRST = auto()  # who joined first
    LAST = auto()  # who joined last
    NEXT_FINISH = auto()  # the step behind which the first of them ends; `NEVER`
    FRESH = auto()  # those that have not decoded yet
    EMITTED_PS = auto()  # when they decoded last
    LATE_STEP = auto()  # in which step they last did so too late
    # Memory, in blocks.
    FREE = auto()
    LEAST_FREE = auto()
    # Rows of the log.
    INTERVALS = auto()
    OUTPUTS = auto()
    PROMPTS = auto()
    ENDED = auto()
    # What was used.
    ITERATIONS = auto()
    DECODE_ITERATIONS = auto()
    DECODED = auto()
    BUSY_PS = auto()
    TOKENS = auto()
    PAIRS = auto()
    LOGIT_ROWS = auto()
    ENERGY_PJ = auto()  # modulo `ENERGY_UNIT`
    ENERGY_UNITS = auto()  # and how often that
    ENERGY_UNKNOWN = auto()  # 1: that of a stage is


ENERGY_UNIT = 1 << 61


class Rules(NamedTuple):
    """What a run goes by.

    Attributes:
        budget: Tokens of an iteration.
        waits: Whether prompts wait until nobody decodes.
        max_sequences: Requests admitted at a time.
        spare: Blocks that an admission leaves free while others run.
        clock_hz: Of the prices' cycles.
        late_ps: Longer intervals are late.
        last_ps: Time ends then.
    """

    budget: int
    waits: bool
    max_sequences: int
    spare: int
    clock_hz: float
    late_ps: int
    last_ps: int


class RequestColumns(NamedTuple):
    """Requests in order of arrival, as `load.request.Request`: each of shape (requests,)."""

    arrival_ps: Int64s
    prompt_tokens: Int64s
    output_tokens: Int64s
    to_prefill: Int64s
    prefilled: Int64s
    emitted: Int64s
    joined_step: Int64s
    start_ps: Int64s
    first_token_ps: Int64s
    last_token_ps: Int64s
    late_token: Int64s
    before: Int64s  # who joined before it, of those that decode
    behind: Int64s  # who joined behind it


class Queues(NamedTuple):
    """Requests by their numbers."""

    returned: Int64s  # shape (max_sequences,); the last one is next in line
    prefilling: Int64s  # shape (max_sequences,), first come first
    fresh: Int64s  # shape (max_sequences,), in the order in which they joined
    chunks: Int64s  # shape (max_sequences, 2): request, tokens
    pages: Int64s  # shape (BLOCK_TOKENS,): how many need a block in a step, modulo as many
    cells: Int64s  # shape (max_sequences + 3,): of the stages of an iteration


class StagePrices(NamedTuple):
    """Prices of the stages of iterations, by `price.stage_cells`."""

    is_known: Truths  # the price, which is 0 otherwise
    cycles: Float64s
    joules: Float64s
    times: Int64s  # how often the stage ran


class Log(NamedTuple):
    """What others count."""

    intervals: Int64s  # shape (rows, 3): picoseconds between tokens, requests, how often
    outputs: Int64s  # shape (rows, 4): when tokens begin, picoseconds between, how often, tokens
    prompts: Int64s  # shape (rows, 4): the same of prompts that were computed
    ended: Int64s  # shape (rows,): requests that have emitted their last token
    runs: Int64s  # shape (rows, 3): of a stretch the cell, picoseconds, how often
