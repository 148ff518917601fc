"""Pools of GPUs: what crosses between them, and what that and idle GPUs take."""

import pytest

from tests.workloads.serving.served import trace_of
from tlm.chips.gpu import load_gpu_box
from workloads.models import load_model
from workloads.serving.engine.pools import make_pools
from workloads.serving.engine.run import run_disaggregated
from workloads.serving.schedulers import Chunked

_QWEN = load_model("qwen3-30b-a3b")
_TRACE = trace_of((0, 1000, 5), (0.5, 3000, 2), (0.7, 400, 1))


def test_a_token_crosses_once_whatever_copies_the_pools_keep() -> None:
    pools = make_pools("qwen3-30b-a3b", "h100x8", prefill_units=6, decode_units=2)
    assert pools.prefill.kv_bytes_per_token == 1.5 * _QWEN.kv_bytes_per_token
    figures = run_disaggregated(_TRACE, Chunked(512), pools)
    # The last request has all it wants with its first token.
    assert figures["pools"]["link"]["carried_bytes"] == 4000 * _QWEN.kv_bytes_per_token


def test_energy_counts_what_is_carried_and_gpus_in_no_pool() -> None:
    gpu = load_gpu_box("h100x8")
    pools = make_pools("qwen3-30b-a3b", "h100x8", prefill_units=3, decode_units=2)
    figures = run_disaggregated(_TRACE, Chunked(512), pools)
    parts = figures["pools"]
    picojoules = gpu.energy.link_byte_pj + 2 * gpu.energy.memory_byte_pj
    picojoules += 3 * gpu.energy.sram_byte_pj  # through it on the way out of, and into, memory
    carried_j = 4000 * _QWEN.kv_bytes_per_token * picojoules * 1e-12
    assert parts["link"]["energy_j"] == pytest.approx(carried_j)
    idle_j = (gpu.count - 5) * gpu.energy.idle_w * figures["span_s"]
    whole = parts["prefill"]["energy_j"] + parts["decode"]["energy_j"] + carried_j + idle_j
    assert figures["energy_j"] == pytest.approx(whole)


def test_energy_of_pools_of_tiles() -> None:
    pools = make_pools("llama3-8b", "flat32", prefill_units=512, decode_units=256)
    figures = run_disaggregated(_TRACE, Chunked(512), pools)
    parts = figures["pools"]
    # Out of memory and into it, through local memory twice, along a column of 16 and of 8 tiles.
    picojoules = 2 * 43.75 + 2 * 1.75 + 23 * 0.15
    carried_j = 4000 * load_model("llama3-8b").kv_bytes_per_token * picojoules * 1e-12
    assert parts["link"]["energy_j"] == pytest.approx(carried_j)
    idle_j = 70.0 / 4 * figures["span_s"]
    whole = parts["prefill"]["energy_j"] + parts["decode"]["energy_j"] + carried_j + idle_j
    assert figures["energy_j"] == pytest.approx(whole)
