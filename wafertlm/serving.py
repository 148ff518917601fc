"""What a serving run is asked for, and the run."""

import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from tlm.errors import InputError, choose
from workloads.models import DTYPE_BYTES, Dtype, Model, load_model
from workloads.serving.cost import ServingModel
from workloads.serving.engine import DEFAULT_MAX_SEQUENCES
from workloads.serving.generator import generate
from workloads.serving.metrics import Slo
from workloads.serving.models import serving_chips, serving_model
from workloads.serving.pools import make_pools
from workloads.serving.run import Limits, Pools, Watch, run, run_disaggregated
from workloads.serving.schedulers import SCHEDULERS, Scheduler, SchedulerOptions, make_scheduler
from workloads.serving.speculation import Speculation
from workloads.serving.traces import PS_PER_S, Trace, load_trace

DISAGGREGATION = "pd-disaggregation"
ALL_SCHEDULERS = tuple(sorted((*SCHEDULERS, DISAGGREGATION)))
_PREFILL_POOL_SCHEDULER = "chunked"
_PREFILL_POOL_TOKENS = 2048
# Options that are of use with another only.
_NEEDS = {"arrival_cv": "workload", "acceptance": "draft_tokens", "attainment": "find_rate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Options of the command; None where not given."""

    model: str
    chip: str
    scheduler: str
    weights: str | None = None
    expert_parallel: int = 1
    trace: Path | None = None
    workload: str | None = None
    rate_rps: float | None = None
    arrival_cv: float = 1.0
    requests: int | None = None
    rate_scale: float = 1.0
    slo_ttft_s: float | None = None
    slo_tbt_ms: float | None = None
    seed: int = 0
    seeds: int = 1
    token_budget: int | None = None
    layer_groups: int | None = None
    budget_units: int | None = None
    chunk_units: int | None = None
    prefill_scheduler: str | None = None
    prefill_units: int | None = None
    decode_units: int | None = None
    link_bytes_per_s: float | None = None
    link_latency_s: float | None = None
    kv_tokens: int | None = None
    kv_sram_tokens: int | None = None
    max_sequences: int = DEFAULT_MAX_SEQUENCES
    draft_tokens: int | None = None
    acceptance: float = 0.7
    find_rate: bool = False
    attainment: float = 0.9

    @property
    def is_disaggregated(self) -> bool:
        """Whether prefill and decoding have pools of their own."""
        return self.scheduler == DISAGGREGATION

    @property
    def is_drawn(self) -> bool:
        """Whether anything is drawn from the seed: requests, or which drafts are right."""
        return self.workload is not None or self.draft_tokens is not None

    @property
    def is_as_published(self) -> bool:
        """Whether weights are the model's, every GPU has a part of each expert, no drafts made."""
        is_whole = self.expert_parallel == 1 and self.draft_tokens is None
        return is_whole and self.shape == load_model(self.model)

    @property
    def shape(self) -> Model:
        """The model, its weights as asked for.

        Raises:
            InputError: for an unknown name.
        """
        model = load_model(self.model)
        if self.weights is None:
            return model
        choose("weights", self.weights, tuple(DTYPE_BYTES))
        return model.in_one_width(cast(Dtype, self.weights))

    @property
    def slo(self) -> Slo:
        """What requests should attain."""
        return Slo(self.slo_ttft_s, self.slo_tbt_ms)

    def check(self) -> None:
        """Refuse what does not fit together.

        Raises:
            InputError: naming the option, what was found and what is allowed.
        """
        choose("scheduler", self.scheduler, ALL_SCHEDULERS)
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
        _at_least("--seeds", self.seeds, 1)
        if not 0 < self.rate_scale < math.inf:
            raise InputError(f"--rate-scale: found {self.rate_scale}; allowed: positive and finite")

    def _check_use(self) -> None:
        for field in fields(self):
            needed, value = _NEEDS.get(field.name), getattr(self, field.name)
            if needed is not None and value != field.default and not getattr(self, needed):
                raise InputError(f"{_option(field.name)}: found {value}; needs {_option(needed)}")

    def _check_pools(self) -> None:
        if self.is_disaggregated:
            return
        for name in (
            "prefill_scheduler",
            "prefill_units",
            "decode_units",
            "link_bytes_per_s",
            "link_latency_s",
        ):
            if (value := getattr(self, name)) is not None:
                raise InputError(f"{_option(name)}: found {value}; only {DISAGGREGATION} has pools")


class Service:
    """What options ask for, ready to run under any load.

    Raises:
        InputError: for options that do not fit together, unknown names, a trace that cannot be
            used, and weights that do not fit.
    """

    def __init__(self, options: ServeOptions) -> None:
        options.check()
        shape = options.shape
        choose("chip", options.chip, serving_chips())
        self.options = options
        self._scheduler()  # refused before anything is loaded
        self._trace = None if options.trace is None else load_trace(options.trace)
        self._speculation = (
            None
            if options.draft_tokens is None
            else Speculation(options.draft_tokens, options.acceptance, options.seed)
        )
        self._model: ServingModel | None = None
        self._pools: Pools | None = None
        if options.is_disaggregated:
            self._pools = make_pools(
                shape,
                options.chip,
                prefill_units=options.prefill_units,
                decode_units=options.decode_units,
                link_bytes_per_s=options.link_bytes_per_s,
                link_latency_s=options.link_latency_s,
                expert_parallel=options.expert_parallel,
                kv_sram_tokens=options.kv_sram_tokens,
            )
        else:
            self._model = serving_model(
                shape,
                options.chip,
                expert_parallel=options.expert_parallel,
                kv_sram_tokens=options.kv_sram_tokens,
            )

    def load(self, seed: int, rate: float | None = None) -> Trace:
        """The requests of a seed, at the options' rate or at another.

        Raises:
            InputError: if the load cannot be used.
        """
        options = self.options
        if self._trace is not None:
            trace = self._trace
            trace = trace if options.requests is None else trace.head(options.requests)
            scale = options.rate_scale if rate is None else rate / rate_of(trace)
        else:
            assert options.workload is not None  # as checked
            assert options.requests is not None
            rps = options.rate_rps if rate is None else rate
            assert rps is not None
            trace = generate(options.workload, options.requests, rps, options.arrival_cv, seed)
            scale = options.rate_scale if rate is None else 1.0
        return trace if scale == 1.0 else trace.scaled(scale)

    def run(
        self, seed: int, rate: float | None = None, watch: Watch | None = None
    ) -> dict[str, Any]:
        """Serve the requests of a seed to the end and return the figures.

        Raises:
            InputError: if the load cannot be used.
        """
        options = self.options
        trace = self.load(seed, rate)
        drafts = self._speculation
        speculation = None if drafts is None else replace(drafts, seed=seed)
        limits = Limits(options.kv_tokens, options.max_sequences, options.kv_sram_tokens)
        scheduler = self._scheduler()
        if self._pools is not None:
            return run_disaggregated(
                trace,
                scheduler,
                self._pools,
                slo=options.slo,
                limits=limits,
                speculation=speculation,
                watch=watch,
            )
        assert self._model is not None
        return run(
            trace,
            scheduler,
            self._model,
            slo=options.slo,
            limits=limits,
            speculation=speculation,
            watch=watch,
        )

    def recorded(self) -> dict[str, Any]:
        """The options as a result keeps them: a trace by its content, an infinite rate as text."""
        options = self.options
        recorded = asdict(options)
        if options.trace is not None and self._trace is not None:
            recorded["trace"] = {"name": options.trace.name, "hash": self._trace.file_hash}
        if options.rate_rps is not None and math.isinf(options.rate_rps):
            recorded["rate_rps"] = "inf"
        return recorded

    def _scheduler(self) -> Scheduler:
        options = self.options
        told = SchedulerOptions(
            options.token_budget, options.layer_groups, options.budget_units, options.chunk_units
        )
        if not options.is_disaggregated:
            return make_scheduler(options.scheduler, told)
        if options.prefill_scheduler is None and told.token_budget is None:
            told = replace(told, token_budget=_PREFILL_POOL_TOKENS)
        return make_scheduler(options.prefill_scheduler or _PREFILL_POOL_SCHEDULER, told)


def rate_of(trace: Trace) -> float:
    """Mean rate of arrivals in requests per second.

    Raises:
        InputError: if all arrive at once.
    """
    span_s = int(trace.arrival_ps[-1]) / PS_PER_S
    if not span_s:
        raise InputError("--find-rate: found requests that all arrive at once; they have no rate")
    return (len(trace) - 1) / span_s


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _at_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise InputError(f"{name}: found {value}; allowed: {least} or more")
