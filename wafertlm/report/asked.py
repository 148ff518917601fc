"""What each stored run was asked and what it found, in words: the report begins with it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from string import Formatter
from typing import Any

from wafertlm.report.stored import Error, Kernel, Results, Run, Serve
from wafertlm.report.wording import count, figure, seconds
from wafertlm.serving import ServeOptions

_QUESTIONS = {
    "kernel": "How long does {kernel} of {shape} take in {dtype} on {grid} tiles of {chip}?",
    "serve": "How does {chip} serve {model} with scheduler {scheduler}?",
    "check": "Does {kernel} of {shape} in {dtype} keep the rules on {grid} tiles of {chip}?",
    "dies": "How long does {collective} of {bytes} bytes take between the dies of {chip}?",
    "study": "How near do the models come to the figures of {name}?",
}
# Where the figures that matter begin, if not with the first.
_FOUND_FROM = {"study": "summary.predicted."}
_MOST_FOUND = 3
_DEFAULTS = {"serve": {one.name: one.default for one in fields(ServeOptions)}}


@dataclass(frozen=True, slots=True)
class Finding:
    """A run: the question, and the answer with its error.

    Attributes:
        stem: The result's name.
        run: The whole of it.
        question: What was asked.
        options: The options that were given and are not in the question.
        found: The figures that answer it, each with what it is.
        level: The level of the models, if it has one.
        shares: Per cent of the cycles that a kernel spends on each kind of work.
    """

    stem: str
    run: Run
    question: str
    options: str
    found: list[tuple[str, str]]
    level: str
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def error(self) -> Error | None:
        """How far the answer may be off."""
        return self.run.error

    @property
    def figures(self) -> list[tuple[str, str]]:
        """All that the result holds but its provenance, by name."""
        table = self.run.model_dump(exclude={"command", "provenance"})
        return [(name, _text(value)) for name, value in _leaves(table)]


def findings(results: Results) -> list[Finding]:
    """Every run: kernels of one problem together, the fastest first, then serving and the rest."""
    found = [_kernel(results, stem, run) for stem, run in _ordered(results)]
    found += [_finding(stem, run, _served(run)) for stem, run in sorted(results.serves.items())]
    return found + [_finding(stem, run, _any(run)) for stem, run in sorted(results.others.items())]


def _finding(
    stem: str, run: Run, found: list[tuple[str, str]], shares: Mapping[str, float] | None = None
) -> Finding:
    options = run.model_dump()["options"]
    question = _QUESTIONS.get(run.command, f"What does wafertlm {run.command} say?")
    said = {name for _, name, _, _ in Formatter().parse(question)} | {"level"}
    usual = _DEFAULTS.get(run.command, {})
    given = (
        f"{name} {_text(value)}"
        for name, value in options.items()
        if name not in said and value not in (None, False) and value != usual.get(name)
    )
    words: Mapping[str, Any] = defaultdict(lambda: "–", options)
    level = _text(options.get("level"))
    return Finding(
        stem, run, question.format_map(words), ", ".join(given), found, level, dict(shares or {})
    )


def _ordered(results: Results) -> list[tuple[str, Kernel]]:
    """Runs of one problem together, the fastest first; problems by their size."""

    def size(run: Kernel) -> list[int]:
        return [int(extent) for extent in run.options.shape.split(",")]

    return sorted(
        results.kernels.items(),
        key=lambda item: (size(item[1]), item[1].options.problem, item[1].cycles),
    )


def _kernel(results: Results, stem: str, run: Kernel) -> Finding:
    """A kernel's figures, against the fastest of its problem where there are several."""
    alike = [one for one in results.kernels.values() if one.options.problem == run.options.problem]
    found = [
        (count(run.cycles), "cycles"),
        (seconds(run.seconds), ""),
        (f"{figure(100 * run.utilization)} %", "utilised"),
    ]
    if len(alike) > 1:
        ratio = run.cycles / min(one.cycles for one in alike)
        found.append((f"{ratio:.2f}", f"times the fastest of {len(alike)}"))
    shares = {name: 100 * cycles / run.cycles for name, cycles in run.breakdown_cycles.items()}
    return _finding(stem, run, found, shares)


def _served(run: Serve) -> list[tuple[str, str]]:
    first, between = run.ttft_s, run.tbt_ms
    return [
        (figure(run.throughput_tok_s), "tokens a second"),
        (f"{figure(first.p50)} s", f"to the first token (p99 {figure(first.p99)} s)"),
        (f"{figure(between.p50)} ms", f"between tokens (p99 {figure(between.p99)} ms)"),
        (count(run.completed), f"of {count(run.requests)} requests completed"),
    ]


def _any(run: Run) -> list[tuple[str, str]]:
    """The first figures of a result of which no more is known."""
    start = _FOUND_FROM.get(run.command, "")
    table = run.model_dump(exclude={"command", "options", "error", "provenance"})
    leaves = ((name, value) for name, value in _leaves(table) if name.startswith(start))
    return [
        (figure(value) if type(value) in (int, float) else _text(value), name.removeprefix(start))
        for name, value in islice(leaves, _MOST_FOUND)
    ]


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every figure under its name; numbers of a list together."""
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, Sequence) and any(isinstance(one, Mapping) for one in value):
        inner = {str(number): one for number, one in enumerate(value)}.items()
    else:
        yield name, value
        return
    for key, one in inner:
        yield from _leaves(one, f"{name}.{key}" if name else str(key))


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
