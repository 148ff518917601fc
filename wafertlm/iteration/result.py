"""What came of an iteration: its time, the error and the energy of it, and their origin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, cast

from tlm.level_errors import off_pct
from wafertlm.asked.iteration import IterationOptions
from wafertlm.asked.mapped import ON_DIES, ON_GROUPS
from wafertlm.energy_notes import energy_notes
from wafertlm.iteration.dies import DieIteration
from wafertlm.iteration.groups import GroupIteration
from wafertlm.iteration.plan import FLAGS
from wafertlm.iteration.wafer import Key, WaferIteration
from wafertlm.kernel.result import KernelResult
from wafertlm.kernel.setup import Ground
from wafertlm.options import contents, recorded
from wafertlm.output import complete
from wafertlm.plmr import plmr_warnings
from wafertlm.rests_on import subsystem
from workloads.machine.moved import Moved
from workloads.models import Model
from workloads.models.operators import Operator
from workloads.serving.price.energy import known_j
from workloads.serving.price.grid_layer import GridOperator
from workloads.serving.price.group_mapping import Relayout
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.plan_energy import plan_energy_j
from workloads.serving.price.residency import Residency
from workloads.serving.price.tile_price import End
from workloads.studies.profiles import profile_error

#: Options that few iterations have.
_SELDOM = ("draft_tokens", "expert_parallel", "links", *ON_DIES, *ON_GROUPS)


@dataclass(frozen=True, slots=True)
class Ran:
    """A kernel of an iteration.

    Attributes:
        operator: What it computes.
        mapped: How.
        count: How often it runs.
        result: What came of one run.
        tiles: Tiles of a group, or lines of a wafer, that run it side by side; None: of neither.
    """

    operator: Operator | GridOperator | Relayout
    mapped: Mapped
    count: int
    result: KernelResult
    tiles: int | None = None

    def cycles_at(self, end: End | None) -> float:
        """Cycles of one run, at an end of its error where that is known; None: as it ran."""
        between = None if end is None else self.result.between
        return self.result.cycles * (1.0 if between is None else getattr(between, cast(str, end)))

    def record(self) -> dict[str, Any]:
        """Its line in the result."""
        setup, tiles = self.result.setup, self.tiles or 1
        # What tiles keep of a model in off-chip memory is not read from there, nor what lies in the
        # tiles of a group.
        here = setup.place.offchip is None and (
            self.tiles is not None or setup.chip.memory is not None
        )
        moved = Moved() if here else setup.moved
        return {
            "operator": self.operator.name,
            "kernel": self.mapped.kernel,
            "shape": ",".join(map(str, self.mapped.sizes)),
            "choices": {name: True for name in FLAGS if getattr(self.mapped.choices, name)},
            "place": self.result.setup.options.grid,
            "count": self.count,
            "cycles": self.result.cycles,
            "breakdown_cycles": self.result.breakdown_cycles,
            "memory_bytes": {"read": tiles * moved.read, "written": tiles * moved.written},
            "level_pct": self.result.error["level_pct"],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationResult:
    """An iteration's figures.

    Attributes:
        options: What was asked for.
        model: The model.
        ground: Where it ran.
        kernels: Its kernels, in the order in which a layer first meets them.
        wafer: How regions work side by side, on a chip without off-chip memory.
        dies: How dies do, on a wafer of them.
        groups: How stages of a pipeline do, on groups of tiles.
        residency: What tiles keep, of a chip whose profile asks for it.
        cycles: Of all kernels, one after another but for what regions and dies do side by side.
    """

    options: IterationOptions
    model: Model
    ground: Ground
    kernels: list[Ran]
    wafer: WaferIteration | None = None
    dies: DieIteration | None = None
    groups: GroupIteration | None = None
    residency: Residency | None = None
    cycles: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cycles", round(self._cycles_at(None)))

    def _cycles_at(self, end: End | None) -> float:
        """Cycles with each kernel, and each link, at an end of its error; None: as they ran."""
        ran = [(each, each.cycles_at(end)) for each in self.kernels]
        if self.dies is not None:
            known = {each.operator: cycles for each, cycles in ran}
            return self.dies.cycles(cast(dict[Operator, float], known), end)
        if self.groups is not None:
            return self.groups.cycles({each.mapped: cycles for each, cycles in ran}.__getitem__)
        if self.wafer is None:
            return sum(each.count * cycles for each, cycles in ran)
        return self.wafer.cycles(self._of_wafer(end))

    def _of_wafer(self, end: End | None) -> Callable[[Key], float]:
        """Cycles of the kernels of a wafer's regions, at an end of their error."""
        assert self.wafer is not None
        ran = zip(self.wafer.kernels(), self.kernels, strict=True)
        return {key: each.cycles_at(end) for (key, *_), each in ran}.__getitem__

    @property
    def one_by_one(self) -> float:
        """Cycles of all that the result lists, one after another."""
        links = [] if self.dies is None else self.dies.links()
        between = sum(count * cycles for _, count, cycles in links)
        return sum(ran.count * ran.result.cycles for ran in self.kernels) + between

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.cycles / self.ground.chip.clock_hz

    @property
    def warnings(self) -> list[str]:
        """Properties of PLMR that kernels break, and what the figures of energy leave out."""
        chip = self.ground.chip
        notes = [] if chip.energy is None else energy_notes(chip, self.energy_j)
        return [*plmr_warnings(chip, (ran.result.setup.told for ran in self.kernels)), *notes]

    @property
    def energy_j(self) -> float | None:
        """Energy of the operations, and what the chip draws beside; None if it is not known."""
        energy, total = self.ground.chip.energy, 0.0
        if energy is None:
            return None
        for ran in self.kernels:
            setup = ran.result.setup
            each = plan_energy_j(setup.chip, setup.place, ran.mapped.plan, setup.macs)
            total += ran.count * each * (ran.tiles or 1)
        runs, chips = (1, 1.0) if self.dies is None else (self.dies.runs, self.dies.count)
        if self.groups is not None:
            chips = self.groups.price.share
        return known_j(total * runs + energy.idle_w * chips * self.seconds)

    @property
    def level_pct(self) -> float | None:
        """Error of the level, in per cent of the time; None if a kernel was not compared."""
        between = self.seconds_between
        if between is None or any(ran.result.error["level_pct"] is None for ran in self.kernels):
            return None
        return off_pct(self.seconds, *between)

    @property
    def seconds_between(self) -> tuple[float, float] | None:
        """Between what the seconds may be, by the error of the level; None if that is not known.

        On chips that were never held against our RTL it is that against level `at`.
        """
        found = [ran.result.between for ran in self.kernels]
        if None in found:
            return None
        hz, is_bounded = self.ground.chip.clock_hz, all(each and each.high < inf for each in found)
        high = self._cycles_at("high") / hz if is_bounded else inf
        # The time is of whole cycles: rounded it may be beyond an end that is not.
        return min(self._cycles_at("low") / hz, self.seconds), max(high, self.seconds)

    @property
    def rests_on(self) -> dict[str, dict[str, Any]]:
        """Per subsystem the share of the time, the level, and the hash of its Verilog.

        Shares are of all kernels and links, one after another.
        """
        every = [(ran.count * ran.result.cycles, ran.result.rests_on) for ran in self.kernels]
        found = every[0][1]
        for name in found:
            shares = sum(cycles * of[name]["share"] for cycles, of in every) / self.one_by_one
            level = next((of[name]["level"] for _, of in every if of[name]["level"]), None)
            found[name] = found[name] | {"share": shares, "level": level}
        if self.dies is None:
            return found
        between = 1 - sum(own["share"] for own in found.values())
        return found | {"links": subsystem(between, self.options.links or "perf", None)}

    def record(self, times: Mapping[str, float]) -> dict[str, Any]:
        """The result as ``wafertlm iteration --json`` prints it.

        Args:
            times: What it cost: ``Stopwatch.times``.
        """
        low, high = self.seconds_between or (None, None)
        why = self.ground.why_unknown
        calibration, rtl_hash = self.ground.origin()
        profile = profile_error(self.ground.compared_as or "").pct
        figures = {
            "kernels": [ran.record() for ran in self.kernels]
            + ([] if self.dies is None else self.dies.link_records()),
            "cycles": self.cycles,
            "seconds": self.seconds,
            "seconds_low": low,
            "seconds_high": high,
            "energy_j": self.energy_j,
            "error": {
                "level_pct": self.level_pct,
                "profile_pct": profile,
                "rests_on": self.rests_on,
                **({"note": why} if why else {}),
            },
            **({} if self.wafer is None else self.wafer.record(self._of_wafer(None))),
            **({} if self.dies is None else self.dies.record()),
            **({} if self.groups is None else self.groups.record()),
            **({} if self.residency is None else {"residency": self.residency.record()}),
            "warnings": self.warnings,
        }
        known = {"model": self.model, "chip": self.ground.chip}
        return complete(
            "iteration",
            _recorded(self.options, **known),
            figures,
            times,
            rtl_hash=rtl_hash,
            calibration=calibration,
            contents=contents(self.options, **known),
        )


def _recorded(options: IterationOptions, **known: Any) -> dict[str, Any]:
    """The options as a result keeps them: those of dies and groups where they are given."""
    kept = recorded(options, **known)
    if options.rtl is not None:
        kept["rtl"] = Path(options.rtl).name
    return {name: each for name, each in kept.items() if each or name not in _SELDOM}
