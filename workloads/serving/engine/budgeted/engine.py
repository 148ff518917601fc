"""An engine for schedulers that have a budget of prompt tokens: compiled, many iterations a step.

It follows the rules of `workloads.serving.engine.engine`, and leaves the same figures.
"""

from typing import NamedTuple

import numpy as np

from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.serving.engine.budgeted.core import rows_of_a_step, serve
from workloads.serving.engine.budgeted.state import (
    ENERGY_UNIT,
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
from workloads.serving.engine.engine import LONGEST_STRETCH
from workloads.serving.engine.kv import BlockPool, KvCache
from workloads.serving.load.request import Request
from workloads.serving.load.traces import MAX_TIME_PS, Trace, within_time
from workloads.serving.price.cost import Int64s, ServingModel, Work
from workloads.serving.price.tile_price import TilePrice
from workloads.serving.result.metrics import Ended as Judged
from workloads.serving.result.metrics import Recorder
from workloads.serving.result.usage import Usage
from workloads.serving.schedulers import Chunked, Continuous, Scheduler, Static

#: Of the columns of requests those that `Request` has.
_TOLD = 11
#: More have no table of prices.
_MOST_SEQUENCES = 1024
#: Rows of the log beside what a single step may add.
_ROWS = 1 << 14


class Budget(NamedTuple):
    """What prompts of an iteration have, first come first served.

    Attributes:
        tokens: Those of decoding requests among them.
        waits: Whether they wait until nobody decodes.
    """

    tokens: int
    waits: bool = False


class BudgetedEngine:
    """Serves a trace on a model.

    Args:
        trace: The requests.
        budget: Of the scheduler.
        model: Prices the stages of iterations.
        recorder: Told of every token and every finished request.
        kv: The key-value memory.
        max_sequences: Most requests admitted at a time.
    """

    due: tuple[int, int] | None = None  # by the clock

    def __init__(
        self,
        trace: Trace,
        budget: Budget,
        model: TilePrice,
        recorder: Recorder,
        kv: BlockPool,
        max_sequences: int,
    ) -> None:
        self.kv, self.usage = kv, Usage(model.layers)
        self.prefilling: list[Request] = []
        self._recorder, self._model = recorder, model
        self._stages = model.stage_table(max_sequences)
        times = np.zeros(len(self._stages.cycles), dtype=np.int64)
        known, cycles, joules = self._stages.is_known, self._stages.cycles, self._stages.joules
        self._prices = StagePrices(known, cycles, joules, times)
        self._at = np.zeros(len(Field), dtype=np.int64)
        self._at[[Field.FIRST, Field.LAST, Field.LATE_STEP]] = NOBODY
        self._at[Field.NEXT_FINISH], self._at[Field.LAST_DURATION_PS] = NEVER, 1
        self._at[[Field.FREE, Field.LEAST_FREE]] = kv.free
        self._requests = _requests(trace)
        self._queues = Queues(
            returned=_zeros(max_sequences),
            prefilling=_zeros(max_sequences),
            fresh=_zeros(max_sequences),
            chunks=_zeros(max_sequences, 2),
            pages=_zeros(BLOCK_TOKENS),
            cells=_zeros(max_sequences + 3),
        )
        rows = _ROWS + rows_of_a_step(max_sequences)
        self._log = Log(
            intervals=_zeros(rows, 3),
            outputs=_zeros(rows, 4),
            prompts=_zeros(rows, 4),
            ended=_zeros(rows),
            runs=_zeros(LONGEST_STRETCH, 3),
        )
        self._rules = Rules(
            *budget,
            max_sequences,
            kv.watermark,
            model.clock_hz,
            recorder.late_ps,
            MAX_TIME_PS,
        )

    def step(self, now_ps: int) -> int | None:
        """Go on until much is to be told, or all requests have finished.

        Returns:
            When; None: they have.

        Raises:
            InputError: if time is at its end.
        """
        at = self._at
        state = at, self._requests, self._queues, self._prices, self._log, self._rules
        while (ended := serve(*state)) == Ended.UNKNOWN:
            self._stages.find(int(at[Field.CELL]), self._model.stage)
        if ended == Ended.NO_TIME:
            raise ValueError("an iteration cannot take 0 ps")
        if ended == Ended.TOO_LONG:
            within_time(MAX_TIME_PS + 1)
        self._tell()
        if ended == Ended.FULL:
            return int(at[Field.NOW_PS])
        self._count()
        return None

    def _tell(self) -> None:
        """Tell the recorder what is in the log."""
        at, log, recorder = self._at, self._log, self._recorder
        recorder.logged(
            log.intervals[: at[Field.INTERVALS]],
            log.prompts[: at[Field.PROMPTS]],
            log.outputs[: at[Field.OUTPUTS]],
        )
        ended = log.ended[: at[Field.ENDED]]
        requests = RequestColumns(*(column[ended] for column in self._requests))
        if recorder.row is None:
            recorder.all_done(np.stack(Judged.of(requests), axis=1))
        else:
            for row in np.stack([ended, *requests[:_TOLD]], axis=1).tolist():
                recorder.done(Request(*row))
        at[[Field.INTERVALS, Field.OUTPUTS, Field.PROMPTS, Field.ENDED]] = 0

    def _count(self) -> None:
        """Count what was used, now that all requests have finished."""
        at, usage, layers = self._at.tolist(), self.usage, self._model.layers
        self._recorder.preemptions = at[Field.PREEMPTIONS]
        self.kv.free, self.kv.least_free = at[Field.FREE], at[Field.LEAST_FREE]
        usage.iterations = at[Field.ITERATIONS]
        usage.decode_iterations = at[Field.DECODE_ITERATIONS]
        usage.decoded, usage.busy_ps = at[Field.DECODED], at[Field.BUSY_PS]
        tokens, pairs, rows = (at[each] for each in (Field.TOKENS, Field.PAIRS, Field.LOGIT_ROWS))
        usage.work = Work(tokens * layers, pairs * layers, rows)
        energy_pj = at[Field.ENERGY_UNITS] * ENERGY_UNIT + at[Field.ENERGY_PJ]
        usage.energy_pj = None if at[Field.ENERGY_UNKNOWN] else energy_pj
        counted = self._stages.counted(self._prices.times, self._model.stage)
        usage.made_of, usage.expert_bytes = counted.made_of, counted.expert_bytes


def budgeted_engine(
    trace: Trace,
    scheduler: Scheduler,
    model: ServingModel,
    recorder: Recorder,
    kv: KvCache,
    max_sequences: int,
) -> BudgetedEngine | None:
    """Such an engine for a shipped scheduler that has a budget; None where there is none.

    There is none either where layers see a window, keys and values spill, or prices have no stages.
    """
    budget = None
    if type(scheduler) is Chunked and scheduler.micro_batches == 1:
        budget = Budget(scheduler.token_budget)
    elif type(scheduler) in (Continuous, Static):
        budget = Budget(NEVER, waits=type(scheduler) is Static)
    plain = isinstance(model, TilePrice) and model.sliding_window is None
    if budget is None or not plain or max_sequences > _MOST_SEQUENCES:
        return None
    if not isinstance(model, TilePrice) or not isinstance(kv, BlockPool):
        return None
    return BudgetedEngine(trace, budget, model, recorder, kv, max_sequences)


def _zeros(*shape: int) -> Int64s:
    return np.zeros(shape, dtype=np.int64)


def _requests(trace: Trace) -> RequestColumns:
    """A trace's requests, of which none has begun."""
    known = {
        "arrival_ps": trace.arrival_ps,
        "prompt_tokens": trace.prompt_tokens,
        "output_tokens": trace.output_tokens,
        "to_prefill": trace.prompt_tokens.copy(),
    }
    never = dict.fromkeys(("start_ps", "first_token_ps", "last_token_ps"), np.int64(-1))
    return RequestColumns(
        **{
            name: known[name] if name in known else np.full(len(trace), never.get(name, 0))
            for name in RequestColumns._fields
        }
    )
