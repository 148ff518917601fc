"""Iteration times of Llama 3 8B on the 32 x 32-tile chip, and whole runs on it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.serving.served import streamed_share
from tlm.chips import load_chip
from tlm.errors import InputError
from workloads.machine.side_by_side import side_by_side
from workloads.models import load_model
from workloads.serving.engine.run import Limits, run
from workloads.serving.load.generator import generate
from workloads.serving.load.traces import load_trace
from workloads.serving.price.cost import Batch
from workloads.serving.price.experts import distinct_experts
from workloads.serving.price.models import serving_model
from workloads.serving.price.tile_price import TilePrice
from workloads.serving.result.metrics import Slo
from workloads.serving.schedulers import Chunked, make_scheduler

_COST = TilePrice(load_model("llama3-8b"), load_chip("flat32"))
_BYTES_PER_S = 2.0e12
_REAL = Path(__file__).parents[3] / "../shared/traces/azure_llm_2023_conversation.csv"


def _decode(sequences: int, context: int) -> Batch:
    return Batch((), sequences, sequences * context, sequences)


def test_weights_and_cache_share_the_memory() -> None:
    weights = 2 * 8_030_261_248
    assert _COST.kv_capacity_tokens == (64 * 2**30 - weights) // 131072 // 16 * 16


@pytest.mark.parametrize("sequences", [1, 32, 128])
def test_decode_is_bound_by_reading_weights_and_cache(sequences: int) -> None:
    read = 2 * (8_030_261_248 - 128256 * 4096) + sequences * 1024 * 131072
    read_s = read / (_BYTES_PER_S * streamed_share("hbm4", 32))
    assert 1.0 < _COST.cost(_decode(sequences, 1024)).seconds / read_s < 1.1


def test_long_prefill_is_bound_by_compute() -> None:
    batch = Batch(((4096, 0),), 0, 0, 1)
    seconds = _COST.cost(batch).seconds
    work = batch.work(_COST.layers)
    assert 0.65 < _COST.utilization(work, seconds) < 0.85  # half of attention's pairs are masked


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4000), st.integers(0, 8000), st.integers(0, 200), st.integers(1, 4000))
def test_more_decoding_beside_a_prompt_never_makes_it_faster(
    new: int, context: int, sequences: int, each: int
) -> None:
    alone = Batch(((new, context),), 0, 0, 1)
    mixed = Batch(((new, context),), sequences, sequences * each, sequences + 1)
    # A few per cent of slack: a larger batch may be cut better.
    assert _COST.cost(mixed).seconds >= 0.97 * _COST.cost(alone).seconds


def test_a_model_that_does_not_fit_and_a_chip_without_memory_are_refused() -> None:
    with pytest.raises(InputError, match="'qwen2-72b' on chip 'flat32': weights take 14541"):
        TilePrice(load_model("qwen2-72b"), load_chip("flat32"))
    with pytest.raises(InputError, match="chip 'wse2': found no off-chip memory"):
        TilePrice(load_model("llama3-8b"), load_chip("wse2"))


def test_keys_and_values_in_sram_leave_room_for_the_smallest_buffers() -> None:
    most = 3040
    model = serving_model("llama3-8b", "flat32", kv_sram_tokens=most)
    assert model.kv_sram_tokens == most
    batch = Batch(((4096, 0),), 8, 8 * 1000, 9)
    assert model.cost(batch).seconds > 1.1 * _COST.cost(batch).seconds  # blocks are smaller
    for more in (most + 16, 4096):
        with pytest.raises(InputError) as refused:
            serving_model("llama3-8b", "flat32", kv_sram_tokens=more)
        assert str(refused.value) == (
            f"--kv-sram-tokens: found {more}; allowed for 'llama3-8b' on 1024 tiles of 'flat32': "
            f"0 to {most}, as kernels need buffers"
        )
    with pytest.raises(InputError, match="found 0; allowed on 'h100x2': none, GPUs keep keys"):
        serving_model("qwen3-8b", "h100x2", kv_sram_tokens=0)


def test_sram_is_not_given_out_twice() -> None:
    with pytest.raises(InputError, match="found 16 tokens; allowed: the 0 that the model on its"):
        Limits(kv_sram_tokens=16).kv_cache(_COST)


def test_a_run_with_little_cache_preempts_and_still_completes() -> None:
    trace = generate("sharegpt", 60, 20.0, 1.0, 1)
    result = run(trace, Chunked(), _COST, limits=Limits(20_000), slo=Slo(5.0, 125.0))
    assert result["completed"] == 60
    assert result["kv"]["preemptions"] > 0
    assert result["kv"]["peak_tokens"] <= result["kv"]["capacity_tokens"] == 20_000
    assert 0 < result["utilization"] < 1
    assert 0 <= result["slo_attainment"] <= 1


def test_chunking_trades_first_tokens_for_steady_ones() -> None:
    trace = generate("sharegpt", 300, 4.0, 1.0, 1)
    chunked, continuous = (
        run(trace, make_scheduler(name), _COST) for name in ("chunked", "continuous")
    )
    assert chunked["tbt_ms"]["p99"] < continuous["tbt_ms"]["p99"]
    assert chunked["ttft_s"]["mean"] > continuous["ttft_s"]["mean"]
    assert chunked["tbt_std_ms"] < continuous["tbt_std_ms"]


@pytest.mark.skipif(not _REAL.is_file(), reason="the public trace is not here")
def test_the_public_conversation_trace_at_its_own_rate() -> None:
    trace = load_trace(_REAL)
    result = run(trace, Chunked(), _COST, slo=Slo(1.0, 50.0))
    assert result["completed"] == len(trace)
    assert result["slo_attainment"] > 0.99


@pytest.mark.parametrize(
    ("model", "chip"),
    [("llama3-8b", "flat32"), ("gpt-oss-20b", "flat32"), ("qwen3-30b-a3b", "npusim-large")],
)
def test_a_stretch_of_decoding_costs_what_its_iterations_cost(model: str, chip: str) -> None:
    cost = TilePrice(load_model(model), load_chip(chip))
    contexts = np.array([0, 77, 3000, 250_001])
    costs = cost.decode_costs(30, contexts, 2)
    for place, context in enumerate(contexts.tolist()):
        alone = cost.cost(Batch((), 30, context, 60, None, 2))
        assert (costs.seconds[place], costs.expert_bytes) == (alone.seconds, alone.expert_bytes)


def test_a_stretch_is_counted_as_the_stages_of_its_iterations() -> None:
    # Tuples of an iteration that only decodes and of its attention are equal: 16, 1, 1024, 0.
    price = serving_model("llama3-8b", "flat32")
    costs = price.decode_costs(16, np.array([16 * 1024, 16 * 1024 + 16]))
    cost = price.cost(Batch((), 16, 16 * 1024, 16))
    assert ([list(stages) for stages in costs.made_of], costs.times) == ([[*cost.made_of]], [2])


def test_layers_outside_the_group_compute_the_decoding_requests_alone() -> None:
    cost = TilePrice(load_model("qwen3-30b-a3b"), load_chip("flat32"))
    whole = Batch(((4096, 0),), 16, 16_000, 17)
    decode = cost.cost(_decode(16, 1000))
    groups = [
        cost.cost(whole._replace(prefill_layers=range(first, first + 12), logit_rows=16))
        for first in range(0, 48, 12)
    ]
    added_s = sum(group.seconds - decode.seconds for group in groups)
    merged = cost.cost(whole)
    assert added_s == pytest.approx(merged.seconds - decode.seconds, rel=0.02)
    # In a group the experts are all needed, elsewhere those of 16 tokens.
    per_layer = 9_437_184.0
    needed = {tokens: round(distinct_experts(128, 8, tokens)) for tokens in (4112, 16)}
    assert groups[0].expert_bytes == per_layer * (12 * needed[4112] + 36 * needed[16])


def test_pools_of_shared_memory_share_weights_and_others_do_not() -> None:
    model, flat32 = load_model("gpt-oss-20b"), load_chip("flat32")
    whole, half = (
        TilePrice(model, flat32),
        TilePrice(model, flat32, lot=side_by_side(flat32, [512])[0]),
    )
    assert half.kv_capacity_tokens == pytest.approx(whole.kv_capacity_tokens / 2, rel=1e-4)
    npusim = load_chip("npusim-large")
    free = 2**37 - model.weight_bytes
    half = TilePrice(model, npusim, lot=side_by_side(npusim, [32])[0])
    assert half.kv_capacity_tokens == free // 24576 // 16 * 16
