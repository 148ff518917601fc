"""Speed of the serving engine: requests served and iterations stepped in a CPU second."""

import multiprocessing
import resource
import time
from collections import Counter
from collections.abc import Hashable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests.bench.measure import Row
from tests.bench.network import Note
from wafertlm.asked.serve import ServeOptions
from wafertlm.serving.error import time_error
from wafertlm.serving.interval import interval
from wafertlm.serving.service import Service
from workloads.serving.engine.run import Limits, Watch, run
from workloads.serving.load.generator import Lengths, arrivals_ps, generate, sample
from workloads.serving.load.traces import PS_PER_S, Trace, load_trace
from workloads.serving.price.cost import (
    Batch,
    DecodeCosts,
    Int64s,
    IterationCost,
    ServingModel,
    Work,
)
from workloads.serving.price.models import serving_model
from workloads.serving.schedulers import Chunked

_REQUESTS_PER_S, _STEPS_PER_S = 5000.0, 50_000.0
_MOST_GB = 1.0
_OPTIONS = ServeOptions(model="llama3-8b", chip="flat32", scheduler="chunked")
_WORK = "llama3-8b on flat32, chunked"
# Of the million: they come no faster than the chip serves them.
_RATE_OF_MANY, _TO_PRICE = 4.0, 20_000
# What the public conversation trace of 2023 has: 5.53 requests a second, mean, 90th percentile and
# deviation of their lengths.
_RATE_RPS = 5.53
_PROMPT, _OUTPUT = Lengths(1155, 2734, 1109), Lengths(211, 424, 163)


class Fixed:
    """A model whose iterations all take 10 ms: what is left is the engine's own time."""

    ranks = 1
    kv_capacity_tokens = 1 << 20
    kv_sram_tokens = None
    kv_bytes_per_token = 1
    layers = 32
    sliding_window = None
    static_power_w = None

    def cost(self, batch: Batch) -> IterationCost:
        """10 ms."""
        return IterationCost(0.01, None, 0.0)

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """10 ms each."""
        return DecodeCosts([0.01], [None], [len(context_tokens)], 0.0)

    def utilization(self, work: Work, span_s: float) -> float:
        """It has no peak."""
        return 0.0


def like_conversations(requests: int) -> Trace:
    """Requests as many a second and as long as those of the public conversation trace."""
    streams = [np.random.default_rng(seed) for seed in range(3)]
    return Trace(
        arrivals_ps(requests, _RATE_RPS, 1.0, streams[0]),
        sample(_PROMPT, requests, streams[1]),
        sample(_OUTPUT, requests, streams[2]),
    )


def many_rows(requests: int, done: Note) -> list[Row]:
    """A million generated requests: how many a CPU second, generation included, and the memory.

    In a process of its own, whose memory is that of the run alone. Prices are there, as after a
    run of the same load; figures of the run are seen to be of all requests.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        rate, gigabytes = pool.submit(_many, requests).result()
    done()
    work = f"{_WORK}, {requests:,} generated"
    return [
        Row(work, "requests/CPU-s", (rate,), _REQUESTS_PER_S),
        Row(work, "GB", (gigabytes,), _MOST_GB),
    ]


def _many(requests: int) -> tuple[float, float]:
    """Requests a CPU second, and the most gigabytes of the process."""
    model = serving_model("llama3-8b", "flat32")
    _served(min(requests, _TO_PRICE), model)
    begin = time.process_time()
    completed = _served(requests, model)
    seconds = time.process_time() - begin
    if completed != requests:
        raise RuntimeError(f"{completed} of {requests} requests completed")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return requests / seconds, peak * 1024 / 1e9


def _served(requests: int, model: ServingModel) -> int:
    trace = generate("sharegpt", requests, _RATE_OF_MANY, 1.0, seed=0)
    return int(run(trace, Chunked(), model)["completed"])


def serving_rows(requests: int, runs: int, trace_file: Path | None, done: Note) -> list[Row]:
    """Requests a CPU second, chunked prefill; iterations a CPU second, stepped one by one.

    Requests are served by a model whose iterations have no prices yet, as the command does, and
    again by the same: by themselves, and with the runs at the ends of the interval.
    """
    name = f"{requests:,} conversations" if trace_file is None else trace_file.name
    rates: dict[str, list[float]] = {}
    with TemporaryDirectory() as folder:
        file = _written(like_conversations(requests), folder) if trace_file is None else trace_file
        options = replace(_OPTIONS, trace=file)
        trace = load_trace(file)
        serve(Service(replace(options, requests=200)), ends=True)  # compile
        for _ in range(runs):
            for ends in (False, True):
                service = Service(options)
                for priced in ("", ", once priced"):
                    begin = time.process_time()
                    serve(service, ends=ends)
                    rate = len(trace) / (time.process_time() - begin)
                    work = f"{_WORK}, {name}{', with its interval' * ends}{priced}"
                    rates.setdefault(work, []).append(rate)
                    done()
    steps = []
    for _ in range(runs):
        begin = time.process_time()
        found = run(trace, Chunked(), Fixed(), limits=Limits(jump=False))
        steps.append(found["iterations"] / (time.process_time() - begin))
        done()
    work = "serving, one iteration after another"
    return [
        *(
            Row(work, "requests/CPU-s", tuple(each), _REQUESTS_PER_S)
            for work, each in rates.items()
        ),
        Row(work, "iterations/CPU-s", tuple(steps), _STEPS_PER_S),
    ]


def serve(service: Service, *, ends: bool) -> None:
    """Serve as the command does, with or without the ends of the interval."""
    made: dict[str, Counter[Hashable]] = {}
    figures = service.run(0, None, Watch(made_of=made))
    if ends:
        time_error(service, made)
        interval(service, figures, None)


def _written(trace: Trace, folder: str) -> Path:
    """A file of a trace's requests."""
    file = Path(folder) / "conversations.csv"
    rows = (f"{arrival / PS_PER_S:.12f},{more[0]},{more[1]}" for arrival, *more in trace.rows())
    file.write_text("\n".join(["arrived_at,num_prefill_tokens,num_decode_tokens", *rows]))
    return file
