"""What the study serves: requests that all come at once, on pipelines of single cores."""

import math
from typing import NamedTuple

from tlm.chips import Chip, find_tiles
from workloads.machine.groups import Parallel, groups_on
from workloads.models import find_model
from workloads.serving.engine.group_pools import GroupPools, make_group_pools
from workloads.serving.engine.run import run, run_disaggregated
from workloads.serving.load.generator import generate
from workloads.serving.price.cost import Batch, DecodeCosts, Int64s, IterationCost
from workloads.serving.price.group_price import GroupsPrice
from workloads.serving.schedulers import Scheduler, SchedulerOptions, make_scheduler
from workloads.studies.campaign import Figures
from workloads.studies.npusim.cases import CHIP

_MODEL, _REQUESTS = "qwen3-4b", 200
#: Published inputs: 63 of 64 cores in pipelines of seven stages, and of an iteration that enters
#: one a budget of 5 units, of which a decoding request takes 1 and a chunk 4.
_STAGES, _BUDGET, _CHUNK = 7, 5, 4
#: New tokens of a micro-batch of the prefill pool.
_PREFILL_TOKENS = 2048


class Core(NamedTuple):
    """A core of the configuration space.

    Attributes:
        array: Side of its array.
        hbm_gb_s: Bandwidth of its memory.
    """

    array: int
    hbm_gb_s: int

    @property
    def name(self) -> str:
        """As the paper has it."""
        return f"A{self.array}H{self.hbm_gb_s}"


class ServedCase(NamedTuple):
    """Requests that are all alike.

    Attributes:
        inputs: Tokens of a prompt.
        outputs: Tokens of an output.
        core: Of all, or of the prefill pool.
        noc_gb_s: Bandwidth of a link.
        prefill_units: Cores for prompts; 0: all cores do both.
        decode_units: Cores that decode.
        decode_core: Theirs, if another.
    """

    inputs: int
    outputs: int
    core: Core
    noc_gb_s: int
    prefill_units: int = 0
    decode_units: int = 0
    decode_core: Core | None = None


class _Watched(GroupsPrice):
    """Prices that keep the shortest time from a token to the next one."""

    least_s = math.inf

    def cost(self, batch: Batch) -> IterationCost:
        """See `GroupsPrice`."""
        cost = super().cost(batch)
        if batch.decode_sequences:
            self.least_s = min(self.least_s, cost.seconds)
        return cost

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """See `GroupsPrice`."""
        costs = super().decode_costs(sequences, context_tokens, width, spilled_tokens)
        self.least_s = min(self.least_s, *costs.seconds)
        return costs


def served_figures(case: ServedCase) -> Figures:
    """Serve the requests of a case."""
    load = generate(f"fixed:{case.inputs}:{case.outputs}", _REQUESTS, math.inf, 1.0, 0)
    chip, model = _chip(case.core, case.noc_gb_s), find_model(_MODEL)
    if case.prefill_units:
        other = None if case.decode_core is None else _chip(case.decode_core, case.noc_gb_s)
        asked = GroupPools(
            prefill=_parallel("--prefill-"),
            decode=_parallel("--decode-"),
            prefill_units=case.prefill_units,
            decode_units=case.decode_units,
            decode_chip=other,
        )
        pools = make_group_pools(model, chip, asked, priced=_Watched)
        schedulers = [_chunked() for _ in range(pools.replicas[0])]
        result = run_disaggregated(load, schedulers[0], pools, beside=schedulers[1:])
        watched = pools.decode
    else:
        parallel = _parallel("--")
        groups = groups_on(chip, parallel)
        watched = _Watched(model, groups, parallel)
        schedulers = [_fused() for _ in groups.pipelines[0]]
        result = run(load, schedulers[0], watched, beside=schedulers[1:], share=watched.share)
    assert isinstance(watched, _Watched)
    return {
        "latency_s": result["e2e_s"]["mean"],
        "ttft_s": result["ttft_s"]["mean"],
        "tbt_s": result["tbt_ms"]["mean"] / 1e3,
        "least_tbt_s": watched.least_s,
        "throughput_tok_s": result["throughput_tok_s"],
    }


def _parallel(of: str) -> Parallel:
    return Parallel(pipeline=_STAGES, micro_batch=_BUDGET, of=of)


def _chunked() -> Scheduler:
    return make_scheduler("chunked", SchedulerOptions(token_budget=_PREFILL_TOKENS), _STAGES)


def _fused() -> Scheduler:
    options = SchedulerOptions(budget_units=_BUDGET, chunk_units=_CHUNK)
    return make_scheduler("pd-fusion", options, _STAGES)


def _chip(core: Core, noc_gb_s: int) -> Chip:
    changes = (
        f"tile.matrix.rows={core.array}",
        f"tile.matrix.cols={core.array}",
        f"memory.bandwidth_bytes_per_s={64 * core.hbm_gb_s * 1e9}",
        f"noc.flit_bytes={2 * noc_gb_s}",
    )
    return find_tiles(CHIP, changes)
