"""Tables of how far the models are from the Verilog: targets, what is kept, what is shown."""

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np

from cosim.verilog import MEMORY_SOURCES, NOC_SOURCES
from tlm.calibrated import REPOSITORY, changed_sources, combined_hash, source_hashes
from verification import stored
from verification.accuracy_cases import Case, Point
from verification.stored import StoredRecord

STORED = REPOSITORY / "verification" / "accuracy.json"
DOCUMENT = REPOSITORY / "docs" / "accuracy.md"

TITLES = {
    "alone": "Network without contention: unicasts, multicasts and reductions of 1 to 64 flits",
    "low": "Unicasts below half of saturation",
    "high": "Unicasts from 0.7 to 1.2 of saturation",
    "saturation": "Saturation throughput of the RTL in flits a node a cycle, and of the model",
    "mix": "Unicasts, multicasts and reductions mixed, up to far beyond saturation",
    "memory": "Memory channel",
}
#: Largest errors allowed, in per cent; in the tables named here everything has to be equal.
TARGETS_PCT = {
    "alone": {},
    "low": {},
    "high": {"mean latency": 1.0, "p99 latency": 3.0, "throughput": 1.0},
    "saturation": {"throughput": 1.0},
    "mix": {"mean latency": 3.0, "p99 latency": 3.0, "throughput": 3.0},
    "memory": {"bandwidth": 2.0, "mean latency": 3.0},
}  # fmt: skip
EXACT = ("alone", "low")


class Error(StoredRecord):
    """|model - RTL| / RTL of a figure over the cases of a row, in per cent."""

    mean_pct: float
    worst_pct: float
    worst_case: str


class Row(StoredRecord):
    """Cases of a kind.

    Attributes:
        name: What they have in common.
        cases: How many there are.
        events: Packets or requests in all.
        unequal: Those of which a handshake is in another cycle at the two levels.
        errors: By the name of the figure.
        values: A figure of the RTL in every case, where there is one to tell.
    """

    name: str
    cases: int
    events: int
    unequal: int
    errors: dict[str, Error]
    values: dict[str, str]

    @property
    def equal_pct(self) -> float:
        """Share of the packets or requests that come in the very same cycles."""
        return 100.0 * (self.events - self.unequal) / self.events


class Accuracy(StoredRecord):
    """Tables by name, and the Verilog, by the hash of each file, that they are about."""

    rtl_hash: str
    sources: dict[str, str]
    seed: int
    tables: dict[str, list[Row]]

    @classmethod
    def load(cls) -> Self:
        """The stored tables.

        Raises:
            InputError: if they are missing or cannot be read.
        """
        return stored.load(cls, STORED, "accuracy")

    def changed_sources(self) -> list[str]:
        """Files that are no longer what was measured."""
        return changed_sources(self.sources)

    def misses(self) -> list[str]:
        """Targets that are missed, a line each."""
        return [line for table, rows in self.tables.items() for line in _misses(table, rows)]


def _misses(table: str, rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if table in EXACT and row.unequal:
            yield f"{table}: {row.name}: {row.unequal} of {row.events} packets not equal"
        for figure, most in TARGETS_PCT[table].items():
            error = row.errors[figure]
            if error.worst_pct > most:
                yield (
                    f"{table}: {row.name}: {error.worst_case}: {figure} {error.worst_pct:.3g} % "
                    f"off, allowed {most:g} %"
                )


def summary(cases: Sequence[Case], points: Sequence[Point], seed: int) -> Accuracy:
    """The tables of what was measured."""
    grouped: dict[str, dict[str, list[Point]]] = {name: {} for name in TITLES}
    for case, point in zip(cases, points, strict=True):
        grouped[case.table].setdefault(case.row, []).append(point)
    sources = source_hashes([*NOC_SOURCES, *MEMORY_SOURCES])
    return Accuracy(
        rtl_hash=combined_hash(sources),
        sources=sources,
        seed=seed,
        tables={
            table: [_row(name, own) for name, own in rows.items()]
            for table, rows in grouped.items()
            if rows
        },
    )


def _row(name: str, points: Sequence[Point]) -> Row:
    errors = {}
    for figure in points[0].errors_pct:
        found = [point.errors_pct[figure] for point in points]
        worst = int(np.argmax(found))
        errors[figure] = Error(
            mean_pct=float(np.mean(found)),
            worst_pct=found[worst],
            worst_case=points[worst].case if found[worst] else "",
        )
    return Row(
        name=name,
        cases=len(points),
        events=sum(point.events for point in points),
        unequal=sum(point.unequal for point in points),
        errors=errors,
        values={point.case: point.value for point in points if point.value},
    )


def columns(table: str, rows: Sequence[Row]) -> list[str]:
    """Headings of a table."""
    if table == "saturation":
        return [
            "network",
            *_value_names(rows),
            "same rate",
            "throughput error: mean, worst",
            "worst case",
        ]
    what = "requests" if table == "memory" else "packets"
    figures = [f"{figure} error: mean, worst" for figure in rows[0].errors]
    return ["memory" if table == "memory" else "network", "cases", what, "equal", *figures,
            "worst case"]  # fmt: skip


def _value_names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.values))


def cells(table: str, row: Row, rows: Sequence[Row]) -> list[str]:
    """What stands in a row of a table."""
    errors = [f"{error.mean_pct:.2g} %, {error.worst_pct:.3g} %" for error in row.errors.values()]
    worst = max(row.errors.values(), key=lambda error: error.worst_pct).worst_case or "-"
    equal = "all" if not row.unequal else f"{row.equal_pct:.3f} %"
    if table == "saturation":
        values = [row.values.get(name, "-") for name in _value_names(rows)]
        return [row.name, *values, equal, *errors, worst]
    return [row.name, str(row.cases), f"{row.events:,}", equal, *errors, worst]


def markdown(accuracy: Accuracy) -> str:
    """The block of `docs/accuracy.md`."""
    parts = []
    for table, rows in accuracy.tables.items():
        headings = columns(table, rows)
        lines = [headings, ["---"] * len(headings), *(cells(table, row, rows) for row in rows)]
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts.append(f"### {TITLES[table]}\n\n{text}\n")
    parts.append(f"Seed {accuracy.seed}; Verilog with the hash `{accuracy.rtl_hash}`.\n")
    return "\n".join(parts)


def write(accuracy: Accuracy) -> None:
    """Store the tables, and show them in `docs/accuracy.md`."""
    document = stored.with_block(DOCUMENT, "accuracy", markdown(accuracy))
    stored.store({STORED: accuracy.model_dump_json(indent=1) + "\n", DOCUMENT: document})
