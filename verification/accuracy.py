"""``python -m verification.accuracy``: the models against the Verilog, packet by packet.

The same packets and requests are run on the Verilated RTL and on the models, with seeds that no fit
has seen. The tables tell how many come in the very same cycles, and the errors of the figures that
are drawn from them.
"""

import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import click
import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from calibration.memory.cases import MEMORIES, PATTERNS
from calibration.memory.channel import StandstillError
from calibration.routers.rtl_mesh import CHECK_MESH, FIT_MESH, RtlMesh
from cosim.errors import HangError, SimulationError
from cosim.verilog import MEMORY_SOURCES, NOC_SOURCES
from tlm.calibrated import REPOSITORY, combined_hash, file_hash, source_hashes
from tlm.errors import InputError
from tlm.files import whole_file
from tlm.interconnect.handshake import DeadlockError
from verification.accuracy_cases import (
    HIGH_FRACTIONS,
    LOW_FRACTIONS,
    Alone,
    Case,
    Load,
    Memory,
    Mix,
    Point,
    Saturation,
    Stream,
)
from verification.scenes import FAMILIES
from verification.stress import FEW_MESHES, MESHES

STORED = REPOSITORY / "verification" / "accuracy.json"
DOCUMENT = REPOSITORY / "docs" / "accuracy.md"
#: Of the stored tables; no fit and no other test draws with it.
SEED = 20_261_121
_MARKS = "<!-- accuracy: begin -->\n", "<!-- accuracy: end -->"

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

_PACKET_FLITS = (1, 5, 20, 64)
_TRAFFIC = ("uniform", "transpose", "hotspot", "tornado")
_LOADED = (RtlMesh(4, 4, 2), FIT_MESH, RtlMesh(4, 4, 8), CHECK_MESH)
_RATES = (0.02, 0.08, 0.5)  # packets a node a cycle; the last one is far beyond saturation


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Error(_Record):
    """|model - RTL| / RTL of a figure over the cases of a row, in per cent."""

    mean_pct: float
    worst_pct: float
    worst_case: str


class Row(_Record):
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


class Accuracy(_Record):
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
        try:
            return cls.model_validate_json(STORED.read_text(encoding="utf-8"))
        except (OSError, ValidationError) as error:
            raise InputError(f"{STORED}: {error}; run 'make accuracy'") from error

    def changed_sources(self) -> list[str]:
        """Files that are no longer what was measured."""
        return [name for name, old in self.sources.items() if file_hash(REPOSITORY / name) != old]

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


def quick_cases(seed: int) -> list[Case]:
    """A few of all kinds, on models that other tests build too."""
    cases: list[Case] = [Alone(mesh, 200, seed) for mesh in FEW_MESHES]
    cases.append(Alone(CHECK_MESH, 20, seed))
    for stream, fractions in (
        (Stream(FIT_MESH, "uniform", 5), (*LOW_FRACTIONS, *HIGH_FRACTIONS)),
        (Stream(FIT_MESH, "hotspot", 20), (0.45, 0.9, 1.2)),
        (Stream(CHECK_MESH, "tornado", 5), (0.45, 1.2)),
    ):
        cases += [Load(stream, fraction, seed) for fraction in fractions]
        cases.append(Saturation(stream, seed))
    for mesh in FEW_MESHES:
        cases += [Mix(mesh, family, 0.08, seed) for family in ("rows", "everyone", "apart")]
        cases.append(Mix(mesh, "quarters", 0.5, seed))
    for name in MEMORIES:
        cases += [Memory(name, pattern, 5, seed) for pattern in ("random_places", "few_rows")]
        cases.append(Memory(name, "strided", None, seed))
    return cases


def all_cases(seed: int) -> list[Case]:
    """Every form, pattern, length and load."""
    cases: list[Case] = [
        Alone(mesh, 60 if mesh.rows * mesh.cols > 16 else 400, seed) for mesh in MESHES
    ]
    streams = [
        Stream(mesh, pattern, flits)
        for mesh in _LOADED
        for pattern in _TRAFFIC
        for flits in _PACKET_FLITS
    ]
    fractions = (*LOW_FRACTIONS, *HIGH_FRACTIONS)
    cases += [Load(stream, fraction, seed) for stream in streams for fraction in fractions]
    cases += [Saturation(stream, seed) for stream in streams]
    for mesh in MESHES:
        cases += [Mix(mesh, family, rate, seed) for family in FAMILIES for rate in _RATES]
    for name in MEMORIES:
        for pattern in PATTERNS:
            cases += [Memory(name, pattern, depth, seed + n) for depth in (None, 5) for n in (0, 1)]
    return cases


def measure(cases: Sequence[Case], workers: int, progress: Progress) -> list[Point]:
    """Run cases, some at a time, each a process of its own; points in the order of the cases."""
    builds = dict.fromkeys(case.rtl for case in cases)
    for rtl in progress.track(builds, description="build"):
        rtl.build()  # one at a time: a build uses every core
    with ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda case: case.measure(), cases)
        return list(progress.track(found, total=len(cases), description="run both levels"))


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


def with_tables(text: str, block: str) -> str:
    """A document with what stands between its marks ``accuracy`` replaced.

    Raises:
        InputError: if it does not have these marks.
    """
    begin, end = _MARKS
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    if not re.search(pattern, text, re.DOTALL):
        raise InputError(f"no '{begin.strip()}' with '{end}' after it in {DOCUMENT}")
    return re.sub(pattern, lambda _: begin + block + end, text, count=1, flags=re.DOTALL)


def write(accuracy: Accuracy) -> None:
    """Store the tables, and show them in `docs/accuracy.md`."""
    document = with_tables(DOCUMENT.read_text(encoding="utf-8"), markdown(accuracy))
    text = accuracy.model_dump_json(indent=1) + "\n"
    for path, content in ((STORED, text), (DOCUMENT, document)):
        with whole_file(path) as scratch:
            scratch.write_text(content, encoding="utf-8")


def _show(accuracy: Accuracy, console: Console) -> None:
    for name, rows in accuracy.tables.items():
        table = Table(*columns(name, rows), title=TITLES[name], title_justify="left")
        for row in rows:
            table.add_row(*cells(name, row, rows))
        console.print(table)


@click.command()
@click.option("--quick", is_flag=True, help="A few cases of each kind.")
@click.option("--seed", default=SEED, show_default=True, help="Seed of packets and requests.")
@click.option("--workers", default=2, show_default=True, help="Runs at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
@click.option("--write", "to_write", is_flag=True, help="Store the tables.")
def main(quick: bool, seed: int, workers: int, as_json: bool, to_write: bool) -> None:
    """Run the same packets and requests on the Verilog and on the models, and compare.

    Exit status 1 if an error is larger than its target.
    """
    begin = time.perf_counter()
    try:
        if seed < 0 or workers < 1 or (to_write and quick):
            raise InputError(
                f"accuracy: found seed {seed}, {workers} workers, --write {to_write}, "
                f"--quick {quick}; allowed: 0 or more, 1 or more, --write without --quick"
            )
        cases = quick_cases(seed) if quick else all_cases(seed)
        with Progress(console=Console(stderr=True), transient=True) as progress:
            accuracy = summary(cases, measure(cases, workers, progress), seed)
        if to_write:
            write(accuracy)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    except (HangError, StandstillError, SimulationError, DeadlockError) as error:
        print(f"check failed: {error}", file=sys.stderr)
        raise SystemExit(1) from error
    if as_json:
        print(json.dumps(accuracy.model_dump() | {"misses": accuracy.misses()}, indent=1))
    else:
        _show(accuracy, Console(width=None if sys.stdout.isatty() else 170, highlight=False))
    seconds = time.perf_counter() - begin
    print(f"{len(cases)} cases at both levels in {seconds:.0f} s", file=sys.stderr)
    for line in accuracy.misses():
        print(f"check failed: {line}", file=sys.stderr)
    if accuracy.misses():
        raise SystemExit(1)


if __name__ == "__main__":
    main()
