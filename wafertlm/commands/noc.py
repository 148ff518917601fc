"""``wafertlm noc``: synthetic traffic or a collective on a mesh of the project's routers."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table

from calibration.harness.mesh import RtlMesh
from cosim.errors import HangError, SimulationError
from tlm.calibrated import file_hash
from tlm.errors import InputError, choose
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.closed_form import estimate, highest_load
from tlm.interconnect.collectives import COLLECTIVES, CollectiveTraffic, group_tiles
from tlm.interconnect.handshake import DeadlockError
from tlm.interconnect.packets import Deliveries, PacketKind, Packets
from tlm.interconnect.traffic import PATTERNS, Traffic, figures, parse_tile, read_packets
from wafertlm.commands.common import render_names
from wafertlm.networks import Network, ProjectNetwork, own_network, simulate_at
from wafertlm.options import parse_grid
from wafertlm.output import CheckFailedError, Result, complete, emit
from wafertlm.stopwatch import Stopwatch, stopwatch

LEVELS = ("rtl", "at", "perf")
_LARGEST_RTL_SIDE = 8
_LARGEST_SIDE = 1024
_ZERO_LOAD_CYCLES = 2**62
_DEEPEST_FIFO = 256
_HANGS = (DeadlockError, HangError)


@dataclass(frozen=True, slots=True, kw_only=True)
class NocOptions:
    """Options of the command; None where not given."""

    mesh: str
    level: str = "at"
    traffic: str | None = None
    rate: float | None = None
    packet_flits: int = 4
    cycles: int = 5000
    seed: int = 0
    multicast_fraction: float = 0.0
    collective: str | None = None
    group: str | None = None
    source: str | None = None
    flits: int | None = None
    fifo_depth: int | None = None
    stages: int | None = None
    unprotected: bool = False
    rtl: str | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """A network at a level."""

    network: Network
    level: str
    watch: Stopwatch

    @property
    def rows(self) -> int:
        return self.network.rows

    @property
    def cols(self) -> int:
        return self.network.cols

    def simulate(self, packets: Packets) -> Deliveries:
        """Deliveries at level `rtl` or `at` of packets that the network can carry."""
        if self.level == "at":
            return simulate_at(self.network, packets)
        return self.network.simulate_rtl(packets, self.watch.compiling)


def noc_result(options: NocOptions, watch: Stopwatch) -> tuple[dict[str, Any], Network]:
    """Figures of a traffic run or of a collective; of what hangs ``deadlock`` and the ``reason``.

    A collective that hangs has no ``cycles``; its ``messages`` and ``flit_hops`` are those that it
    asks for.

    Raises:
        InputError: for options that do not fit together.
        CheckFailedError: if the RTL's data are wrong.
    """
    network = _network(options)
    if (options.traffic is None) == (options.collective is None):
        raise InputError("noc: give either --traffic or --collective")
    figures_of = _traffic if options.traffic is not None else _collective
    try:
        return figures_of(options, _Run(network, options.level, watch)), network
    except _HANGS as hang:
        return _hung(hang), network
    except SimulationError as error:
        raise CheckFailedError(str(error)) from error


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    names = {"traffic": PATTERNS, "collectives": COLLECTIVES, "levels": LEVELS}
    return {kind: list(known) for kind, known in names.items()}


def _network(options: NocOptions) -> Network:
    choose("level", options.level, LEVELS)
    rows, cols = parse_grid("--mesh", options.mesh)
    side = _LARGEST_RTL_SIDE if options.level == "rtl" else _LARGEST_SIDE
    if max(rows, cols) > side:
        raise InputError(
            f"--mesh: level {options.level} goes up to {side}x{side}, found {options.mesh}"
        )
    if options.rtl is not None:
        return _own_network(options, rows, cols)
    depth = rtl_timing().fifo_depth if options.fifo_depth is None else options.fifo_depth
    if not 2 <= depth <= _DEEPEST_FIFO:
        raise InputError(f"--fifo-depth: found {depth}; allowed: 2 to {_DEEPEST_FIFO}")
    if options.stages not in (None, 1, 2):
        raise InputError(f"--stages: found {options.stages}; allowed: 1, 2")
    mesh = RtlMesh(
        rows,
        cols,
        depth,
        stages=options.stages or 1,
        cut_through=not options.unprotected,
        wave_on_failure=False,
    )
    return ProjectNetwork(rows, cols, mesh)


def _own_network(options: NocOptions, rows: int, cols: int) -> Network:
    assert options.rtl is not None
    for name, given in (
        ("fifo-depth", options.fifo_depth is not None),
        ("stages", options.stages is not None),
        ("unprotected", options.unprotected),
        ("level perf", options.level == "perf"),
    ):
        if given:
            raise InputError(f"--{name}: found with --rtl; allowed: for the project's own mesh")
    return own_network(options.rtl, rows, cols)


def _traffic(options: NocOptions, run: _Run) -> dict[str, Any]:
    assert options.traffic is not None
    if options.traffic in PATTERNS:
        if options.rate is None:
            raise InputError("--traffic: needs --rate")
        traffic = Traffic(
            rows=run.rows,
            cols=run.cols,
            pattern=options.traffic,
            rate=options.rate,
            packet_flits=options.packet_flits,
            cycles=options.cycles,
            seed=options.seed,
            multicast_fraction=options.multicast_fraction,
            multicast_flits=min(
                options.packet_flits, run.network.bound_flits(PacketKind.MULTICAST)
            ),
        )
        packets, warm_up, cycles = traffic.packets(), traffic.warm_up_cycles, options.cycles
    else:
        path = Path(options.traffic)
        if not path.is_file():
            raise InputError(
                f"--traffic: '{options.traffic}' is no file and none of {', '.join(PATTERNS)}"
            )
        longest = max(
            run.network.bound_flits(kind) for kind in (PacketKind.MULTICAST, PacketKind.SUM)
        )
        packets = read_packets(path, run.rows, run.cols, longest)
        warm_up, cycles = 0, int((packets.cycle + packets.flits).max())
    run.network.check(packets)
    if run.level == "perf":
        if (packets.kind != PacketKind.UNICAST).any():
            raise InputError("level perf knows unicast traffic only; levels that know all: rtl, at")
        # Packets of a list are no random arrivals: they are taken at zero load.
        span = cycles if options.traffic in PATTERNS else _ZERO_LOAD_CYCLES
        deliveries = estimate(packets, run.rows, run.cols, span, run.network.timing)
    else:
        deliveries = run.simulate(packets)
    if options.traffic not in PATTERNS:  # a list of packets: until the last has come
        cycles = max(cycles, int(deliveries.tail_ejected.max()) + 1)
    found = figures(packets, deliveries, run.rows * run.cols, warm_up, cycles)
    if run.level == "perf":
        load = highest_load(packets, run.rows, run.cols, cycles)
        found = replace(found, accepted=found.offered / max(1.0, load), saturated=load > 1)
    return asdict(found)


def _collective(options: NocOptions, run: _Run) -> dict[str, Any]:
    assert options.collective is not None
    if options.group is None or options.source is None or options.flits is None:
        raise InputError("--collective: needs --group, --source and --flits")
    root = parse_tile(options.source, run.rows, run.cols)
    collective = CollectiveTraffic(
        kind=options.collective,
        rows=run.rows,
        cols=run.cols,
        root=root,
        group=group_tiles(options.group, root, run.rows, run.cols),
        flits=options.flits,
        bound_flits=run.network.bound_flits(
            PacketKind.SUM if options.collective == "reduce" else PacketKind.MULTICAST
        ),
    )
    issued = {"messages": collective.messages, "flit_hops": collective.flit_hops}
    try:
        cycles = _collective_cycles(collective, run)
    except _HANGS as hang:
        return {"cycles": None, **issued, **_hung(hang)}
    return {"cycles": cycles, **issued, "deadlock": False}


def _collective_cycles(collective: CollectiveTraffic, run: _Run) -> int:
    if run.level == "perf":
        return collective.zero_load_cycles(run.network.timing)
    asked = collective.rounds()
    for packets in asked:
        run.network.check(packets)
    rounds = [run.simulate(packets) for packets in asked]
    spans = [int(seen.tail_ejected.max() - seen.head_injected.min()) for seen in rounds]
    # What has come in one cycle goes on in the next.
    return sum(spans) + len(spans) - 1


def _hung(hang: RuntimeError) -> dict[str, Any]:
    return {"deadlock": True, "reason": str(hang)}


def _recorded(options: NocOptions) -> dict[str, Any]:
    """The options as a result keeps them: a file of packets by its content."""
    recorded = asdict(options)
    if options.traffic is not None and options.traffic not in PATTERNS:
        path = Path(options.traffic)
        recorded["traffic"] = f"{path.name} {file_hash(path)}"
    if options.rtl is not None:
        recorded["rtl"] = Path(options.rtl).name
    return recorded


def _render(result: Result) -> RenderableType:
    options = result["options"]
    what = options["traffic"] or options["collective"]
    table = Table("figure", "value", title=f"{what} on {options['mesh']}, level {options['level']}")
    for name, value in result.items():
        if isinstance(value, bool | int | float):
            table.add_row(name, f"{value:,.6g}" if not isinstance(value, bool) else str(value))
        elif name == "latency_cycles":
            for part, cycles in value.items():
                table.add_row(f"latency_cycles {part}", f"{cycles:,.6g}")
    return Group(table)


@click.command("noc")
@click.option("--mesh", help="ROWSxCOLS.")
@click.option("--level", default="at", show_default=True, help="rtl, at or perf.")
@click.option("--traffic", help="A pattern, or a CSV file cycle,source,destinations,flits,kind.")
@click.option("--rate", type=float, help="Flits a node creates a cycle.")
@click.option("--packet-flits", type=int, default=4, show_default=True, help="Flits of a packet.")
@click.option("--cycles", type=int, default=5000, show_default=True, help="Cycles of creation.")
@click.option("--multicast-fraction", type=float, default=0.0, help="Share of multicasts.")
@click.option("--collective", help="A collective instead of traffic.")
@click.option("--group", help="row, column, all or r0:r1,c0:c1 (half-open).")
@click.option("--source", help="ROW,COL of the collective's root.")
@click.option("--flits", type=int, help="Payload flits of the collective.")
@click.option("--fifo-depth", type=int, help="Flits a router buffer holds.")
@click.option("--stages", type=int, help="1 or 2 cycles an input; 1 if not given.")
@click.option(
    "--unprotected", is_flag=True, help="Without cut-through: multicasts are not cut, and may hang."
)
@click.option("--rtl", metavar="SPEC", help="A mesh of your own, calibrated by its SPEC.toml.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the traffic.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--list", "as_list", is_flag=True, help="Print what the options may name.")
def command(as_json: bool, as_list: bool, **given: Any) -> None:
    """Run traffic or a collective on a mesh of the project's routers, or of your own."""
    if as_list:
        emit(known_names(), as_json, render_names)
        return
    if given["mesh"] is None:
        raise InputError("--mesh: not given; write ROWSxCOLS, such as 4x4")
    options = NocOptions(**given)
    with stopwatch() as watch:
        result, network = noc_result(options, watch)
    seed = options.seed if options.traffic in PATTERNS else None
    whole = complete(
        "noc",
        _recorded(options),
        result,
        watch.times,
        rtl_hash=network.rtl_hash,
        calibration=network.calibration,
        seed=seed,
    )
    emit(whole, as_json, _render)
    if result.get("deadlock"):
        raise CheckFailedError(f"deadlock: {result['reason']}")
