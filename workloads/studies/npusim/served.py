"""What the study serves: requests that all come at once, on pipelines of single cores."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

from tlm.chips import Chip, find_tiles
from tlm.compute.base import ceil_div
from workloads.machine.groups import Parallel, groups_on
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.models import Model, find_model
from workloads.serving.engine.engine import DEFAULT_MAX_SEQUENCES
from workloads.serving.engine.group_pools import GroupPools, make_group_pools
from workloads.serving.engine.run import run, run_disaggregated
from workloads.serving.load.generator import generate
from workloads.serving.price.cost import Batch, DecodeCosts, Int64s, IterationCost
from workloads.serving.price.group_price import GroupsPrice
from workloads.serving.price.tile_price import End
from workloads.serving.schedulers import Scheduler, SchedulerOptions, make_scheduler
from workloads.serving.schedulers.pd_fusion import DEFAULT_CHUNK_TOKENS
from workloads.studies.campaign import Figures
from workloads.studies.ends import with_ends
from workloads.studies.npusim.cases import CHIP

_REQUESTS = 200
#: Published inputs: 63 of 64 cores in pipelines of seven stages, and of an iteration that enters
#: one a budget of 5 units, of which a decoding request takes 1 and a chunk 4.
_STAGES, _BUDGET, _CHUNK = 7, 5, 4
#: New tokens of a micro-batch of the prefill pool.
_PREFILL_TOKENS = 2048


#: What multiplies, by its reading. ``formula``: the array by the paper's formula, or the vector
#: engine where that is faster; ``local-memory``: the same, with 128 bytes a cycle of local memory
#: whatever the array, as published inputs of figure 12 have it; else the array alone, whose tiles
#: of weights overlap or do not.
_FORMULA = ("tile.matrix.tiles=stream-drain", "tile.matrix.lane_alus=64")
ENGINES = {
    "formula": _FORMULA,
    "local-memory": (*_FORMULA, "tile.sram_bytes_per_cycle=128"),
    "overlapped": ("tile.matrix.tiles=overlapped", "tile.matrix.lane_alus=0"),
    "load-stream-drain": ("tile.matrix.tiles=load-stream-drain", "tile.matrix.lane_alus=0"),
}
#: What the paper calls Qwen3-4B when it serves requests. ``text``: that model, with its output
#: head. ``inputs``: the model with the sizes of the products of figure 9, whose 28 layers are four
#: for each of seven stages, and without a head, which the published operators do not have.
SHAPES = {"text": "qwen3-4b", "inputs": "qwen3-1.7b"}
NO_HEAD = 16  # columns of one that takes no time to speak of
#: Bytes of local memory a cycle by the side of an array, as in the shipped profiles.
_SRAM_BYTES = 8


class Core(NamedTuple):
    """A core of the configuration space.

    Attributes:
        array: Side of its array.
        hbm_gb_s: Bandwidth of its memory.
        sram_mib: Its local memory; None: as in the shipped profile.
        engine: One of `ENGINES`, with local memory whose bandwidth scales with the array as table 3
            has it; None: as in the profile.
    """

    array: int
    hbm_gb_s: int
    sram_mib: int | None = None
    engine: str | None = None

    @property
    def name(self) -> str:
        """As the paper has it."""
        sram = "" if self.sram_mib is None else f"S{self.sram_mib}"
        return f"{sram}A{self.array}H{self.hbm_gb_s}"


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
        shape: One of `SHAPES`.
        chunk_tokens: Tokens of a chunk of a prompt where cores do both.
    """

    inputs: int
    outputs: int
    core: Core
    noc_gb_s: int
    prefill_units: int = 0
    decode_units: int = 0
    decode_core: Core | None = None
    shape: str = "text"
    chunk_tokens: int = DEFAULT_CHUNK_TOKENS


class _Watched(GroupsPrice):
    """Prices that keep the shortest time from a token to the next one."""

    least_s = math.inf

    def at_end(self, end: End) -> Self:
        """See `GroupsPrice`."""
        other = super().at_end(end)
        other.least_s = math.inf
        return other

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
    """Serve the requests of a case, with ends by the error of the prices."""
    load = generate(f"fixed:{case.inputs}:{case.outputs}", _REQUESTS, math.inf, 1.0, 0)
    chip, model = study_chip(case.core, case.noc_gb_s), _served_model(case.shape)
    wanted = load.most_tokens(DEFAULT_MAX_SEQUENCES, BLOCK_TOKENS)
    if case.prefill_units:
        other = None if case.decode_core is None else study_chip(case.decode_core, case.noc_gb_s)
        asked = GroupPools(
            prefill=_parallel("--prefill-"),
            decode=_parallel("--decode-"),
            prefill_units=case.prefill_units,
            decode_units=case.decode_units,
            decode_chip=other,
        )
        pools = make_group_pools(model, chip, asked, priced=_Watched, kv_wanted_tokens=wanted)

        def apart(prices: Sequence[_Watched]) -> Figures:
            prefill, decode = prices
            first, *beside = (_chunked() for _ in range(pools.replicas[0]))
            priced = replace(pools, prefill=prefill, decode=decode)
            return _figures(run_disaggregated(load, first, priced, beside=beside), decode)

        return with_ends([pools.prefill, pools.decode], apart)
    parallel = _parallel("--")
    groups = groups_on(chip, parallel)
    share = ceil_div(wanted, len(groups.pipelines[0]))
    both = _Watched(model, groups, parallel, kv_wanted_tokens=share)

    def together(prices: Sequence[_Watched]) -> Figures:
        (watched,) = prices
        first, *beside = (fused(_STAGES, case.chunk_tokens) for _ in groups.pipelines[0])
        return _figures(run(load, first, watched, beside=beside, share=watched.share), watched)

    return with_ends([both], together)


def _figures(result: dict[str, Any], watched: _Watched) -> Figures:
    return {
        "latency_s": result["e2e_s"]["mean"],
        "ttft_s": result["ttft_s"]["mean"],
        "tbt_s": result["tbt_ms"]["mean"] / 1e3,
        "least_tbt_s": watched.least_s,
        "throughput_tok_s": result["throughput_tok_s"],
        "overloaded": result["overloaded"],
    }


def _served_model(shape: str) -> Model:
    model = find_model(SHAPES[shape])
    return model if shape == "text" else model.model_copy(update={"vocabulary": NO_HEAD})


def _parallel(of: str) -> Parallel:
    return Parallel(pipeline=_STAGES, micro_batch=_BUDGET, of=of)


def _chunked() -> Scheduler:
    return make_scheduler("chunked", SchedulerOptions(token_budget=_PREFILL_TOKENS), _STAGES)


def fused(stages: int, chunk_tokens: int) -> Scheduler:
    """Prompts and decoding together, by the published budget, on a pipeline."""
    options = SchedulerOptions(chunk_tokens, budget_units=_BUDGET, chunk_units=_CHUNK)
    return make_scheduler("pd-fusion", options, stages)


def study_chip(core: Core, noc_gb_s: int) -> Chip:
    """The large-core chip with other cores and links."""
    changes = [
        f"tile.matrix.rows={core.array}",
        f"tile.matrix.cols={core.array}",
        f"memory.bandwidth_bytes_per_s={64 * core.hbm_gb_s * 1e9}",
        f"noc.flit_bytes={2 * noc_gb_s}",
    ]
    if core.sram_mib is not None:
        changes.append(f"tile.sram_kib={1024 * core.sram_mib}")
    if core.engine is not None:
        changes.append(f"tile.sram_bytes_per_cycle={_SRAM_BYTES * core.array}")
        changes += ENGINES[core.engine]
    return find_tiles(CHIP, changes)
