"""Iterations of a model, kernel by kernel."""

from collections.abc import Iterator

from wafertlm.kernel.binding import PART_NAMES
from wafertlm.report.records import Iteration, KernelOfIteration
from wafertlm.report.stored import Results
from wafertlm.report.story import Answer, Bar, Cell, Column, Grid, error_cell
from wafertlm.report.wording import between, count, figure, seconds, trust

_MOST_BARS = 12
_COLUMNS = (
    Column("operator", text=True),
    Column("kernel", text=True),
    Column("shape", text=True),
    Column("runs"),
    Column("cycles of one"),
    Column("share", "%"),
    Column("bound by", text=True),
    Column("level error", "%"),
)


def iteration_answers(results: Results) -> Iterator[Answer]:
    """An answer for each iteration."""
    for stem, run in sorted(results.iterations.items()):
        yield _answer(stem, run)


def _answer(stem: str, run: Iteration) -> Answer:
    options = run.options
    work = [f"prefill {text}" for text in options.prefill]
    work += [f"decode {options.decode}"] if options.decode else []
    kernels, whole = _largest_first(run)
    first = kernels[0]
    part = max(first.breakdown_cycles, key=lambda name: first.breakdown_cycles[name])
    return Answer(
        question=f"What does an iteration of {options.model} on {options.chip_told} "
        f"({', '.join(work) or 'no work'}) spend its time on?",
        figures=[
            (seconds(run.seconds), "an iteration"),
            (f"{100 * _cycles(first) / whole:.0f} %", f"of it {first.operator}"),
            (count(run.cycles), f"cycles at level {options.level}"),
        ],
        interval=between(run.seconds_low, run.seconds_high, seconds),
        binds=f"most time goes to {first.operator} ({first.kernel}), which is bound by "
        f"{PART_NAMES.get(part, part)}. Next: wafertlm kernel {first.kernel} --shape "
        f"{first.shape}, by itself; another mapping with compare iteration --vary.",
        trust=trust(run.error),
        stems=[stem],
        bars=iteration_bars(run),
        grids=[Grid(_COLUMNS, [_row(each, whole) for each in kernels], "All kernels", folded=True)],
    )


def iteration_bars(run: Iteration) -> list[Bar]:
    """The kernels that take longest, each with its share and what that went into."""
    kernels, whole = _largest_first(run)
    return [_bar(each, whole) for each in kernels[:_MOST_BARS]]


def largest_kernel(run: Iteration) -> str:
    """The kernel that takes longest, and its share."""
    kernels, whole = _largest_first(run)
    return f"{100 * _cycles(kernels[0]) / whole:.0f} % on {kernels[0].operator}"


def _largest_first(run: Iteration) -> tuple[list[KernelOfIteration], float]:
    """Its kernels, and the cycles that shares are of: where some wait for others, of the whole."""
    kernels = sorted(run.kernels, key=_cycles, reverse=True)
    return kernels, max(sum(map(_cycles, kernels)), run.cycles)


def _cycles(kernel: KernelOfIteration) -> float:
    """Of all its runs."""
    return kernel.count * kernel.cycles


def _bar(kernel: KernelOfIteration, whole: float) -> Bar:
    share = 100 * _cycles(kernel) / whole
    parts = sum(kernel.breakdown_cycles.values()) or 1.0
    shares = {name: share * part / parts for name, part in kernel.breakdown_cycles.items()}
    return Bar(f"{kernel.operator} ({kernel.kernel})", shares, f"{share:.1f} %")


def _row(kernel: KernelOfIteration, whole: float) -> list[str | Cell]:
    parts = kernel.breakdown_cycles
    part = max(parts, key=lambda name: parts[name])
    return [
        kernel.operator,
        kernel.kernel,
        kernel.shape,
        count(kernel.count),
        count(kernel.cycles),
        figure(100 * _cycles(kernel) / whole),
        PART_NAMES.get(part, part),
        error_cell(kernel.level_pct),
    ]
