"""Kernels: those of one problem side by side, at all levels that they ran at."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from markupsafe import Markup

from wafertlm.kernel.binding import binding
from wafertlm.report.records import Kernel
from wafertlm.report.stored import Results
from wafertlm.report.story import Answer, Bar, Cell, Column, Grid, error_cell
from wafertlm.report.wording import count, figure, percent, plain, seconds, trust

#: From the most detailed on.
_LEVELS = ("rtl", "at", "lt", "perf")
_COLUMNS = (
    Column("kernel", text=True),
    Column("level", text=True),
    Column("cycles"),
    Column("time"),
    Column("utilised", "%"),
    Column("against the level below"),
    Column("against the fastest"),
    Column("level error", "%"),
    Column("profile error", "%"),
    Column("result", text=True),
)


def kernel_answers(results: Results, parts: Mapping[str, Sequence[Markup]]) -> Iterator[Answer]:
    """An answer for each problem, problems by their size.

    Args:
        results: The results.
        parts: Maps and timelines by the result's stem.
    """
    problems: dict[tuple[str, ...], dict[str, Kernel]] = {}
    for stem, run in results.kernels.items():
        problems.setdefault(run.options.problem, {})[stem] = run
    for problem in sorted(
        problems.values(), key=lambda runs: next(iter(runs.values())).options.size
    ):
        yield _answer(dict(sorted(problem.items(), key=lambda item: _place(item[1]))), parts)


def _place(run: Kernel) -> tuple[int, int]:
    """The most detailed first, of those the fastest."""
    level = run.options.level
    return (_LEVELS.index(level) if level in _LEVELS else len(_LEVELS), run.cycles)


def _answer(runs: Mapping[str, Kernel], parts: Mapping[str, Sequence[Markup]]) -> Answer:
    names = list(dict.fromkeys(_named(run) for run in runs.values()))
    alike = _at_one_level(runs.values())
    best = alike[0]
    options, error = best.options, best.error
    where = f"{options.shape} in {options.dtype} on {options.grid} tiles of {options.chip_told}"
    question = f"How long does {_named(best)} of {where} take?"
    figures = [
        (count(best.cycles), "cycles"),
        (seconds(best.seconds), f"at level {options.level}"),
        (f"{figure(100 * best.utilization)} %", "utilised"),
    ]
    if len(names) > 1:
        question = f"Which kernel is the fastest for {where}: {' or '.join(names)}?"
        figures[0] = (_named(best), f"{count(best.cycles)} cycles")
        figures += [
            (f"{run.cycles / best.cycles:.2f}", f"times as long, {_named(run)}")
            for run in alike[1:]
        ]
    told = ("cycles", "breakdown_cycles", "plan", "memory_utilization")
    return Answer(
        question=question,
        figures=figures,
        interval="" if error is None else _between(best.cycles, error.level_pct),
        binds=binding(best.model_dump(include=set(told))).told,
        trust=trust(error),
        stems=list(runs),
        bars=[_bar(run) for run in runs.values()],
        grids=[_levels(runs)],
        parts=[part for stem in runs for part in parts.get(stem, ())],
    )


def _at_one_level(runs: Collection[Kernel]) -> list[Kernel]:
    """The fastest run of each kernel at the level that most ran at, the fastest first."""
    by_level: dict[str, dict[str, Kernel]] = {}
    for run in sorted(runs, key=lambda run: run.cycles):
        by_level.setdefault(run.options.level, {}).setdefault(_named(run), run)
    most = max(len(found) for found in by_level.values())
    of = [found for found in by_level.values() if len(found) == most]
    return list(min(of, key=lambda found: _place(next(iter(found.values())))).values())


def _between(cycles: int, error_pct: float | None) -> str:
    """Between what the cycles lie by the levels' error, which is in per cent of those below."""
    if error_pct is None:
        return ""
    if not error_pct:
        return "exact in the checked cases"
    off = error_pct / 100
    most = f" to {count(cycles / (1 - off))}" if off < 1 else " or more"
    return f"{count(cycles / (1 + off))}{most} by the levels' error"


def _named(run: Kernel) -> str:
    """The kernel, and what was chosen of it."""
    chosen = ", ".join(f"{name} {plain(value)}" for name, value in run.options.variant.items())
    return f"{run.options.kernel} ({chosen})" if chosen else run.options.kernel


def _bar(run: Kernel) -> Bar:
    shares = {name: 100 * cycles / run.cycles for name, cycles in run.breakdown_cycles.items()}
    return Bar(f"{_named(run)}, {run.options.level}", shares, f"{count(run.cycles)} cycles")


def _levels(runs: Mapping[str, Kernel]) -> Grid:
    """Every run, against the level below it of its kernel and the fastest of its level."""
    rows: list[list[str | Cell]] = []
    ordered = sorted(runs.items(), key=lambda item: (_named(item[1]), _place(item[1])))
    for stem, run in ordered:
        below = _below(run, runs.values())
        change = None if below is None else 100 * (run.cycles - below.cycles) / below.cycles
        alike = [one.cycles for one in runs.values() if one.options.level == run.options.level]
        ratio = run.cycles / min(alike)
        error = run.error
        rows.append(
            [
                _named(run),
                run.options.level,
                Cell(count(run.cycles), strong=True),
                seconds(run.seconds),
                figure(100 * run.utilization),
                percent(change),
                f"{ratio:.2f} times" if len(alike) > 1 else "–",
                error_cell(error.level_pct if error else None),
                error_cell(error.profile_pct if error else None),
                stem,
            ]
        )
    return Grid(_COLUMNS, rows)


def _below(run: Kernel, runs: Collection[Kernel]) -> Kernel | None:
    """The same kernel at the next more detailed level that it ran at, its fastest run there."""
    level, _ = _place(run)
    more = [one for one in runs if _named(one) == _named(run) and _place(one)[0] < level]
    return min(more, key=lambda one: (-_place(one)[0], one.cycles), default=None)
