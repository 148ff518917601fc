"""Iteration times of GPUs: bounds by hand, laws, and the factory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.chips.gpu import load_gpu_box
from tlm.errors import InputError
from workloads.models import load_model
from workloads.serving.price.cost import Batch, visible_pairs
from workloads.serving.price.gpu_cost import GpuCost
from workloads.serving.price.models import (
    serving_chips,
    serving_model,
    units_of,
)

_H100 = load_gpu_box("h100x2")
_QWEN = GpuCost(load_model("qwen3-30b-a3b"), _H100, 2)
_DENSE = GpuCost(load_model("qwen3-8b"), _H100, 1)


def _decode(sequences: int, context: int) -> Batch:
    return Batch((), sequences, sequences * context, sequences)


def test_decode_of_a_dense_model_reads_weights_and_cache() -> None:
    read = 2 * (8_190_726_144 - 151_936 * 4096) + 16 * 8192 * 147_456
    bandwidth = _H100.memory_bandwidth_bytes_per_s * _H100.efficiency.bandwidth
    kernels = _DENSE.cost(_decode(16, 8192)).seconds - _H100.overhead.iteration_s
    assert 1.0 < kernels / (read / bandwidth) < 1.02


def test_a_long_prompt_of_a_dense_model_is_bound_by_arithmetic() -> None:
    model = load_model("qwen3-8b")
    linear = 2 * 8192 * model.layer_macs_per_token / _H100.efficiency.gemm
    attention = 8192 * 8193 * model.attention_macs_per_pair / _H100.efficiency.attention
    kernels = _DENSE.cost(Batch(((8192, 0),), 0, 0, 1)).seconds - _H100.overhead.iteration_s
    assert 1.0 < kernels / ((linear + attention) / _H100.peak_flops) < 1.2


def test_layers_of_a_group_see_prompts_and_decoding_others_decoding_alone() -> None:
    chunk = Batch(((8192, 0),), 16, 16 * 9000, 17)
    group = _QWEN.cost(chunk._replace(prefill_layers=range(6, 9)))
    decode, whole = _QWEN.cost(_decode(16, 9000)), _QWEN.cost(chunk)
    part = (whole.expert_bytes - decode.expert_bytes) * 3 / 48
    assert group.expert_bytes == pytest.approx(decode.expert_bytes + part)
    assert group.seconds - decode.seconds == pytest.approx(
        (whole.seconds - decode.seconds) * 3 / 48, rel=0.01
    )


def test_expert_bytes_of_one_token_are_its_eight_experts_in_every_layer() -> None:
    one = _QWEN.cost(_decode(1, 100)).expert_bytes
    assert one == pytest.approx(48 * 8 * 3 * 2048 * 768 * 2)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["qwen3-30b-a3b", "gpt-oss-20b", "qwen3-8b"]),
    st.integers(1, 300),
    st.lists(st.integers(0, 10**6), min_size=1),
    st.integers(1, 4),
)
def test_a_stretch_of_decoding_costs_what_its_iterations_cost(
    name: str, sequences: int, contexts: list[int], width: int
) -> None:
    cost = serving_model(name, "h100x2")
    costs = cost.decode_costs(sequences, np.array(contexts), width)
    assert costs.energy_j is not None
    rows = zip(costs.seconds, costs.energy_j, strict=True)
    for context, row in zip(contexts, rows, strict=True):
        alone = cost.cost(Batch((), sequences, context, sequences * width, None, width))
        assert (*row, costs.expert_bytes) == alone[:3]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9000), st.integers(0, 30_000), st.integers(0, 100), st.integers(1, 9000))
def test_more_work_costs_more(new: int, context: int, sequences: int, each: int) -> None:
    alone = _QWEN.cost(Batch(((new, context),), 0, 0, 1))
    mixed = _QWEN.cost(Batch(((new, context),), sequences, sequences * each, sequences + 1))
    longer = _QWEN.cost(Batch(((new + 1, context + 1),), 0, 0, 1))
    for cost in (mixed, longer):
        assert cost.seconds >= alone.seconds
        assert cost.energy_j is not None
        assert alone.energy_j is not None
        assert cost.energy_j >= alone.energy_j
        assert cost.expert_bytes >= alone.expert_bytes


@given(st.integers(1, 300), st.integers(0, 300), st.integers(1, 300))
def test_visible_pairs_are_those_counted(new: int, context: int, window: int) -> None:
    counted = sum(min(context + token, window) for token in range(1, new + 1))
    assert visible_pairs(new, context, window) == counted
    assert visible_pairs(new, context, None) == visible_pairs(new, context, new + context)


def test_whole_experts_on_each_gpu_wait_for_the_fullest() -> None:
    model = load_model("qwen3-30b-a3b")
    overhead = _H100.overhead.model_copy(update={"expert_layer_s": 0.0})
    gpu = _H100.model_copy(update={"overhead": overhead})
    split, dealt = (GpuCost(model, gpu, 8, expert_parallel=each) for each in (1, 8))
    few, many = _decode(4, 100), _decode(256, 100)
    assert dealt.cost(few).expert_bytes == split.cost(few).expert_bytes
    assert dealt.cost(few).seconds > split.cost(few).seconds
    # With all experts needed they are even, and every token is gathered once, not on each GPU.
    assert dealt.cost(many).seconds < split.cost(many).seconds
    # Pairs of GPUs that cut their experts wait for less.
    pairs = GpuCost(model, gpu, 8, expert_parallel=4)
    assert split.cost(few).seconds < pairs.cost(few).seconds < dealt.cost(few).seconds


def test_launches_are_the_least_time_of_a_layer_with_experts() -> None:
    least = 48 * _H100.overhead.expert_layer_s + _H100.overhead.iteration_s
    one, many = _QWEN.cost(_decode(1, 100)), _QWEN.cost(Batch(((8192, 0),), 0, 0, 1))
    assert least < one.seconds < 1.1 * least
    assert many.seconds > 5 * least


def test_the_cache_has_what_weights_leave_of_the_usable_memory() -> None:
    free = 2 * 80e9 * 0.9 - load_model("qwen3-30b-a3b").weight_bytes
    assert _QWEN.kv_capacity_tokens == free // 98_304 // 16 * 16
    # Four heads of keys and values on eight GPUs: each is there twice.
    assert serving_model("qwen3-30b-a3b", "h100x8").kv_bytes_per_token == 2 * 98_304
    # On three the fullest has two of the four, and all have as much room as it.
    assert serving_model("qwen3-30b-a3b", "h100x8", units=3).kv_bytes_per_token == 1.5 * 98_304
    assert serving_model("qwen3-30b-a3b", "h100x8", units=5).kv_bytes_per_token == 1.25 * 98_304


def test_what_does_not_fit_or_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="'qwen3-235b-a22b' on 2 x NVIDIA H100 SXM 80 GB: weights"):
        serving_model("qwen3-235b-a22b", "h100x2")
    with pytest.raises(InputError, match="units of 'h100x2': found 3; allowed: 1 to 2"):
        serving_model("qwen3-8b", "h100x2", units=3)
    with pytest.raises(InputError, match="dies of a pool of 'flat32-wafer': found 7; allowed: wh"):
        serving_model("qwen3-8b", "flat32-wafer", units=7)
    with pytest.raises(InputError, match="'qwen2-72b' on chip 'wse2': weights take 1454"):
        serving_model("qwen2-72b", "wse2")
    with pytest.raises(InputError, match="--kv-sram-tokens: found 16; allowed on 'wse2': none"):
        serving_model("llama3-8b", "wse2", kv_sram_tokens=16)
    with pytest.raises(InputError, match="found 2; allowed on 'flat32': 1"):
        serving_model("qwen3-30b-a3b", "flat32", expert_parallel=2)
    with pytest.raises(InputError, match="found 3; allowed for 'qwen3-30b-a3b' on 8 GPUs: 1, 2, 4"):
        serving_model("qwen3-30b-a3b", "h100x8", expert_parallel=3)
    with pytest.raises(InputError, match="found 2; allowed for 'qwen3-8b' on 2 GPUs: 1$"):
        serving_model("qwen3-8b", "h100x2", expert_parallel=2)


def test_the_chips_of_the_contract_serve() -> None:
    wanted = {"flat32", "npusim-large", "npusim-small", "h100x2", "h100x8", "a100x2"}
    assert wanted <= set(serving_chips())
    assert [units_of(chip) for chip in ("h100x8", "flat32", "npusim-small")] == [8, 1024, 256]
