"""What a serving run is asked for."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tlm.errors import InputError, check_range, choose, hold_least
from wafertlm.asked import shared
from wafertlm.asked.mapped import ON_POOLS, ROUTINGS
from wafertlm.options import NAME_OR_FILE, Flag, dashed, parse_group
from workloads.serving.schedulers import SCHEDULERS, is_custom

if TYPE_CHECKING:  # slow to import: only to run
    from workloads.kernels.catalogue import Choices
    from workloads.serving.result.metrics import Slo

DISAGGREGATION = "pd-disaggregation"
ALL_SCHEDULERS = tuple(sorted((*SCHEDULERS, DISAGGREGATION)))
#: Levels that price iterations on tiles.
LEVELS = ("perf", "lt", "at")
#: Options that choose variants of kernels on tiles.
MAPPED = ("collective", "schedule", "group")
#: A run for each; a mean of more tells no more.
_MOST_SEEDS = 1000
# Options that are of use with another only.
_NEEDS = {"arrival_cv": "workload", "acceptance": "draft_tokens", "attainment": "find_rate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """A model, where it is served, and under which load; None where not given."""

    model: Annotated[
        str, "Model to serve: a shipped one, a TOML file, or a config.json.", NAME_OR_FILE
    ]
    chip: Annotated[str, "Chip to serve it on: a shipped one, or a TOML file.", NAME_OR_FILE]
    scheduler: Annotated[
        str,
        "Scheduling policy: a shipped one, or a class of a file.",
        Flag(metavar="NAME|FILE.py:CLASS"),
    ] = "chunked"
    level: Annotated[str, "Level that prices iterations on tiles: perf, lt or at."] = "perf"
    weights: Annotated[
        str | None, "Width of all weights: bf16, fp16, fp8, fp4; default: as shipped."
    ] = None
    expert_parallel: Annotated[
        int | None, "Groups of GPUs, or dies of a group, that whole experts are dealt out to."
    ] = None
    tp: shared.Tensor = None
    pp: shared.Pipeline = None
    dp: shared.Replicas = None
    micro_batch: shared.MicroBatch = None
    partition: shared.Partition = None
    placement: shared.Placement = None
    stage_rows: shared.StageRows = None
    prefill_tp: Annotated[int | None, "--tp of the prefill pool, if another."] = None
    prefill_pp: Annotated[int | None, "--pp of the prefill pool, if another."] = None
    prefill_dp: Annotated[int | None, "--dp of the prefill pool, if another."] = None
    decode_tp: Annotated[int | None, "--tp of the decode pool, if another."] = None
    decode_pp: Annotated[int | None, "--pp of the decode pool, if another."] = None
    decode_dp: Annotated[int | None, "--dp of the decode pool, if another."] = None
    pd_placement: Annotated[
        str | None, "Pipelines of the pools: pp-first (default), dp-first or sides."
    ] = None
    decode_chip: Annotated[
        str | None, "Chip whose cores decode, on the same network.", NAME_OR_FILE
    ] = None
    routing: shared.Routing = None
    merge_copies: shared.MergeCopies = False
    overlap: shared.Overlap = False
    trace: Annotated[Path | None, "CSV or .jsonl file of requests."] = None
    workload: Annotated[
        str | None, "Generated requests with the lengths of a data set, or all alike: fixed:IN:OUT."
    ] = None
    rate_rps: Annotated[
        float | None, "Generated requests a second; inf: offline.", Flag("--rate")
    ] = None
    arrival_cv: Annotated[
        float, "Spread of the gaps between arrivals, over their mean; 1 is Poisson."
    ] = 1.0
    requests: Annotated[int | None, "Requests to generate, or to take from the trace."] = None
    rate_scale: Annotated[float, "Factor on the rate of arrivals: 2 is twice as fast."] = 1.0
    slo_ttft_s: Annotated[
        float | None, "Objective (SLO) for the first token, s.", Flag("--slo-ttft")
    ] = None
    slo_tbt_ms: Annotated[
        float | None, "Objective (SLO) between tokens, ms.", Flag("--slo-tbt")
    ] = None
    seed: Annotated[int, "Seed of what is drawn."] = 0
    seeds: Annotated[int, "Runs, with a seed each; figures are means, with 95 % intervals."] = 1
    token_budget: Annotated[
        int | None,
        "Tokens of an iteration (chunked: 512), a wavefront (layered: 8192), a chunk (pd-fusion).",
    ] = None
    layer_groups: Annotated[int | None, "Groups of layers (layered); default: by length."] = None
    budget_units: Annotated[int | None, "Budget of an iteration (pd-fusion)."] = None
    chunk_units: Annotated[int | None, "Price of a prompt chunk (pd-fusion)."] = None
    prefill_scheduler: Annotated[
        str | None, "Of the prefill pool (pd-disaggregation): chunked."
    ] = None
    prefill_units: Annotated[int | None, "GPUs, tiles or dies for prefill; default: half."] = None
    decode_units: Annotated[int | None, "GPUs, tiles or dies that decode; default: rest."] = None
    link_bytes_per_s: Annotated[float | None, "Bandwidth between the pools, bytes a second."] = None
    link_latency_s: Annotated[float | None, "Latency between the pools, s."] = None
    kv_tokens: Annotated[
        int | None, "Tokens that key-value memory holds, instead of what weights leave."
    ] = None
    kv_sram_tokens: Annotated[
        int | None, "Tokens that SRAM holds first; what is more spills to it."
    ] = None
    max_sequences: Annotated[int, "Most requests that run at once; on a wafer, on each die."] = (
        256  # the engine's
    )
    draft_tokens: Annotated[int | None, "Speculative decoding: tokens of a draft."] = None
    acceptance: Annotated[float, "Chance that a drafted token is right."] = 0.7
    find_rate: Annotated[bool, "Find the highest rate that attains the SLOs."] = False
    attainment: Annotated[float, "Share of requests that must attain the SLOs."] = 0.9
    collective: shared.Collective = None
    schedule: shared.Schedule = None
    group: shared.Group = None
    rtl: shared.Network = None
    set: shared.Set = ()

    @property
    def is_disaggregated(self) -> bool:
        """Whether prefill and decoding have pools of their own."""
        return self.scheduler == DISAGGREGATION

    @property
    def is_drawn(self) -> bool:
        """Whether anything is drawn from the seed: requests, or which drafts are right."""
        return self.workload is not None or self.draft_tokens is not None

    @property
    def every_seed(self) -> range:
        """A seed for each run."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def choices(self) -> "Choices":
        """Variants of kernels on tiles.

        Raises:
            InputError: if rows and columns of a group are not numbers.
        """
        from workloads.kernels.catalogue import Choices

        group = parse_group(self.group)
        return Choices(self.collective, schedule=self.schedule, group=group)

    @property
    def slo(self) -> "Slo":
        """What requests should attain."""
        from workloads.serving.result.metrics import Slo

        return Slo(self.slo_ttft_s, self.slo_tbt_ms)

    def check(self) -> None:
        """Refuse what does not fit together.

        Raises:
            InputError: naming the option, what was found and what is allowed.
        """
        from workloads.kernels.attention.flat_plan import SCHEDULES
        from workloads.kernels.parts.collectives import METHODS
        from workloads.models import DTYPE_BYTES

        if not is_custom(self.scheduler):
            choose("scheduler", self.scheduler, ALL_SCHEDULERS)
        if self.level not in LEVELS:
            raise InputError(f"--level: found '{self.level}'; allowed: {', '.join(LEVELS)}")
        if self.weights is not None:
            choose("weights", self.weights, tuple(DTYPE_BYTES))
        if self.collective is not None:
            choose("collective", self.collective, METHODS)
        if self.schedule is not None:
            choose("schedule", self.schedule, SCHEDULES)
        self._check_load()
        self._check_pools()
        self._check_use()
        _at_least("--kv-tokens", self.kv_tokens, 1)
        _at_least("--kv-sram-tokens", self.kv_sram_tokens, 0)
        for name, slo in (("--slo-ttft", self.slo_ttft_s), ("--slo-tbt", self.slo_tbt_ms)):
            if slo is not None and not 0 < slo < math.inf:
                raise InputError(f"{name}: found {slo}; allowed: positive and finite")
        if self.find_rate and not self.slo.is_set:
            raise InputError("--find-rate: needs objectives; give --slo-ttft or --slo-tbt")
        if self.find_rate and self.rate_rps is not None and not self.rate_rps < math.inf:
            raise InputError(f"--rate: found {self.rate_rps}; allowed with --find-rate: finite")

    def _check_load(self) -> None:
        if (self.trace is None) == (self.workload is None):
            raise InputError("load: give either --trace or --workload")
        if self.trace is not None and self.rate_rps is not None:
            raise InputError("--rate: a trace has arrival times; --rate-scale stretches them")
        if not self.is_drawn and self.seeds > 1:
            raise InputError("--seeds: a trace is the same for every seed; give --workload")
        if self.workload is not None and (self.rate_rps is None or self.requests is None):
            raise InputError("--workload: needs --rate and --requests")
        _at_least("--requests", self.requests, 1)
        _at_least("--seed", self.seed, 0)
        check_range("--seeds", self.seeds, 1, _MOST_SEEDS)
        if not 0 < self.rate_scale < math.inf:
            raise InputError(f"--rate-scale: found {self.rate_scale}; allowed: positive and finite")

    def _check_use(self) -> None:
        for field in fields(self):
            needed, value = _NEEDS.get(field.name), getattr(self, field.name)
            if needed is not None and value != field.default and not getattr(self, needed):
                raise InputError(f"{dashed(field.name)}: found {value}; needs {dashed(needed)}")

    def _check_pools(self) -> None:
        if self.is_disaggregated:
            return
        for name in (
            "prefill_scheduler",
            "prefill_units",
            "decode_units",
            "link_bytes_per_s",
            "link_latency_s",
            *ON_POOLS,
        ):
            if (value := getattr(self, name)) is not None:
                raise InputError(f"{dashed(name)}: found {value}; only {DISAGGREGATION} has pools")


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    from workloads.models import DTYPE_BYTES, model_names
    from workloads.serving.load.generator import WORKLOADS
    from workloads.serving.price.models import serving_chips

    return {
        "models": list(model_names()),
        "chips": sorted(serving_chips()),
        "schedulers": list(ALL_SCHEDULERS),
        "levels": list(LEVELS),
        "workloads": [*sorted(WORKLOADS), "fixed:IN:OUT"],
        "weights": list(DTYPE_BYTES),
        **shared.variant_names(),
        "routings": list(ROUTINGS),
    }


def _at_least(name: str, value: int | None, least: int) -> None:
    if value is not None:
        hold_least(name, value, least)
