"""Runs that differ in some options: figures side by side, and changes against the first run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tlm.chips import find_chip
from tlm.errors import InputError
from tlm.interconnect.traffic import PATTERNS
from tlm.level_errors import LevelStep, between
from wafertlm.asked.mapped import ON_DIES, ON_GROUPS, ON_POOLS
from wafertlm.compare.cases import Ground, Work
from wafertlm.compare.change import OnGround, Paired, Ran, Source, change
from wafertlm.compare.paired import paired
from wafertlm.compare.routers import calibrate_if_need_be
from wafertlm.compare.variants import Variant
from wafertlm.iteration import IterationOptions, run_iteration
from wafertlm.iteration.result import IterationResult
from wafertlm.kernel import KernelOptions
from wafertlm.kernel.result import KernelResult
from wafertlm.kernel.run import run_setup
from wafertlm.kernel.setup import Execution, resolve
from wafertlm.noc import NocOptions, run_noc
from wafertlm.output import Progress, complete
from wafertlm.serving import ServeOptions, complete_serve
from wafertlm.serving.interval import FIGURES
from wafertlm.serving.run import served
from wafertlm.stopwatch import Stopwatch
from workloads.models import find_model

#: Figures of a network that no calibration checks: all but cycles and mean latencies.
_UNCHECKED = (
    "accepted", "saturation", "source_queue_cycles", "latency_cycles.p", "latency_cycles.max",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Variants of a command and what came of them.

    Attributes:
        command: The command.
        variants: The variants, the first of which the others are held against.
        runs: Their runs.
        paired: Errors of the change to each of the others; None where they were not measured.
    """

    command: str
    variants: Sequence[Variant]
    runs: Sequence[Ran]
    paired: Sequence[Paired | None]

    @property
    def changes(self) -> list[dict[str, Any]]:
        """Changes of all figures against the first variant; one that is not there is None."""
        first, *others = self.runs
        return [
            {"metric": metric, "variant": number, "values": self.variants[number].values}
            | change(metric, first, other, paired)
            for number, (other, paired) in enumerate(zip(others, self.paired, strict=True), start=1)
            for metric in dict.fromkeys([*first.figures, *other.figures])
        ]

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """On what the errors of changes were measured, kernel by kernel."""
        return [
            {"variant": number} | record
            for number, paired in enumerate(self.paired, start=1)
            for record in (() if paired is None else paired.records)
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
        figures = {"variants": told, "changes": self.changes, "gates": gates, "pairs": self.pairs}
        # Of files each variant's own hash knows the content.
        held = {
            f"variant {number}": ran.result["provenance"]["config_hash"]
            for number, ran in enumerate(self.runs)
        }
        return complete("compare", options, figures, times, contents=held)


def run_comparison(
    command: str,
    variants: Sequence[Variant],
    watch: Stopwatch,
    progress: Progress = lambda done, total: None,
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
    first, *others = runs
    errors = [paired(first, other) for other in others]
    return Comparison(command=command, variants=variants, runs=runs, paired=errors)


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


def _noc(options: NocOptions, watch: Stopwatch) -> Ran:
    ran = run_noc(options, watch.compiling)
    network, off_pct = ran.network, ran.level_pct
    verilog = network.rtl_hash if options.level == "rtl" else None
    ends = None if off_pct is None else between([LevelStep.anywhere(off_pct)], 1.0, 1.0)
    asked = asdict(options) | {"rtl": None}
    source = Source(1.0, ends, (asked, network.timing, off_pct, verilog))
    # A model that is exact to the cycle has all figures right.
    return Ran(ran.record({}), [source], unchecked=_UNCHECKED if off_pct else ())


def _kernel(options: KernelOptions, watch: Stopwatch) -> Ran:
    ran = run_setup(resolve(options), Execution(building=watch.compiling))
    return Ran(ran.record({}), [_of_kernel(ran, 1.0)])


def _of_kernel(ran: KernelResult, share: float) -> Source:
    setup, custom = ran.setup, ran.setup.custom
    unequal = None if setup.unequal is None else setup.unequal.known_by
    program = (setup.options.kernel, setup.options.choices, setup.plan, unequal)
    constants = (setup.timing, setup.cut_timing, setup.queues, setup.tile, setup.levels)
    routers = None
    if custom is not None:
        routers = custom.rtl_hash if setup.levels.noc == "rtl" else custom.worst_error_pct
    source = Source(share, ran.between, (program, constants, routers))
    between = ran.between_as_compared
    if setup.unequal or setup.levels.compute != "at" or between is None:
        return source
    options, plan = setup.options, setup.plan
    choices = setup.kernel.known(options.choices)
    work = Work(options.kernel, choices, setup.place, options.sizes, plan.balance, ran.cycles)
    ground = Ground(setup.chip)
    if custom is not None:
        ground = Ground(setup.chip, setup.router, custom.worst_error_pct)
    return source._replace(kernel=OnGround(work, ground, setup.levels.noc, between))


def _iteration(options: IterationOptions, watch: Stopwatch) -> Ran:
    ran = run_iteration(options, execution=Execution(building=watch.compiling))
    kernels = (
        _of_kernel(each.result, each.count * each.result.cycles / ran.one_by_one)
        for each in ran.kernels
    )
    return Ran(ran.record({}), [*kernels, *_between_dies(ran)])


def _between_dies(ran: IterationResult) -> Iterator[Source]:
    """What goes between dies of a wafer; at level `lt` it goes packet by packet."""
    if ran.dies is None:
        return
    links, groups = ran.dies.dies.links, ran.dies.dies.groups
    for link, count, cycles in ran.dies.links():
        told = link, links.bytes_of(link), groups, ran.dies.level
        yield Source(count * cycles / ran.one_by_one, ran.dies.between(link), told)


def _serve(options: ServeOptions, watch: Stopwatch) -> Ran:
    ran = served(options)
    result = complete_serve(options, ran.result, {})
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
        cut, off_pct = routers.cut(routers.timing), routers.worst_error_pct
        timing = (routers.timing, cut, routers.combines, off_pct)
    figures = result["interval"] or {}
    known = {
        f"{name}.mean" if isinstance(result[name], Mapping) else name: (ends["low"], ends["high"])
        for name, ends in figures.items()
        if name in FIGURES and None not in ends.values()
    }
    return Ran(result, [Source(1.0, None, (chip, model, mapped, pools, timing))], known, ran)


_RUNS: dict[str, Callable[[Any, Stopwatch], Ran]] = {
    "noc": _noc,
    "kernel": _kernel,
    "iteration": _iteration,
    "serve": _serve,
}
