"""Results of all other commands: their first figures, and traffic in its own terms."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from string import Formatter
from typing import Any

from wafertlm.report.records import Run
from wafertlm.report.stored import Results
from wafertlm.report.story import Answer
from wafertlm.report.wording import figure, plain, seconds, trust

_QUESTIONS = {
    "check": "Does {kernel} of {shape} in {dtype} keep the rules on {grid} tiles of {chip}?",
    "dies": "How long does {collective} of {bytes} bytes take between the dies of {chip}?",
    "memory": "What does {device} give under {policy} to {pattern} requests?",
    "noc": "What does a mesh of {mesh} routers carry of {what} at level {level}?",
}
#: Figures that answer, by command, each with what it is; of others the first few.
_ANSWERS: dict[str, dict[str, str]] = {
    "noc": {
        "accepted": "flits a node a cycle accepted",
        "offered": "flits a node a cycle offered",
        "latency_cycles.mean": "cycles in the network, mean",
        "latency_cycles.p99": "cycles in the network, p99",
        "saturation": "flits a node a cycle at most",
        "cycles": "cycles",
    },
    "memory": {
        "bandwidth_fraction": "of the peak bandwidth",
        "read_latency_ns.mean": "ns to read, mean",
        "row_hit_fraction": "of the accesses hit an open row",
    },
    "dies": {"seconds": "for all dies", "cycles": "cycles"},
    "check": {"holds": "all rules hold"},
}
_SATURATED = "Saturated: less than 98 % is accepted, so latencies depend on how long it ran."
_MOST_FOUND = 3


def other_answers(results: Results) -> Iterator[Answer]:
    """An answer for each result of a command that has no section of its own."""
    for stem, run in sorted(results.others.items()):
        yield _answer(stem, run)


def _answer(stem: str, run: Run) -> Answer:
    options: dict[str, Any] = run.model_dump()["options"]
    told = options | {"what": options.get("traffic") or options.get("collective")}
    question = _QUESTIONS.get(run.command, f"What does wafertlm {run.command} say?")
    said = {name for _, name, _, _ in Formatter().parse(question)} | {"traffic", "collective"}
    given = (
        f"{name} {plain(value)}"
        for name, value in options.items()
        if name not in said and value not in (None, False)
    )
    words: Mapping[str, Any] = defaultdict(
        lambda: "–", {name: plain(value) for name, value in told.items()}
    )
    saturated = getattr(run, "saturated", None) is True
    return Answer(
        question=question.format_map(words),
        figures=_found(run),
        trust=trust(run.error) if run.error is not None else "",
        warning=_SATURATED if saturated else "",
        stems=[stem],
        options=", ".join(given),
    )


def _found(run: Run) -> list[tuple[str, str]]:
    """The figures that answer, or the first of a result of which no more is known."""
    table = run.model_dump(exclude={"command", "options", "error", "provenance"})
    found = dict(leaves(table))
    known = _ANSWERS.get(run.command, {})
    some = [(_shown(found[name], name), told) for name, told in known.items() if name in found]
    return some or [(_shown(value), name) for name, value in islice(found.items(), _MOST_FOUND)]


def _shown(value: Any, name: str = "") -> str:
    if name == "seconds" and isinstance(value, float | int):
        return seconds(value)
    return figure(value) if type(value) in (int, float) else plain(value)


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every figure under its name; numbers of a list together."""
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, Sequence) and any(isinstance(one, Mapping) for one in value):
        inner = {str(number): one for number, one in enumerate(value)}.items()
    else:
        yield name, value
        return
    for key, one in inner:
        yield from leaves(one, f"{name}.{key}" if name else str(key))
