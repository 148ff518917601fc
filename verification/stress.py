"""``python -m verification.stress``: press meshes of many forms with random traffic.

Every flit that goes in and comes out is judged, the assertions of the Verilog watch, and what
happens in the routers is counted.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from calibration.routers.coverage import Coverage, empty_bins, merge, render
from calibration.routers.rtl_mesh import FIT_MESH, RtlMesh, Sink
from cosim.errors import HangError, SimulationError
from tlm.errors import InputError
from tlm.interconnect.packets import Deliveries, Packets
from verification.scenes import FAMILIES, Scene

#: The forms that a whole campaign builds; those that count cover what can happen in a router. Two
#: stages with buffers of two flits cannot stream a flit a cycle, which leaves gaps in packets.
MESHES = (
    replace(FIT_MESH, coverage=True),
    replace(FIT_MESH, y_first=True, reduce_stages=0, coverage=True),
    RtlMesh(3, 5, 8, reduce_stages=2, coverage=True),
    RtlMesh(3, 5, 2, stages=2, y_first=True, loopback=False, coverage=True),
    RtlMesh(2, 4, 4, output_depth=2, stages=2, coverage=True),
    RtlMesh(1, 6, 4, stages=2),
    RtlMesh(8, 8, 4),
)
#: The forms of a short campaign: other tests build them too.
FEW_MESHES = (FIT_MESH, MESHES[4])

RUN_PACKETS = 50_000
_MANY_PACKETS = 1_000_000  # so many meet everything
_RATES = (0.02, 0.08, 0.5)  # packets a node a cycle; the last one is far beyond saturation
_STALLS = (0.0, 0.1, 0.5, 0.85)


@dataclass(frozen=True, slots=True)
class Run:
    """A scene, and how the tiles take what it delivers."""

    scene: Scene
    sink: Sink


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run; ``failure`` is empty if all is well."""

    run: Run
    packets: int = 0
    flits: int = 0
    cycles: int = 0
    seconds: float = 0.0
    failure: str = ""
    coverage: Coverage = field(default_factory=dict)


def campaign(
    meshes: Sequence[RtlMesh], packets: int, seed: int, run_packets: int = RUN_PACKETS
) -> list[Run]:
    """Runs that make ``packets`` packets or a few more; forms and groups take turns.

    Raises:
        InputError: for less than a packet, or a negative seed.
    """
    if packets < 1 or run_packets < 1 or seed < 0:
        raise InputError(
            f"stress: found {packets} packets, {run_packets} a run, seed {seed}; "
            "allowed: 1 or more, 1 or more, 0 or more"
        )
    families = tuple(FAMILIES)
    runs = []
    for index in range(-(-packets // run_packets)):
        count = min(run_packets, packets - index * run_packets)
        mesh, family = meshes[index % len(meshes)], families[index % len(families)]
        own_seed = seed * 1000 + index
        rng = np.random.default_rng(own_seed)
        scene = Scene(mesh, count, float(rng.choice(_RATES)), family, own_seed)
        runs.append(Run(scene, Sink(stall_fraction=float(rng.choice(_STALLS)), seed=own_seed + 1)))
    return runs


def press(run: Run) -> Outcome:
    """Play one run and judge it."""
    packets = run.scene.draw()
    begin = time.perf_counter()
    try:
        seen, coverage = run.scene.mesh.simulate_covered(packets, sink=run.sink)
    except (HangError, SimulationError) as error:
        return Outcome(run, len(packets), failure=str(error))
    return Outcome(
        run,
        len(packets),
        int(packets.flits[seen.packet].sum()),
        int(seen.tail_ejected.max()),
        time.perf_counter() - begin,
        disorder(packets, seen),
        coverage,
    )


def disorder(packets: Packets, seen: Deliveries) -> str:
    """What is wrong with the order at the tiles; empty if nothing is.

    At a tile packets must not mix, and those of one source arrive in the order of sending. Of
    reductions, those of the same tiles do.
    """
    order = np.lexsort((seen.head_ejected, seen.node))
    same_node = np.diff(seen.node[order]) == 0
    gaps = seen.head_ejected[order][1:] - seen.tail_ejected[order][:-1]
    if (gaps[same_node] <= 0).any():
        at = order[np.nonzero(same_node & (gaps <= 0))[0][0]]
        return f"packet {seen.packet[at]} is mixed with another one at node {seen.node[at]}"
    # Operands of one group stand in the same order at its first tile: that one speaks for them.
    source = packets.source[seen.packet] + packets.reduces[seen.packet] * (packets.source.max() + 1)
    order = np.lexsort((seen.packet, source, seen.node))
    same_pair = (np.diff(seen.node[order]) == 0) & (np.diff(source[order]) == 0)
    overtaken = same_pair & (np.diff(seen.head_ejected[order]) <= 0)
    if overtaken.any():
        at = order[np.nonzero(overtaken)[0][0]]
        return f"packet {seen.packet[at]} was overtaken on its way to node {seen.node[at]}"
    return ""


def play(runs: Sequence[Run], workers: int = 2) -> Iterator[Outcome]:
    """Outcomes in the order of the runs; some runs go at a time, each a process of its own."""
    for mesh in dict.fromkeys(run.scene.mesh for run in runs):
        mesh.build()  # one at a time: a build uses every core
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(press, runs)


def summary(outcomes: Sequence[Outcome], wall_s: float) -> dict[str, Any]:
    """Figures of a campaign, as JSON holds them."""
    coverage = merge(outcome.coverage for outcome in outcomes)
    packets, cycles = sum(o.packets for o in outcomes), sum(o.cycles for o in outcomes)
    return {
        "runs": len(outcomes),
        "packets": packets,
        "flits_delivered": sum(outcome.flits for outcome in outcomes),
        "cycles": cycles,
        "seconds": round(wall_s, 1),
        "packets_per_s": round(packets / wall_s),
        "cycles_per_s": round(cycles / wall_s),
        "failures": [outcome.failure for outcome in outcomes if outcome.failure],
        "coverage": coverage,
        "empty_bins": empty_bins(coverage),
    }


def _runs_table(outcomes: Sequence[Outcome]) -> Table:
    table = Table("mesh", "reductions", "rate", "refusal", "packets", "cycles", "seconds", "result")
    for outcome in outcomes:
        scene = outcome.run.scene
        table.add_row(
            name_of(scene.mesh),
            scene.family,
            f"{scene.rate:g}",
            f"{outcome.run.sink.stall_fraction:g}",
            f"{outcome.packets:,}",
            f"{outcome.cycles:,}",
            f"{outcome.seconds:.1f}",
            outcome.failure or "right",
        )
    return table


def name_of(mesh: RtlMesh) -> str:
    """A mesh by its form and what is not as usual."""
    usual = RtlMesh(mesh.rows, mesh.cols, mesh.fifo_depth)
    names = ("output_depth", "stages", "y_first", "loopback", "reduce_stages")
    other = [f"{n} {getattr(mesh, n)}" for n in names if getattr(mesh, n) != getattr(usual, n)]
    return ", ".join([f"{mesh.rows}x{mesh.cols}", f"depth {mesh.fifo_depth}", *other])


@click.command()
@click.option("--packets", default=1_000_000, show_default=True, help="Packets in all.")
@click.option("--seed", default=1, show_default=True, help="Seed of traffic and refusals.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(packets: int, seed: int, as_json: bool) -> None:
    """Press meshes of many forms with random traffic and judge every flit.

    Exit status 1 if a run fails, whose wave is then kept and named, or if in a million packets
    something never happened.
    """
    try:
        # Every form has a turn, also in a short campaign.
        share = min(RUN_PACKETS, -(-packets // (2 * len(MESHES))))
        runs = campaign(MESHES, packets, seed, max(1, share))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    for mesh in MESHES:
        mesh.build()
    begin, outcomes = time.perf_counter(), []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for outcome in progress.track(play(runs), total=len(runs), description="stress"):
            outcomes.append(outcome)
    figures = summary(outcomes, time.perf_counter() - begin)
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        console.print(_runs_table(outcomes))
        console.print(render(figures["coverage"]))
        console.print(f"never happened: {', '.join(figures['empty_bins']) or 'nothing'}")
        console.print(
            f"{figures['packets']:,} packets, {figures['flits_delivered']:,} flits delivered, "
            f"{figures['cycles']:,} cycles in {figures['seconds']:,} s: "
            f"{figures['packets_per_s']:,} packets/s, {figures['cycles_per_s']:,} cycles/s"
        )
    if figures["failures"] or (packets >= _MANY_PACKETS and figures["empty_bins"]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
