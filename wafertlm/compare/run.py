"""Runs that differ in some options: figures side by side, and changes against the first run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from tlm.calibrated import load_result
from tlm.chips import find_chip
from tlm.errors import InputError
from tlm.interconnect.traffic import PATTERNS
from wafertlm.asked.mapped import ON_DIES, ON_GROUPS, ON_POOLS
from wafertlm.compare.routers import calibrate_if_need_be
from wafertlm.compare.variants import Variant
from wafertlm.iteration import IterationOptions, run_iteration
from wafertlm.iteration.run import IterationResult
from wafertlm.kernel import KernelOptions
from wafertlm.kernel.result import KernelResult
from wafertlm.kernel.run import run_setup
from wafertlm.kernel.setup import Execution, resolve
from wafertlm.noc import NocOptions, run_noc
from wafertlm.output import complete
from wafertlm.serving import ServeOptions, complete_serve, serve_result
from wafertlm.serving.interval import FIGURES
from wafertlm.stopwatch import Stopwatch
from workloads.models import find_model

#: Figures that are proportional to times, or to their inverse; the error of a time is theirs.
_TIMED = (
    "cycles", "seconds", "utilization", "memory_utilization", "accepted", "latency_cycles",
    "source_queue_cycles", "saturation",
)  # fmt: skip
#: Figures that are counted, at all levels alike.
_COUNTED = ("memory_bytes", "messages", "flit_hops", "packets", "offered")
#: Parts of a result that are no figures to compare.
_BESIDE = {
    "options", "contents", "provenance", "error", "notes", "kernels", "plan", "network", "tiles",
    "memory", "capacity", "interval", "ci95", "seconds_low", "seconds_high", "timeline",
    "cpu_s", "wall_s", "compile_s",
}  # fmt: skip
#: Experiments that check the model of the project's mesh.
_OWN_CHECKS = ("unicast", "contention", "multicast", "reduction", "traffic", "mix", "collective")


class Source(NamedTuple):
    """A part of a run's time, and how far it may be off.

    Attributes:
        share: Of the time.
        error_pct: Error of the levels; None where nothing was compared.
        rests_on: What ran, and all constants: where these are equal the errors are, too.
    """

    share: float
    error_pct: float | None
    rests_on: Any


class Ran(NamedTuple):
    """A variant's run.

    Attributes:
        result: As its command prints it.
        sources: What its time is made of.
        between: Between what figures may lie, by name, where more than kernels makes them; None of
            runs whose time is that of their kernels alone.
    """

    result: dict[str, Any]
    sources: list[Source]
    between: Mapping[str, tuple[float, float]] | None = None

    @property
    def figures(self) -> dict[str, float | None]:
        """Its figures by name; those in tables ``table.name``."""
        return dict(_flat(self.result))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Variants of a command and what came of them.

    Attributes:
        command: The command.
        variants: The variants, the first of which the others are held against.
        runs: Their runs.
    """

    command: str
    variants: Sequence[Variant]
    runs: Sequence[Ran]

    @property
    def changes(self) -> list[dict[str, Any]]:
        """Changes of all figures against the first variant; one that is not there is None."""
        first, *others = self.runs
        return [
            {"metric": metric, "variant": number, "values": self.variants[number].values}
            | change(metric, first, other)
            for number, other in enumerate(others, start=1)
            for metric in dict.fromkeys([*first.figures, *other.figures])
        ]

    def record(
        self,
        vary: Sequence[Mapping[str, Any]],
        times: Mapping[str, float],
        gates: Sequence[Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """The result as ``wafertlm compare --json`` prints it.

        Args:
            vary: What varies: ``varied``.
            gates: Gates of custom routers: ``gates_of``.
            times: What it cost: ``Stopwatch.times``.
        """
        told = [
            {"values": variant.values, "result": ran.result}
            for variant, ran in zip(self.variants, self.runs, strict=True)
        ]
        options = {"command": self.command, "vary": vary, "options": told[0]["result"]["options"]}
        figures = {"variants": told, "changes": self.changes, "gates": gates}
        return complete("compare", options, figures, times)


def run_comparison(
    command: str,
    variants: Sequence[Variant],
    watch: Stopwatch,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    quick: bool = False,
) -> Comparison:
    """Run all variants, with the same seeds and requests. Custom routers are calibrated if need be.

    Args:
        command: The command that they are of.
        variants: The variants.
        watch: Measures what it costs.
        progress: Hears of variants done, and of how many.
        quick: Routers without a calibration get a quick one.

    Raises:
        InputError: for options of a variant that do not fit together.
        CheckFailedError: if a network hangs, or its Verilog is at fault.
    """
    runs = []
    for done, variant in enumerate(variants):
        progress(done, len(variants))
        if (spec_file := getattr(variant.options, "rtl", None)) is not None:
            calibrate_if_need_be(spec_file, watch, quick=quick)
        runs.append(run_variant(command, _comparable(variant.options), watch))
    return Comparison(command=command, variants=variants, runs=runs)


def run_variant(command: str, options: Any, watch: Stopwatch) -> Ran:
    """Run a command in this process.

    Args:
        command: The command.
        options: The record of its options; custom routers have been calibrated.
        watch: Measures what it costs.

    Raises:
        InputError: for options that do not fit together.
        CheckFailedError: if a network hangs, or its Verilog is at fault.
    """
    return _RUNS[command](options, watch)


def _comparable(options: Any) -> Any:
    """Options of a run that is held against others.

    Raises:
        InputError: if its load is not that of the others.
    """
    if isinstance(options, NocOptions):
        # Of a pattern also what load it carries: on the RTL only if asked for, as many runs take
        # long.
        find = options.traffic in PATTERNS and options.level != "rtl"
        return replace(options, saturation=options.saturation or find)
    if isinstance(options, ServeOptions) and options.find_rate:
        raise InputError(
            "--find-rate: found with compare; allowed: a --rate, so that all variants have one load"
        )
    return options


def change(metric: str, first: Ran, other: Ran) -> dict[str, Any]:
    """Change of a figure in per cent, and between what the errors of the levels let it be.

    Errors of parts that rest on the same cancel; others add up. Without an error of one of those,
    or of the figure itself, the bounds are None.
    """
    before, after = first.figures.get(metric), other.figures.get(metric)
    told: dict[str, Any] = {"from": before, "to": after}
    told |= dict.fromkeys(("change_pct", "low_pct", "high_pct", "significant"))
    if before is None or after is None or (before == 0 and after != 0):
        return told
    scale = 100 / before if before else 0.0
    changed_pct = (after - before) * scale
    told["change_pct"] = changed_pct
    mine, its = _apart(first.sources, other.sources)
    here, there = _between(metric, first, mine), _between(metric, other, its)
    changes_pct: list[float] = []
    if not (mine or its) and (first.between is None or before == after):
        changes_pct = [changed_pct]
    elif here is not None and there is not None and (mine or its):
        changes_pct = [(there[0] - here[1]) * scale, (there[1] - here[0]) * scale]
    elif here is not None and there is not None:
        # Prices are the same: both runs are at the same end.
        at_ends = [100 * (a - b) / b for b, a in zip(here, there, strict=True) if b]
        changes_pct = [changed_pct, *at_ends]
    if changes_pct:
        low, high = min(changes_pct), max(changes_pct)
        told |= {"low_pct": low, "high_pct": high, "significant": low > 0 or high < 0}
    return told


def _between(metric: str, ran: Ran, sources: Sequence[Source]) -> tuple[float, float] | None:
    """Between what a run's figure may lie, by the errors of some sources; None: not known."""
    value = ran.figures[metric]
    assert value is not None
    if ran.between is not None:
        return ran.between.get(metric)
    if metric.startswith(_COUNTED):
        return value, value
    errors = [each.share * each.error_pct for each in sources if each.error_pct is not None]
    if not metric.startswith(_TIMED) or len(errors) < len(sources):
        return None
    off = abs(value) * sum(errors) / 100
    return value - off, value + off


def _apart(
    mine: Sequence[Source], its: Sequence[Source]
) -> tuple[Sequence[Source], Sequence[Source]]:
    """Sources without those that rest on the same in both runs."""
    if len(mine) != len(its):
        return mine, its
    pairs = [pair for pair in zip(mine, its, strict=True) if pair[0].rests_on != pair[1].rests_on]
    return [each for each, _ in pairs], [each for _, each in pairs]


def _flat(result: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, float | None]]:
    for name, figure in result.items():
        if not inside and name in _BESIDE:
            continue
        if isinstance(figure, Mapping):
            yield from _flat(figure, f"{inside}{name}.")
        elif figure is None or (isinstance(figure, int | float) and not isinstance(figure, bool)):
            yield inside + name, figure


def _noc(options: NocOptions, watch: Stopwatch) -> Ran:
    ran = run_noc(options, watch.compiling)
    network, level = ran.network, options.level
    if level == "at" and network.custom is not None:
        error = network.custom.worst_error_pct
    elif level == "at":
        error = max(load_result(name).max_abs_error_pct for name in _OWN_CHECKS)
    asked = asdict(options) | {"rtl": None}
    verilog = network.rtl_hash if level == "rtl" else None
    error_pct = {"rtl": 0.0, "perf": None}.get(level) if level != "at" else error
    return Ran(ran.record({}), [Source(1.0, error_pct, (asked, network.timing, verilog))])


def _kernel(options: KernelOptions, watch: Stopwatch) -> Ran:
    ran = run_setup(resolve(options), Execution(building=watch.compiling))
    return Ran(ran.record({}), [_of_kernel(ran, 1.0)])


def _of_kernel(ran: KernelResult, share: float) -> Source:
    setup = ran.setup
    unequal = None if setup.unequal is None else setup.unequal.known_by
    program = (setup.options.kernel, setup.options.choices, setup.plan, unequal)
    constants = (setup.timing, setup.cut_timing, setup.queues, setup.tile, setup.levels)
    verilog = setup.custom.rtl_hash if setup.custom and setup.levels.noc == "rtl" else None
    return Source(share, ran.error["level_pct"], (program, constants, verilog))


def _iteration(options: IterationOptions, watch: Stopwatch) -> Ran:
    ran = run_iteration(options, execution=Execution(building=watch.compiling))
    sources = []
    for each in ran.kernels:
        source = _of_kernel(each.result, each.count * each.result.cycles / ran.one_by_one)
        ends = each.result.between
        if source.error_pct is None and ends is not None:
            off = max(1 - ends.low, ends.high - 1)
            source = source._replace(error_pct=100 * off)
        sources.append(source)
    return Ran(ran.record({}), [*sources, *_between_dies(ran)])


def _between_dies(ran: IterationResult) -> Iterator[Source]:
    """What goes between dies of a wafer; at level `lt` it goes packet by packet."""
    if ran.dies is None:
        return
    links, groups = ran.dies.dies.links, ran.dies.dies.groups
    for link, count, cycles in ran.dies.links():
        off_pct = 100 * (links.between(link).high - 1) if ran.dies.level == "perf" else 0.0
        told = link, links.bytes_of(link), groups, ran.dies.level
        yield Source(count * cycles / ran.one_by_one, off_pct, told)


def _serve(options: ServeOptions, watch: Stopwatch) -> Ran:
    result = complete_serve(options, serve_result(options), {})
    chip = find_chip(options.chip, options.set).model_dump() | {"name": None}
    model = find_model(options.model).model_dump() | {"name": None}
    mapped: tuple[Any, ...] = (options.level, options.weights, options.expert_parallel)
    mapped += (options.kv_sram_tokens, options.choices, repr(result.get("residency")))
    mapped += tuple(getattr(options, name) for name in (*ON_DIES, *ON_GROUPS, *ON_POOLS))
    pools = (options.is_disaggregated, options.prefill_units, options.decode_units)
    timing = None
    if options.rtl is not None:
        from wafertlm.custom import CustomRouters  # slow to import: only for custom routers

        routers = CustomRouters.load(options.rtl)
        timing = (routers.cut(routers.timing), routers.combines)
    figures = result["interval"] or {}
    between = {
        f"{name}.mean" if isinstance(result[name], Mapping) else name: (ends["low"], ends["high"])
        for name, ends in figures.items()
        if name in FIGURES and None not in ends.values()
    }
    return Ran(result, [Source(1.0, None, (chip, model, mapped, pools, timing))], between)


_RUNS: dict[str, Callable[[Any, Stopwatch], Ran]] = {
    "noc": _noc,
    "kernel": _kernel,
    "iteration": _iteration,
    "serve": _serve,
}
