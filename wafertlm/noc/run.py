"""Synthetic traffic or a collective on a mesh, at the level of detail that a question needs."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosim.errors import HangError, SimulationError
from cosim.spec.project import MeshParameters
from tlm.calibrated import load_result, stale_allowed
from tlm.errors import InputError, check_range, choose
from tlm.files import is_file
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.closed_form import estimate, highest_load
from tlm.interconnect.collectives import CollectiveTraffic, group_tiles
from tlm.interconnect.handshake import DeadlockError
from tlm.interconnect.packets import Deliveries, PacketKind, Packets
from tlm.interconnect.traffic import (
    PATTERNS,
    Traffic,
    TrafficFigures,
    figures,
    highest_rate,
    parse_tile,
    read_packets,
)
from wafertlm.asked.noc import LEVELS, NocOptions, known_names
from wafertlm.noc.networks import Network, custom_network, project_network, simulate_at
from wafertlm.noc.software import addition_cycles, software_cycles
from wafertlm.options import dashed, parse_grid
from wafertlm.output import CheckFailedError, complete, log
from wafertlm.stopwatch import Building
from workloads.kernels.parts.software import KINDS as SOFTWARE
from workloads.kernels.parts.software import SoftwareCollective

if TYPE_CHECKING:  # slow to import: only for custom routers
    from wafertlm.custom import CustomRouters

COLLECTIVES = known_names()["collectives"]
_LARGEST_RTL_SIDE = 8
_LARGEST_SIDE = 1024
_ZERO_LOAD_CYCLES = 2**62
_DEEPEST_FIFO = 256
#: Of so many packets a run says so before it begins: nothing is heard of it until its end.
_MANY_PACKETS = 1_000_000
_OF_COLLECTIVES = ("group", "source", "flits")
_OF_PATTERNS = ("rate", "packet_flits", "multicast_fraction")
_HANGS = (DeadlockError, HangError)
_ON_A_COPY = (
    "on a copy: 'wafertlm show router mesh --out FOLDER'; 'wafertlm calibrate --quick "
    "--store-quick --rtl FOLDER/mesh.toml'; noc --rtl FOLDER/mesh.toml"
)


@dataclass(frozen=True, slots=True)
class NocResult:
    """What came of a run.

    Attributes:
        options: What was asked for.
        network: What it ran on.
        figures: The fields of the result. Of what hangs ``deadlock`` and the ``reason``; of a
            collective that does, ``messages`` and ``flit_hops`` are those that it asks for.
    """

    options: NocOptions
    network: Network
    figures: dict[str, Any]

    @property
    def level_pct(self) -> float | None:
        """The worst error of the level in blind checks; None of closed forms, which had none."""
        if self.options.level == "perf":
            return None
        return 0.0 if self.options.level == "rtl" else self.network.worst_error_pct

    def record(self, times: Mapping[str, float]) -> dict[str, Any]:
        """The result as ``wafertlm noc --json`` prints it.

        Args:
            times: What it cost: ``Stopwatch.times``.
        """
        return complete(
            "noc",
            self.options.recorded(),
            self.figures | {"error": {"level_pct": self.level_pct}},
            times,
            rtl_hash=self.network.rtl_hash,
            calibration=self.network.calibration,
            seed=self.options.seed if self.options.traffic in PATTERNS else None,
        )


def run_noc(options: NocOptions, building: Building = nullcontext) -> NocResult:
    """Run traffic or a collective.

    Args:
        options: What is run.
        building: The context in which Verilog is built.

    Raises:
        InputError: for options that do not fit together.
        CheckFailedError: if the RTL's data are wrong.
    """
    network = _network(options)
    if (options.traffic is None) == (options.collective is None):
        raise InputError("noc: give either --traffic or --collective")
    _hold_of_one_kind(options)
    if options.saturation and options.traffic not in PATTERNS:
        given = options.traffic or options.collective
        raise InputError(f"--saturation: found with {given}; allowed: {', '.join(PATTERNS)}")
    figures_of = _traffic if options.traffic is not None else _collective
    try:
        found = figures_of(options, network, building)
    except _HANGS as hang:
        found = _hung(hang)
    except SimulationError as error:
        raise CheckFailedError(str(error)) from error
    return NocResult(options, network, found)


def _hold_of_one_kind(options: NocOptions) -> None:
    """Hold that traffic is known, and has no options of collectives, nor others those of it."""
    traffic = options.traffic
    if traffic is not None and traffic not in PATTERNS and not is_file(Path(traffic)):
        raise InputError(f"--traffic: '{traffic}' is no file and none of {', '.join(PATTERNS)}")
    plain = NocOptions(mesh=options.mesh)
    load = "--collective" if traffic is None else f"--traffic {traffic}"
    others = {
        "--collective": () if traffic is None else _OF_COLLECTIVES,
        "a pattern of --traffic": () if traffic in PATTERNS else _OF_PATTERNS,
    }
    for allowed, names in others.items():
        for name in names:
            if (given := getattr(options, name)) != getattr(plain, name):
                told = f"{dashed(name)}: found {given} with {load}"
                raise InputError(f"{told}; allowed: with {allowed}")


def _network(options: NocOptions) -> Network:
    choose("level", options.level, LEVELS)
    rows, cols = parse_grid("--mesh", options.mesh)
    side = _LARGEST_RTL_SIDE if options.level == "rtl" else _LARGEST_SIDE
    if max(rows, cols) > side:
        raise InputError(
            f"--mesh: level {options.level} goes up to {side}x{side}, found {options.mesh}"
        )
    if options.rtl is not None:
        return _custom_network(options, options.rtl, rows, cols)
    measured = _measured_depth()
    depth = measured if options.fifo_depth is None else options.fifo_depth
    check_range("--fifo-depth", depth, 2, _DEEPEST_FIFO)
    if options.stages not in (None, 1, 2):
        raise InputError(f"--stages: found {options.stages}; allowed: 1, 2")
    mesh = replace(MeshParameters(rows, cols), fifo_depth=depth)
    if options.stages is not None:
        mesh = replace(mesh, stages=options.stages)
    if options.unprotected:
        mesh = replace(mesh, cut_through=False)
    return project_network(mesh)


def _measured_depth() -> int:
    """Depth of the buffers of rtl/noc.

    Raises:
        InputError: if its measurement is stale; of edited routers with the short way to try them.
    """
    try:
        return rtl_timing().fifo_depth
    except InputError as error:
        if not _is_edited():
            raise
        raise InputError(f"{error}, or try it in minutes {_ON_A_COPY}") from error


def _is_edited() -> bool:
    """Whether routers in Verilog are not those that were measured."""
    with stale_allowed():
        try:
            changed = load_result("unicast").changed_sources()
        except InputError:  # there is none
            return False
    return any(name.startswith("rtl/noc/") for name in changed)


def _custom_network(options: NocOptions, spec_file: str, rows: int, cols: int) -> Network:
    for name, given in (
        ("fifo-depth", options.fifo_depth is not None),
        ("stages", options.stages is not None),
        ("unprotected", options.unprotected),
    ):
        if given:
            raise InputError(f"--{name}: found with --rtl; allowed: for the project's own mesh")
    from wafertlm.custom import CustomRouters  # slow to import: only for custom routers

    routers = CustomRouters.load(spec_file)
    if options.level == "perf":
        _hold_closed_form(options, routers)
    return custom_network(rows, cols, routers)


def _hold_closed_form(options: NocOptions, routers: "CustomRouters") -> None:
    """Hold that the closed form of unicasts is that of custom routers."""
    if options.collective is not None:
        raise InputError("--collective: found with --rtl and level perf; allowed: levels rtl, at")
    if not routers.follows_closed_form:
        raise InputError(
            f"--level: found perf with {routers.spec.file}; allowed: of routers along rows first, "
            "whose flits follow each other as their links let them"
        )


def _simulate(level: str, network: Network, packets: Packets, building: Building) -> Deliveries:
    """Deliveries at level `rtl` or `at` of packets that the network can carry."""
    if level == "at":
        if len(packets) >= _MANY_PACKETS:
            log(f"level at: {len(packets):,} packets, some CPU-seconds for each million of them")
        return simulate_at(network, packets)
    return network.simulate_rtl(packets, building)


def _traffic(options: NocOptions, network: Network, building: Building) -> dict[str, Any]:
    found = asdict(_figures(options, network, building))
    if not options.saturation:
        return found

    def at(rate: float) -> TrafficFigures:
        return _figures(replace(options, rate=rate), network, building)

    highest = highest_rate(lambda rate: at(rate).saturated)
    return found | {"saturation": at(highest).accepted}


def _figures(options: NocOptions, network: Network, building: Building) -> TrafficFigures:
    assert options.traffic is not None
    rows, cols = network.rows, network.cols
    if options.traffic in PATTERNS:
        if options.rate is None:
            raise InputError("--traffic: needs --rate")
        traffic = Traffic(
            rows=rows,
            cols=cols,
            pattern=options.traffic,
            rate=options.rate,
            packet_flits=options.packet_flits,
            cycles=options.cycles,
            seed=options.seed,
            multicast_fraction=options.multicast_fraction,
            multicast_flits=min(options.packet_flits, network.bounds_flits[PacketKind.MULTICAST]),
        )
        packets, warm_up, cycles = traffic.packets(), traffic.warm_up_cycles, options.cycles
    else:
        path = Path(options.traffic)
        longest = max(network.bounds_flits[kind] for kind in (PacketKind.MULTICAST, PacketKind.SUM))
        choice, y_first = network.timing.unit_choice, network.timing.y_first
        packets = read_packets(path, rows, cols, longest, y_first=y_first, unit_choice=choice)
        warm_up, cycles = 0, int((packets.cycle + packets.flits).max())
    network.check(packets)
    if options.level == "perf":
        if (packets.kind != PacketKind.UNICAST).any():
            raise InputError("level perf knows unicast traffic only; levels that know all: rtl, at")
        # Packets of a list are no random arrivals: they are taken at zero load.
        span = cycles if options.traffic in PATTERNS else _ZERO_LOAD_CYCLES
        deliveries = estimate(packets, rows, cols, span, network.timing)
    else:
        deliveries = _simulate(options.level, network, packets, building)
    if options.traffic not in PATTERNS:  # a list of packets: until the last has come
        cycles = max(cycles, int(deliveries.tail_ejected.max()) + 1)
    found = figures(packets, deliveries, rows * cols, warm_up, cycles)
    if options.level == "perf":
        load = highest_load(packets, rows, cols, cycles, network.timing)
        found = replace(found, accepted=found.offered / max(1.0, load), saturated=load > 1)
    return found


def _collective(options: NocOptions, network: Network, building: Building) -> dict[str, Any]:
    assert options.collective is not None
    rows, cols = network.rows, network.cols
    if options.group is None or options.source is None or options.flits is None:
        raise InputError("--collective: needs --group, --source and --flits")
    choose("collective", options.collective, COLLECTIVES)
    root = parse_tile(options.source, rows, cols)
    group = group_tiles(options.group, root, rows, cols)
    collective: SoftwareCollective | CollectiveTraffic
    if options.collective in SOFTWARE:
        collective = SoftwareCollective(options.collective, rows, cols, root, group, options.flits)
    else:
        kind = PacketKind.SUM if options.collective == "reduce" else PacketKind.MULTICAST
        bound = network.bounds_flits[kind]
        collective = CollectiveTraffic(
            options.collective,
            rows,
            cols,
            root,
            group,
            options.flits,
            bound,
            network.timing.y_first,
        )
    issued = {"messages": collective.messages, "flit_hops": collective.flit_hops}
    if isinstance(collective, SoftwareCollective) and collective.reduces:
        issued["addition_cycles"] = addition_cycles(collective)
    try:
        cycles = _collective_cycles(collective, options.level, network, building)
    except _HANGS as hang:
        return {"cycles": None, **issued, **_hung(hang)}
    return {"cycles": cycles, **issued, "deadlock": False}


def _collective_cycles(
    collective: CollectiveTraffic | SoftwareCollective,
    level: str,
    network: Network,
    building: Building,
) -> int:
    if isinstance(collective, SoftwareCollective):
        return software_cycles(collective, level, network, building)
    if level == "perf":
        return collective.zero_load_cycles(network.timing)
    packets = collective.packets()
    network.check(packets)
    seen = _simulate(level, network, packets, building)
    return int(seen.tail_ejected.max() - seen.head_injected.min())


def _hung(hang: RuntimeError) -> dict[str, Any]:
    return {"deadlock": True, "reason": str(hang)}
