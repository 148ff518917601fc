"""Closed forms of GEMM and attention: worked by hand, bounded by rooflines, against the paper."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.chips import load_chip
from tlm.errors import InputError
from workloads.mapping.attention import AttentionMapper, AttentionShape
from workloads.mapping.gemm import GemmMapper
from workloads.mapping.machine import Machine, machine_of, missing_parts

_FLAT32 = machine_of(load_chip("flat32"))
_GEMM = GemmMapper(_FLAT32, 2)
_LLAMA3 = AttentionShape(8, 4, 128, 128, 256, 2)
_ATTENTION = AttentionMapper(_FLAT32, _LLAMA3)


def test_the_profile_gives_the_published_peak() -> None:
    assert 2 * _FLAT32.macs_per_cycle * _FLAT32.clock_hz == pytest.approx(988e12, rel=0.03)
    assert _FLAT32.memory_bytes_per_cycle * _FLAT32.clock_hz == pytest.approx(2e12)


def test_other_chips_are_refused() -> None:
    assert not missing_parts(load_chip("flat32"))
    with pytest.raises(InputError, match="chip 'wse2': no closed forms of it; allowed: chips with"):
        machine_of(load_chip("wse2"))


def test_one_block_on_one_tile_by_hand() -> None:
    tile = replace(_FLAT32, rows=1, cols=1, cross_cycles=1, memory_bytes_per_cycle=8.0)
    plan = GemmMapper(tile, 2).plan(32, 64, 16)
    assert (plan.tiles, plan.block) == ((1, 1, 1), (32, 64, 16))
    # Engine: set-up 39, preload 86, one tile of 16 x 4 cycles, drain 64 + 32.
    compute = 39 + 86 + 64 + 96
    # A and B of 512 and 1024 elements of 2 bytes in, C of 2048 out, at 8 bytes a cycle.
    supply, write = 2 * (512 + 1024) / 8, 2 * 2048 / 8
    assert plan.cycles == compute + supply + write + 1 + tile.memory_latency_cycles


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 20_000), st.integers(1, 30_000), st.integers(1, 30_000))
def test_a_gemm_is_never_faster_than_the_rooflines(m: int, n: int, k: int) -> None:
    cycles = _GEMM.plan(m, n, k).cycles
    assert cycles >= m * n * k / _FLAT32.macs_per_cycle
    assert cycles >= 2 * (m * k + k * n + m * n) / _FLAT32.memory_bytes_per_cycle


def test_large_gemms_come_near_the_peak_and_flat_ones_near_the_bandwidth() -> None:
    large = _GEMM.plan(4096, 28672, 4096).cycles
    assert 4096 * 28672 * 4096 / _FLAT32.macs_per_cycle / large > 0.94
    flat = _GEMM.plan(8, 28672, 4096).cycles
    assert 28672 * 4096 * 2 / _FLAT32.memory_bytes_per_cycle / flat > 0.95


@pytest.mark.parametrize(("sequence", "least", "most"), [(4096, 0.90, 0.96), (512, 0.3, 0.6)])
def test_attention_utilization_beside_the_paper(sequence: int, least: float, most: float) -> None:
    # Fig. 9, no mask: 4 x 32 heads of 128; 92.7 % at S = 4096, short sequences far below.
    shape = AttentionShape(128, 1, 128, 128, 256, 2)
    cycles = AttentionMapper(_FLAT32, shape).prefill(sequence, 0, False).cycles
    macs = 128 * 2 * sequence**2 * 128
    assert least < macs / _FLAT32.macs_per_cycle / cycles < most


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9000), st.integers(0, 30_000))
def test_prefill_attention_is_never_faster_than_the_rooflines(new: int, context: int) -> None:
    cycles = _ATTENTION.prefill(new, context).cycles
    pairs = new * context + new * (new + 1) / 2
    assert cycles >= 32 * 128 * 2 * pairs / _FLAT32.macs_per_cycle
    kv_bytes = 2 * 8 * 128 * 2 * (context + new)
    assert cycles >= kv_bytes / _FLAT32.memory_bytes_per_cycle
    assert cycles <= _ATTENTION.prefill(new, context, False).cycles


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 20_000))
def test_decode_attention_is_bound_by_reading_keys_and_values(sequences: int, each: int) -> None:
    (cycles,), _ = _ATTENTION.decode(sequences, np.array([sequences * each]), 1, np.zeros(1))
    read = 2 * 8 * 128 * 2 * sequences * each / _FLAT32.memory_bytes_per_cycle
    assert cycles >= read
    if sequences >= 32 and each >= 1024:
        assert cycles < 1.1 * read


def _machine_without_the_network(machine: Machine) -> Machine:
    return replace(machine, link_bytes_per_cycle=1 << 30, cross_cycles=0, hop_cycles=0)


def test_a_faster_network_never_hurts_and_a_slow_one_is_exposed() -> None:
    fast = GemmMapper(_machine_without_the_network(_FLAT32), 2).plan(4096, 4096, 4096).cycles
    slow = GemmMapper(replace(_FLAT32, link_bytes_per_cycle=8), 2).plan(4096, 4096, 4096).cycles
    assert fast <= _GEMM.plan(4096, 4096, 4096).cycles < slow


def test_a_group_of_products_is_one_pipeline() -> None:
    alone, twenty = _GEMM.plan(16, 1536, 2048).cycles, _GEMM.plan(16, 1536, 2048, 20).cycles
    read = 20 * 1536 * 2048 * 2 / _FLAT32.memory_bytes_per_cycle
    assert read < twenty < 20 * alone
    assert twenty < 1.15 * read


def test_narrow_weights_are_read_faster() -> None:
    narrow = GemmMapper(_FLAT32, 2, 0.53125).plan(8, 28672, 4096).cycles
    wide = _GEMM.plan(8, 28672, 4096).cycles
    assert narrow / wide == pytest.approx(0.53125 / 2, rel=0.1)


def test_a_window_bounds_attention() -> None:
    whole, window = _ATTENTION.prefill(8192, 0), _ATTENTION.prefill(8192, 0, True, 128)
    assert window.cycles < 0.2 * whole.cycles
    assert window.moved.memory < 0.3 * whole.moved.memory
    assert _ATTENTION.prefill(64, 0, True, 128) == _ATTENTION.prefill(64, 0)


def test_what_a_gemm_moves_by_hand() -> None:
    # On one tile all that is read is delivered, weights once for each of the two passes over m.
    tile = replace(_FLAT32, rows=1, cols=1)
    plan = GemmMapper(tile, 2, 1).plan(64, 64, 16)
    passes_m, passes_n = (-(-64 // size) for size in plan.block[:2])
    read = 2 * 64 * 16 * passes_n + 1 * 16 * 64 * passes_m
    assert plan.moved == (read + 2 * 64 * 64, read)


def test_a_multicast_is_delivered_to_each_and_read_once() -> None:
    plan = _GEMM.plan(4096, 28672, 4096)
    m, n, k = 4096, 28672, 4096
    least = 2 * (m * k + k * n + m * n)
    assert plan.moved.memory >= least
    # Every tile takes in its rows of A and columns of B.
    taken_in = 2 * k * (m / plan.tiles[0] + n / plan.tiles[1]) * 1024 / plan.tiles[2]
    assert plan.moved.delivered >= taken_in > plan.moved.memory


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.lists(st.integers(0, 10**6), min_size=1), st.integers(1, 4))
def test_decode_over_many_contexts_equals_one_at_a_time(
    sequences: int, contexts: list[int], width: int
) -> None:
    several = _ATTENTION.decode(sequences, np.array(contexts), width, np.zeros(len(contexts)))
    alone = [
        _ATTENTION.decode(sequences, np.array([each]), width, np.zeros(1)) for each in contexts
    ]
    assert np.array_equal(several, np.concatenate(alone, axis=1))


@pytest.mark.parametrize("name", ["npusim-large", "npusim-small"])
def test_npusim_chips_reach_their_bounds(name: str) -> None:
    machine = machine_of(load_chip(name))
    mapper = GemmMapper(machine, 2)
    large = mapper.plan(8192, 25600, 5120).cycles
    assert 0.8 < 8192 * 25600 * 5120 / machine.macs_per_cycle / large <= 1
    read = 25600 * 5120 * 2 / machine.memory_bytes_per_cycle
    # An array swallows weights hardly faster than memory gives them.
    assert read < mapper.plan(8, 25600, 5120).cycles < 1.5 * read


def test_a_pool_is_whole_rows() -> None:
    pool = machine_of(load_chip("npusim-large"), 16)
    assert (pool.rows, pool.cols, pool.memory_bytes) == (2, 8, 2**36)
    whole = machine_of(load_chip("npusim-large"))
    assert pool.memory_bytes_per_cycle == whole.memory_bytes_per_cycle / 4
    with pytest.raises(InputError) as raised:
        machine_of(load_chip("npusim-large"), 20)
    assert str(raised.value) == (
        "tiles of a pool of 'npusim-large': found 20; allowed: whole rows, multiples of 8 up to 64"
    )
