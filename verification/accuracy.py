"""``python -m verification.accuracy``: the models against the Verilog, packet by packet.

The same packets and requests are run on the Verilated RTL and on the models, with seeds that no fit
has seen. The tables tell how many come in the very same cycles, and the errors of the figures that
are drawn from them.
"""

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from calibration.memory.cases import MEMORIES, PATTERNS
from calibration.memory.channel import StandstillError
from calibration.routers.rtl_mesh import CHECK_MESH, FIT_MESH, RtlMesh
from cosim.errors import HangError, SimulationError
from tlm.errors import InputError
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
from verification.accuracy_tables import TITLES, Accuracy, cells, columns, summary, write
from verification.scenes import FAMILIES
from verification.stress import FEW_MESHES, MESHES

#: Of the stored tables; no fit and no other test draws with it.
SEED = 20_261_121

_PACKET_FLITS = (1, 5, 20, 64)
_TRAFFIC = ("uniform", "transpose", "hotspot", "tornado")
_LOADED = (RtlMesh(4, 4, 2), FIT_MESH, RtlMesh(4, 4, 8), CHECK_MESH)
_RATES = (0.02, 0.08, 0.5)  # packets a node a cycle; the last one is far beyond saturation


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
