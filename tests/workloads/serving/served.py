"""Loads and models small enough that every iteration can be written down."""

from collections.abc import Callable

import numpy as np

from tlm.memory.dram.streams import load_streams
from workloads.models import SlidingWindow
from workloads.serving.engine.clock import EngineClock
from workloads.serving.engine.engine import DEFAULT_MAX_SEQUENCES, Engine
from workloads.serving.engine.kv import BlockPool, KvCache
from workloads.serving.engine.speculation import Speculation
from workloads.serving.engine.waiting import Waiting
from workloads.serving.load.traces import PS_PER_S, Trace
from workloads.serving.price.cost import Batch, DecodeCosts, Int64s, IterationCost, Work, in_sram
from workloads.serving.result.metrics import Recorder, Row, Slo
from workloads.serving.result.rows import RowWriter
from workloads.serving.schedulers import Scheduler


def streamed_share(device: str, tiles: int) -> float:
    """What long blocks get of the peak of a channel of so many tiles, as it was measured."""
    [costs] = (c for c in load_streams().costs if (c.device, c.tiles) == (device, tiles))
    return costs.lengths[-1] / costs.loads[-1]


def trace_of(*requests: tuple[float, int, int]) -> Trace:
    """A trace of (arrival in seconds, prompt, output)."""
    arrival, prompt, output = (np.array(column) for column in zip(*requests, strict=True))
    return Trace(
        np.rint(arrival * PS_PER_S).astype(np.int64),
        prompt.astype(np.int64),
        output.astype(np.int64),
    )


class LoggedModel:
    """Seconds by a function of the batch (1 by default); keeps the batches."""

    ranks = 1
    kv_capacity_tokens = 1 << 20
    kv_bytes_per_token = 8
    static_power_w = 10.0

    def __init__(
        self,
        seconds: Callable[[Batch], float] = lambda batch: 1.0,
        layers: int = 1,
        window: SlidingWindow | None = None,
        kv_sram_tokens: int = 0,
    ) -> None:
        self._seconds = seconds
        self.kv_sram_tokens = kv_sram_tokens
        self.layers = layers
        self.sliding_window = window
        self.batches: list[Batch] = []

    def cost(self, batch: Batch) -> IterationCost:
        """Time of the batch; energy and expert bytes that depend on it."""
        self.batches.append(batch)
        return IterationCost(self._seconds(batch), 0.3 * batch.new_tokens, 7.7 * batch.new_tokens)

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """Of each batch; the batches that the engine then takes are the first of them."""
        rows = sequences * width
        batches = [
            Batch((), sequences, context, rows, None, width, in_sram(context, spilled_tokens))
            for context in context_tokens.tolist()
        ]
        costs = [self.cost(batch) for batch in batches]
        seconds, energy_j = ([cost[field] for cost in costs] for field in range(2))
        return DecodeCosts(seconds, energy_j, [1] * len(costs), costs[0].expert_bytes)

    def utilization(self, work: Work, span_s: float) -> float:
        """A figure of the work."""
        return work.pair_layers / span_s


class Rows(RowWriter):
    """Keeps rows in a list, as they come."""

    def __init__(self, to: list[tuple[int, Row]]) -> None:
        self._to = to

    def add(self, index: int, row: Row) -> None:
        self._to.append((index, row))


def serve(
    trace: Trace,
    scheduler: Scheduler,
    model: LoggedModel,
    *,
    kv_tokens: int = 1 << 20,
    kv: KvCache | None = None,
    max_sequences: int = DEFAULT_MAX_SEQUENCES,
    slo: Slo | None = None,
    recorder: Recorder | None = None,
    speculation: Speculation | None = None,
    jump: bool = False,
) -> tuple[Engine, Recorder]:
    """Run to the end, one iteration after the other."""
    clock = EngineClock()
    recorder = recorder or Recorder(slo)
    engine = Engine(
        Waiting(trace),
        scheduler,
        model,
        recorder,
        kv=kv or BlockPool(kv_tokens),
        max_sequences=max_sequences,
        speculation=speculation,
        jump=jump,
    )
    clock.wake(engine)
    while clock.run(1000):
        pass
    return engine, recorder
