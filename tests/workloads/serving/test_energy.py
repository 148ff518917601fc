"""Energy: each term by hand."""

import numpy as np
import pytest

from tlm.chips import load_chip
from tlm.chips.gpu import load_gpu_box
from workloads.mapping.attention import AttentionMapper, AttentionShape
from workloads.mapping.gemm import GemmMapper
from workloads.mapping.machine import Moved, machine_of
from workloads.models import load_model
from workloads.serving.price.cost import Batch
from workloads.serving.price.energy import (
    Traffic,
    carried_byte_j,
    decode_energy_j,
    tile_energy_j,
    traffic_energy_j,
)
from workloads.serving.price.models import serving_model

_GPU = load_gpu_box("h100x2")


@pytest.mark.parametrize(
    ("traffic", "picojoules"),
    [
        (Traffic(flops=64.0), 64 * _GPU.energy.flop_pj + _GPU.energy.sram_byte_pj),
        (Traffic(memory_bytes=1.0), _GPU.energy.memory_byte_pj + _GPU.energy.sram_byte_pj),
        (Traffic(link_bytes=1.0), _GPU.energy.link_byte_pj + _GPU.energy.sram_byte_pj),
    ],
)
def test_terms(traffic: Traffic, picojoules: float) -> None:
    assert traffic_energy_j(_GPU.energy, traffic) == pytest.approx(picojoules * 1e-12)


def test_an_iteration_pays_its_operations_and_being_awake() -> None:
    model = serving_model("qwen3-8b", "h100x2", units=1)
    cost = model.cost(Batch((), 8, 8 * 4096, 8))
    read = 2 * (8_190_726_144 - 151_936 * 4096) + 8 * 4096 * 147_456
    least = cost.seconds * _GPU.energy.active_w + read * _GPU.energy.memory_byte_pj * 1e-12
    assert cost.energy_j is not None
    assert 1.0 < cost.energy_j / least < 1.1
    assert model.static_power_w == _GPU.energy.idle_w


_FLAT32 = load_chip("flat32")


@pytest.mark.parametrize(
    ("macs", "moved", "vector_ops", "picojoules"),
    [
        # Rows of 32 and columns of 64 results share an operand of 2 bytes.
        (64.0, Moved(), 0.0, 128 * 0.5 + (4 + 2) * 1.75),
        (0.0, Moved(memory=1.0), 0.0, 43.75 + 16.5 * 0.15),  # half way up the 32 rows
        (0.0, Moved(delivered=1.0), 0.0, 2 * 1.75 + 0.15),  # written and read
        (64.0, Moved(delivered=1.0), 0.0, 128 * 0.5 + (4 + 2 + 1) * 1.75 + 0.15),
        (0.0, Moved(), 1.0, 0.5),
    ],
)
def test_terms_of_tiles(macs: float, moved: Moved, vector_ops: float, picojoules: float) -> None:
    figures, machine = _FLAT32.energy, machine_of(_FLAT32)
    assert figures is not None
    joules = tile_energy_j(figures, machine, macs, moved, vector_ops)
    assert joules == pytest.approx(picojoules * 1e-12)
    assert carried_byte_j(figures, 31) == pytest.approx((2 * 43.75 + 2 * 1.75 + 31 * 0.15) * 1e-12)


def test_memory_at_each_tile_is_no_hop_away() -> None:
    assert machine_of(load_chip("npusim-large")).memory_hops == 0
    assert machine_of(_FLAT32).memory_hops == 16.5


def test_decoding_on_tiles_pays_for_reading_weights_and_caches() -> None:
    model, shape = serving_model("llama3-8b", "flat32"), load_model("llama3-8b")
    cost = model.cost(Batch((), 8, 8 * 4096, 8))
    embedding = 2 * shape.vocabulary * shape.hidden
    read = shape.weight_bytes - embedding + 8 * 4096 * shape.kv_bytes_per_token
    assert cost.energy_j is not None
    assert 1.0 < cost.energy_j / (read * 43.75e-12) < 1.3


@pytest.mark.parametrize("chip", ["flat32", "npusim-large", "npusim-small"])
def test_a_stretch_on_tiles_takes_the_energy_of_its_iterations(chip: str) -> None:
    model = serving_model("gpt-oss-20b", chip)
    contexts = np.array([0, 77, 3000, 250_001])
    found = model.decode_costs(30, contexts, 2).energy_j
    assert found is not None
    alone = [model.cost(Batch((), 30, each, 60, None, 2)).energy_j for each in contexts.tolist()]
    assert found.tolist() == alone


def test_half_of_the_tiles_draw_half_of_the_static_power() -> None:
    assert serving_model("llama3-8b", "flat32").static_power_w == 70.0
    assert serving_model("llama3-8b", "flat32", units=512).static_power_w == 35.0


def test_engine_rows_that_are_not_filled_cost_a_read_of_every_operand() -> None:
    # One token against the weights of a layer: each is delivered, read once, and used once.
    model, chip = load_model("llama3-8b"), load_chip("flat32")
    linear, machine, figures = model.head, machine_of(chip), chip.energy
    assert figures is not None
    plan = GemmMapper(machine, 2).plan(1, linear.n, linear.k)
    joules = tile_energy_j(figures, machine, linear.weights, plan.moved)
    least = 2 * linear.weights * (43.75 + 2 * 1.75 + 17.5 * 0.15 + 0.5) * 1e-12
    assert 1.0 < joules / least < 1.01


def test_decoding_reads_keys_and_values_from_sram_wherever_they_are() -> None:
    # 4 queries a head of keys and values are far from filling the engine's 32 rows.
    machine, figures = machine_of(_FLAT32), _FLAT32.energy
    assert figures is not None
    decode_j = decode_energy_j(figures, machine, 8192.0, 4096)
    assert decode_j == pytest.approx(
        (8192e-12, 768 * 1.75e-12, 4096 * 1.75e-12, 4096 * (43.75 + 1.75 + 17.5 * 0.15) * 1e-12)
    )
    mapper = AttentionMapper(machine, AttentionShape(8, 4, 128, 128, 256, 2), decode_j)
    for width in (1, 8):
        _, (joules,) = mapper.decode(1, np.array([1000]), width, np.ones(1))
        pairs, tokens = 1000 * width + width * (width + 1) // 2, 1000 + width
        reads = max(pairs * decode_j.operands, tokens * decode_j.read)
        assert joules == pytest.approx(pairs * decode_j.arithmetic + reads)


def test_what_is_in_sram_is_not_read_from_memory() -> None:
    model = serving_model("llama3-8b", "flat32")
    spilled, kept = (
        model.cost(Batch((), 1, 2000, 1, None, 1, tokens)).energy_j for tokens in (0, 2000)
    )
    assert spilled is not None and kept is not None
    byte_j = (43.75 + 1.75 + 17.5 * 0.15) * 1e-12
    assert spilled - kept == pytest.approx(2001 * model.kv_bytes_per_token * byte_j)
