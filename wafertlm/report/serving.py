"""Serving: runs of one model, chip and load side by side."""

from collections.abc import Iterator, Mapping

from wafertlm.report import serving_figures as figures
from wafertlm.report.beside import Values
from wafertlm.report.iterations import iteration_bars, largest_kernel
from wafertlm.report.records import Distribution, Iteration, Serve
from wafertlm.report.stored import Results
from wafertlm.report.story import Answer, Cell, Column, Grid, error_cell
from wafertlm.report.wording import between, count, figure, trust

_OVERLOADED = (
    "Overloaded: requests came faster than they were served, so these times hang on how many "
    "there were. Take a lower --rate, or --find-rate."
)
_BURST = (
    "The highest rate is no capacity: the load ends before queues have grown. More requests attain "
    "less."
)
# Shares from which on something is said to bind.
_MUCH_WAITING, _FULL = 0.5, 0.95
_COLUMNS = (
    Column("result", text=True),
    Column("scheduler", text=True),
    Column("rate", "requests/s"),
    Column("highest rate", "requests/s"),
    Column("attain SLOs", "%"),
    Column("goodput", "requests/s"),
    Column("first token", "s, mean"),
    Column("between tokens", "ms, mean"),
    Column("throughput", "tokens/s"),
    Column("state", text=True),
    Column("level error", "%"),
    Column("profile error", "%"),
)
_TIMES = (
    Column("result", text=True),
    Column("quantity", text=True),
    Column("unit", text=True),
    *(Column(name) for name in ("mean", "p50", "p90", "p99")),
    Column("mean lies in"),
)
_Case = tuple[str, str, str]


def serving_answers(results: Results) -> Iterator[Answer]:
    """An answer for each model, chip and load."""
    cases: dict[_Case, dict[str, Serve]] = {}
    for stem, run in sorted(results.serves.items()):
        options = run.options
        case = (options.model, options.chip_told, options.load)
        cases.setdefault(case, {})[stem] = run
    for (model, chip, _), runs in cases.items():
        known = (
            item
            for item in results.iterations.items()
            if (item[1].options.model, item[1].options.chip_told) == (model, chip)
        )
        requests = {stem: table for stem, table in results.requests.items() if stem in runs}
        yield _answer(runs, requests, next(known, None))


def _answer(
    runs: Mapping[str, Serve],
    requests: Mapping[str, Mapping[str, Values]],
    iteration: tuple[str, Iteration] | None,
) -> Answer:
    stem = min(runs, key=lambda name: _worth(runs[name]))
    best = runs[stem]
    options, capacity = best.options, best.capacity
    question = f"How does {options.chip_told} serve {options.model} under {options.load}?"
    told = [(figure(best.throughput_tok_s), f"tokens a second, {options.scheduler}")]
    interval = _between(best, "throughput_tok_s")
    if capacity is not None and not capacity.burst:
        share = f"{100 * options.attainment:g} %"
        what = f"requests a second at most, {share} of them within the SLOs, {options.scheduler}"
        told.insert(0, (figure(capacity.rate_rps), what))
        interval = ""
    elif best.goodput_rps is not None and not best.is_overloaded:
        what = f"requests a second within the SLOs, {options.scheduler}"
        told.insert(0, (figure(best.goodput_rps), what))
        interval = ""
    told += [
        (f"{figure(best.ttft_s.mean)} s", _mean("to the first token", best, "ttft_s")),
        (f"{figure(best.tbt_ms.mean)} ms", _mean("between tokens", best, "tbt_ms")),
        *_attained(best),
        (count(best.completed), f"of {count(best.requests)} requests completed"),
    ]
    warning = _OVERLOADED if best.is_overloaded else ""
    if capacity is not None and capacity.burst:
        warning = _BURST
    shown = dict(list(runs.items())[: figures.MOST_LINES])
    return Answer(
        question=question,
        figures=told,
        interval=interval,
        binds=_binds(best, iteration),
        trust=trust(best.error),
        warning=warning,
        stems=list(runs),
        bars=[] if iteration is None else iteration_bars(iteration[1]),
        grids=[
            Grid(_COLUMNS, [_row(name, run) for name, run in runs.items()]),
            Grid(
                _TIMES,
                [row for name, run in runs.items() for row in _times(name, run)],
                "Times: mean and percentiles",
                folded=True,
            ),
        ],
        panels=[
            *figures.distributions({s: requests[s] for s in shown if s in requests}, options),
            *figures.by_rate(shown),
            *figures.over_time(stem, best),
        ],
        caption="Shares of requests that were served within a time; then, where they are known, "
        "requests within the SLOs by rate, and tokens over time. SLOs are dashed.",
    )


def _worth(run: Serve) -> tuple[bool, float, float]:
    """What comes first: no overload, then requests within SLOs, then tokens a second."""
    good = run.goodput_rps or 0.0
    if run.capacity is not None:
        good = 0.0 if run.capacity.burst else run.capacity.rate_rps
    spoilt = run.is_overloaded or (run.capacity is not None and run.capacity.burst)
    return spoilt, -good, -run.throughput_tok_s


def _mean(what: str, run: Serve, name: str) -> str:
    ends = _between(run, name)
    return f"{what}, mean{f' ({ends})' if ends else ''}"


def _between(run: Serve, name: str) -> str:
    ends = run.between(name)
    return "" if ends is None else between(*ends)


def _attained(run: Serve) -> list[tuple[str, str]]:
    """The objectives, and who attains them."""
    options = run.options
    if run.slo_attainment is None:
        return []
    slos = []
    if options.slo_ttft_s is not None:
        slos.append(f"first token in {figure(options.slo_ttft_s)} s")
    if options.slo_tbt_ms is not None:
        slos.append(f"{figure(options.slo_tbt_ms)} ms between tokens")
    return [(f"{100 * run.slo_attainment:.3g} %", f"of requests attain {', '.join(slos)}")]


def _binds(run: Serve, iteration: tuple[str, Iteration] | None) -> str:
    """What binds a serving run, and what to look at next."""
    evicted, peak, room = (
        run.kv.get(name) for name in ("preemptions", "peak_tokens", "capacity_tokens")
    )
    if isinstance(evicted, int | float) and evicted > 0:
        return (
            f"bound by memory of keys and values: {count(evicted)} requests were put back. Next: "
            "fewer at once (--max-sequences), narrower --weights, or more memory."
        )
    if isinstance(peak, int) and isinstance(room, int) and peak > _FULL * room > 0:
        return "bound by memory of keys and values: it is full. Next: --max-sequences."
    queued, first = run.queue_s.mean, run.ttft_s.mean
    if queued and first and queued > _MUCH_WAITING * first:
        return (
            f"bound by waiting: {100 * queued / first:.0f} % of the time to the first token "
            "passes in the queue. Next: another --scheduler, or a lower --rate."
        )
    told = "bound by the iterations themselves, not by queues. "
    if iteration is None:
        return f"{told}Next: wafertlm iteration says which kernels they spend their time on."
    stem, made = iteration
    return f"{told}The one of {stem} spends {largest_kernel(made)}: its kernels are the bars."


def _row(stem: str, run: Serve) -> list[str | Cell]:
    options, capacity = run.options, run.capacity
    rate = options.rate_rps
    state = "overloaded" if run.is_overloaded else "keeps up"
    if capacity is not None and capacity.burst:
        state = "overload that ends in time"
    error = run.error
    return [
        stem,
        options.scheduler,
        figure(rate) if isinstance(rate, float | int) else rate or "–",
        Cell(figure(capacity.rate_rps if capacity else None), strong=True),
        figure(None if run.slo_attainment is None else 100 * run.slo_attainment),
        figure(run.goodput_rps),
        figure(run.ttft_s.mean),
        figure(run.tbt_ms.mean),
        figure(run.throughput_tok_s),
        state,
        error_cell(error.level_pct if error else None),
        error_cell(error.profile_pct if error else None),
    ]


def _times(stem: str, run: Serve) -> Iterator[list[str | Cell]]:
    of: list[tuple[str, str, str, Distribution]] = [
        ("time to first token", "s", "ttft_s", run.ttft_s),
        ("time between tokens", "ms", "tbt_ms", run.tbt_ms),
        ("end to end", "s", "e2e_s", run.e2e_s),
        ("queueing", "s", "queue_s", run.queue_s),
    ]
    for title, unit, name, times in of:
        values = [figure(each) for each in (times.mean, times.p50, times.p90, times.p99)]
        yield [stem, title, unit, *values, _between(run, name) or "–"]
