"""Stored results as the report reads them: only the fields it shows, each checked."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from wafertlm.options import chip_told

#: Numbers that can be drawn.
_Number = Annotated[float, Field(gt=-1e18, lt=1e18)]
_Whole = Annotated[int, Field(ge=0, lt=10**18)]
_Times = Annotated[int, Field(gt=0, lt=10**18)]


class _Record(BaseModel):
    """What is not named here is kept as it is."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)


class Provenance(_Record):
    """Where a result's numbers come from."""

    version: str
    config_hash: str
    rtl_hash: str | None
    calibration: str | None
    seed: int | None


class Error(_Record):
    """How far levels and profile are off, in per cent; None where nothing was compared."""

    level_pct: _Number | None = None
    profile_pct: _Number | None = None


class Run(_Record):
    """A stored result of any command; not all tell an error."""

    command: str
    options: dict[str, Any] | _Record
    error: Error | None = None
    provenance: Provenance


class _OnChip(_Record):
    """What a run on a chip was asked for."""

    chip: str
    set: tuple[str, ...] = ()

    @property
    def chip_told(self) -> str:
        """The chip in words, with what was changed."""
        return chip_told({"chip": self.chip, "set": self.set})


class KernelOptions(_OnChip):
    """What a kernel run was asked for."""

    kernel: str
    grid: str
    shape: Annotated[str, Field(pattern=r"^\d{1,18}(,\d{1,18}){0,9}$")]
    dtype: str
    level: str

    @property
    def problem(self) -> tuple[str, ...]:
        """What has to be equal for kernels to be compared, at one level or several."""
        return self.chip, self.grid, self.shape, self.dtype, *self.set

    @property
    def size(self) -> list[int]:
        """The extents of the shape."""
        return [int(extent) for extent in self.shape.split(",")]

    @property
    def variant(self) -> dict[str, Any]:
        """What else was chosen of the kernel, but for levels."""
        levels = ("noc", "compute", "allow_stale")
        return {
            name: value
            for name, value in (self.model_extra or {}).items()
            if value not in (None, False) and name not in levels
        }


class KernelPlan(_Record):
    """How a kernel's problem is cut."""

    slice: dict[str, int] = {}
    engine_utilization: _Number | None = None


class Kernel(Run):
    """A stored kernel run."""

    options: KernelOptions
    cycles: _Times
    seconds: _Number
    utilization: _Number
    breakdown_cycles: Annotated[dict[str, _Number], Field(min_length=1)]
    plan: KernelPlan | None = None
    memory_utilization: _Number | None = None


class ServeOptions(_OnChip):
    """What a serving run was asked for."""

    model: str
    scheduler: str
    workload: str | None = None
    trace: dict[str, Any] | None = None
    rate_rps: _Number | str | None = None
    slo_ttft_s: _Number | None = None
    slo_tbt_ms: _Number | None = None
    attainment: _Number = 0.9

    @property
    def load(self) -> str:
        """The load in a word."""
        return self.workload or (str(self.trace.get("name")) if self.trace else "a load")


class Distribution(_Record):
    """Mean and percentiles; null where there is no value."""

    mean: _Number | None
    p50: _Number | None
    p90: _Number | None
    p99: _Number | None


class Trial(_Record):
    """A rate that a search has tried."""

    rate: Annotated[float, Field(gt=0, lt=1e18)]
    attainment: _Number
    ttft_s: _Number | None = None
    tbt_ms: _Number | None = None


class HighestRate(_Record):
    """The highest rate that attains the objectives, and what was tried."""

    rate_rps: Annotated[float, Field(gt=0, lt=1e18)]
    burst: bool = False
    trials: Annotated[list[Trial], Field(min_length=1)]


class Ends(_Record):
    """Between what a mean lies by the error of the prices; None: overloaded there."""

    low: _Number | None
    high: _Number | None


class Tokens(_Record):
    """Tokens a second over time, in bins."""

    bin_s: Annotated[float, Field(gt=0, lt=1e18)]
    prompt_tok_s: Annotated[list[_Number], Field(min_length=1)]
    output_tok_s: Annotated[list[_Number], Field(min_length=1)]


class Serve(Run):
    """A stored serving run."""

    options: ServeOptions
    ttft_s: Distribution
    tbt_ms: Distribution
    e2e_s: Distribution
    queue_s: Distribution
    throughput_tok_s: _Number
    requests: _Whole
    completed: _Whole
    slo_attainment: _Number | None = None
    goodput_rps: _Number | None = None
    overloaded: bool | None = None
    capacity: HighestRate | None = None
    interval: dict[str, Ends | str | None] | None = None
    timeline: Tokens | None = None
    kv: dict[str, Any] = {}

    @property
    def is_overloaded(self) -> bool:
        """Whether its figures hang on how many requests there were."""
        return bool(self.overloaded)

    def between(self, name: str) -> tuple[float, float] | None:
        """Between what a figure's mean lies; None: not known."""
        ends = (self.interval or {}).get(name)
        if not isinstance(ends, Ends) or ends.low is None or ends.high is None:
            return None
        return ends.low, ends.high


class KernelOfIteration(_Record):
    """A kernel of an iteration, how often it runs, and what one run takes."""

    operator: str
    kernel: str
    shape: str
    count: _Number
    cycles: _Number
    breakdown_cycles: Annotated[dict[str, _Number], Field(min_length=1)]
    level_pct: _Number | None = None


class IterationOptions(_OnChip):
    """What an iteration was asked for."""

    model: str
    level: str = ""
    prefill: list[str] = []
    decode: str | None = None


class Iteration(Run):
    """A stored iteration."""

    options: IterationOptions
    kernels: Annotated[list[KernelOfIteration], Field(min_length=1)]
    cycles: _Times
    seconds: _Number
    seconds_low: _Number | None = None
    seconds_high: _Number | None = None


class Change(_Record):
    """A figure's change against the first variant."""

    metric: str
    values: dict[str, Any]
    before: Annotated[_Number | None, Field(alias="from")] = None
    to: _Number | None = None
    change_pct: _Number | None
    low_pct: _Number | None = None
    high_pct: _Number | None = None
    significant: bool | None = None


class ComparedRun(_Record):
    """A variant of a comparison."""

    values: dict[str, Any]


class Comparison(Run):
    """A stored comparison."""

    options: dict[str, Any]
    variants: Annotated[list[ComparedRun], Field(min_length=1)]
    changes: list[Change]
    gates: list[dict[str, Any]] | None = None


class ExploredTrial(_Record):
    """One of the best trials of an exploration, or a line of all."""

    trial: int | None = None
    state: str = "complete"
    options: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    objectives: dict[str, _Number | None] = {}
    figures: dict[str, Any] = {}
    confirmed: dict[str, Any] | None = None
    command_line: str | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """What was varied; all options where that is not told."""
        return self.parameters or self.options


class Exploration(Run):
    """A stored exploration: its best trial, or those of which none is better in all."""

    options: dict[str, Any]
    trials: _Whole | list[Any]
    failed: _Whole | list[Any]
    best: ExploredTrial | None = None
    pareto: list[ExploredTrial] | None = None
    rows: list[ExploredTrial] = []

    @property
    def directions(self) -> dict[str, str]:
        """Its objectives, each with where it should go."""
        told = self.options.get("objectives")
        if isinstance(told, dict):
            return {str(name): str(way) for name, way in told.items()}
        return {name: "" for trial in self.front for name in trial.objectives}

    @property
    def front(self) -> list[ExploredTrial]:
        """The best trials."""
        if self.pareto is not None:
            return self.pareto
        return [] if self.best is None else [self.best]


class StudyRow(_Record):
    """A published figure and the model's."""

    id: str
    paper: _Number | None
    model: _Number | None
    error_pct: _Number | None = None
    fit: bool | str | None = None
    unit: str = ""


class StudyResult(Run):
    """A stored study of a paper."""

    options: dict[str, Any]
    rows: list[StudyRow]
    summary: dict[str, Any] = {}
