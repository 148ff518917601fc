"""A model served on a chip under a request trace or a generated load."""

from collections import Counter
from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tlm.chips import Chip
from tlm.chips.area import core_mm2
from tlm.chips.find import shipped_as as shipped_chip
from tlm.errors import InputError
from wafertlm.asked.serve import ServeOptions
from wafertlm.energy_notes import energy_notes
from wafertlm.output import Progress, complete, config_hash
from wafertlm.serving.error import rests_on, time_error
from wafertlm.serving.highest import highest_rate
from wafertlm.serving.interval import Interval, interval
from wafertlm.serving.notes import notes_of_chip, notes_of_load, notes_of_routers, warnings
from wafertlm.serving.objectives import missed
from wafertlm.serving.service import Service, mean_of_runs
from wafertlm.version import __version__
from workloads.models.find import shipped_as as shipped_model
from workloads.serving.engine.checkpoint import CHECKPOINT_EVERY_S, Checkpoint
from workloads.serving.engine.run import Watch
from workloads.serving.result.rows import RowWriter, row_file
from workloads.serving.schedulers import is_custom
from workloads.studies.campaign import sources_hash
from workloads.studies.profiles import ProfileError, profile_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a load is run, who is told of it and what is kept; changes no figure.

    Attributes:
        progress: Hears of finished and all requests of the current run.
        requests_csv: Where a row per request goes, of a single seed.
        checkpoint: Where the state of a single run is kept, which goes on from there if killed.
        checkpoint_every_s: How often.
    """

    progress: Progress | None = None
    requests_csv: Path | None = None
    checkpoint: Path | None = None
    checkpoint_every_s: float = CHECKPOINT_EVERY_S

    def check(self, options: ServeOptions) -> None:
        """Hold that the options ask for such a run.

        Raises:
            InputError: if not.
        """
        if self.requests_csv is not None and options.seeds > 1:
            raise InputError("--requests-csv: holds the requests of one run; leave out --seeds")
        if self.checkpoint is None and self.checkpoint_every_s != CHECKPOINT_EVERY_S:
            found = self.checkpoint_every_s
            raise InputError(f"--checkpoint-every: found {found}; needs --checkpoint")
        if self.checkpoint is not None and (options.seeds > 1 or options.find_rate):
            raise InputError("--checkpoint: holds one run; leave out --seeds and --find-rate")


#: Nobody is told, nothing but figures is kept.
PLAIN = Execution()


class Served(NamedTuple):
    """A load that has run.

    Attributes:
        service: What ran.
        made: What iterations were made of, and how often, by pool.
        figures: Means over the seeds.
        result: As `serve_result` returns it.
    """

    service: Service
    made: Mapping[str, Counter[Hashable]]
    figures: dict[str, Any]
    result: dict[str, Any]


def serve_result(options: ServeOptions, execution: Execution = PLAIN) -> dict[str, Any]:
    """Run the load and return the command's options and figures: `served`."""
    return served(options, execution).result


def served(options: ServeOptions, execution: Execution = PLAIN) -> Served:
    """Run the load once for each seed.

    With several seeds every figure is their mean and ``ci95`` holds the intervals. With
    ``find_rate`` the figures are those at the highest rate that attains the objectives, and
    ``capacity`` holds it and all that were tried. ``contents`` are hashes of files of a chip and a
    model, if there are any, and ``origin`` the calibration of custom routers: `complete_serve`
    takes them into where the figures come from.

    Args:
        options: What to run.
        execution: How.

    Raises:
        InputError: for options that do not fit together and unusable input.
    """
    execution.check(options)
    progress, checkpoint = execution.progress, execution.checkpoint
    service = Service(options)
    if checkpoint is not None and is_custom(options.scheduler):
        raise InputError(
            f"--checkpoint: found with {options.scheduler}, whose state it does not keep; "
            "allowed: with a shipped scheduler"
        )
    kept = None
    if checkpoint is not None:
        run = _run_name(service, execution.requests_csv is not None)
        kept = Checkpoint(checkpoint, run, execution.checkpoint_every_s)
    highest = highest_rate(service, progress) if options.find_rate else None
    rate = None if highest is None else highest.rate
    results: list[dict[str, Any]] = []
    made: dict[str, Counter[Hashable]] = {}
    for seed in options.every_seed:
        with _rows(execution.requests_csv, kept is not None) as rows:
            watch = Watch(progress, rows, kept, made)
            results.append(service.run(seed, rate, watch))
    merged = mean_of_runs(results)
    if service.custom is not None and service.custom.why_unknown(options.level):
        from wafertlm.serving.own_effect import own_effect  # slow to import: only to measure

        service = service.with_effect(own_effect(service, made))
    error = time_error(service, made)
    between = Interval(None, error.notes)
    if error.pct is not None:
        between = interval(service, merged, rate, progress)
    profile = _profile_error(service)
    held = service.contents()
    result = {
        "options": service.recorded(),
        "origin": service.origin,
        **({"contents": held} if held else {}),
        **merged,
        **_per_area(service, merged),
        **service.residency,
        **service.groups,
        "capacity": None if highest is None else highest.record(merged),
        "interval": between.figures,
        "error": {
            "level_pct": error.pct,
            "profile_pct": profile.pct,
            "rests_on": rests_on(service, made),
        },
        "warnings": warnings(service, made),
        "notes": [
            f"accuracy: {profile.told}",
            *between.notes,
            *notes_of_routers(service),
            *energy_notes(service.chip, merged["energy_j"]),
            *notes_of_load(merged),
            *missed(service, merged),
            *([] if highest is None else highest.notes(merged)),
            *notes_of_chip(service),
        ],
    }
    return Served(service, made, merged, result)


def _per_area(service: Service, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Area of the chip's cores and throughput by it, of a chip that has areas."""
    chip = service.chip
    if not isinstance(chip, Chip) or chip.area is None:
        return {}
    core = core_mm2(chip)
    if core is None:
        return {"area_mm2": None, "throughput_tok_s_mm2": None}
    area = core * chip.grid.rows * chip.grid.cols
    return {"area_mm2": area, "throughput_tok_s_mm2": figures["throughput_tok_s"] / area}


def _profile_error(service: Service) -> ProfileError:
    """How far a shipped profile is off: of one that a file or changes hold once more, too.

    With other routers a chip is not the one that was measured.
    """
    if service.is_as_published:
        chip = shipped_chip(service.chip) if service.custom is None else None
        return profile_error(chip or "", shipped_model(service.model) or "")
    return ProfileError(
        None,
        "profile_pct is null: published rows are of the models' own weights, without "
        "--expert-parallel and --draft-tokens",
    )


def _run_name(service: Service, has_rows: bool) -> str:
    """All that the state of a run hangs on."""
    rows = "rows" if has_rows else "no rows"
    asked = config_hash({"options": service.recorded(), "contents": service.contents()})
    return f"{__version__} {sources_hash()} {asked} {service.origin['rtl_hash']} {rows}"


def _rows(path: Path | None, resumable: bool) -> AbstractContextManager[RowWriter | None]:
    return nullcontext() if path is None else row_file(path, resumable=resumable)


def complete_serve(
    options: ServeOptions, figures: dict[str, Any], times: dict[str, float]
) -> dict[str, Any]:
    """The command's result object; no RTL stands behind a foreign chip but for custom routers."""
    seed = options.seed if options.is_drawn else None
    held, origin = figures.get("contents"), figures["origin"]
    shown = {name: each for name, each in figures.items() if name not in ("contents", "origin")}
    return complete("serve", shown["options"], shown, times, seed=seed, contents=held, **origin)
