"""Energy: each term by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tlm.chips import load_chip
from tlm.chips.gpu import load_gpu_box
from tlm.chips.parts import noc_timing
from workloads.machine.place import Place, chip_place
from workloads.models import load_model
from workloads.models.operators import Attention, Operator, Product
from workloads.serving.price.cost import Batch
from workloads.serving.price.energy import (
    TileTraffic,
    Traffic,
    carried_byte_j,
    kernel_energy_j,
    traffic_energy_j,
)
from workloads.serving.price.mapping import Mapping
from workloads.serving.price.models import serving_model
from workloads.serving.price.plan_energy import plan_energy_j

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
_NOTHING = TileTraffic(0.0, 0.0, 0.0, 0.0, 16.5)


@pytest.mark.parametrize(
    ("traffic", "picojoules"),
    [
        (_NOTHING._replace(flops=128.0), 128 * 0.5),
        (_NOTHING._replace(operand_bytes=6.0), 6 * 1.75),
        (_NOTHING._replace(memory_bytes=1.0), 43.75 + 16.5 * 0.15),  # half way up the 32 rows
        (_NOTHING._replace(delivered_bytes=1.0), 2 * 1.75 + 0.15),  # written and read
        (_NOTHING._replace(operand_bytes=6.0, delivered_bytes=1.0), (6 + 1) * 1.75 + 0.15),
        (_NOTHING._replace(operand_bytes=6.0, delivered_bytes=8.0), (8 + 8) * 1.75 + 8 * 0.15),
    ],
)
def test_terms_of_tiles(traffic: TileTraffic, picojoules: float) -> None:
    figures = _FLAT32.energy
    assert figures is not None
    assert kernel_energy_j(figures, traffic) == pytest.approx(picojoules * 1e-12)
    assert carried_byte_j(figures, 31) == pytest.approx((2 * 43.75 + 2 * 1.75 + 31 * 0.15) * 1e-12)


def _place(name: str) -> Place:
    """All tiles of a chip with its memory, for numbers of 16 bits."""
    chip = load_chip(name)
    return chip_place(chip, (chip.grid.rows, chip.grid.cols), noc_timing(chip), 16, 32, memory=True)


def _energy_j(mapping: Mapping, operator: Operator, macs: int) -> float:
    """Of an operator's plan, on the 32 x 32 tiles of `flat32`."""
    joules = plan_energy_j(_FLAT32, mapping.place, mapping.of(operator).plan, macs)
    assert joules is not None
    return joules


def test_decoding_on_tiles_pays_for_reading_weights_and_caches() -> None:
    model, shape = serving_model("llama3-8b", "flat32"), load_model("llama3-8b")
    cost = model.cost(Batch((), 8, 8 * 4096, 8))
    embedding = 2 * shape.vocabulary * shape.hidden
    read = shape.weight_bytes - embedding + 8 * 4096 * shape.kv_bytes_per_token
    assert cost.energy_j is not None
    assert 1.0 < cost.energy_j / (read * 43.75e-12) < 1.4


@pytest.mark.parametrize("chip", ["flat32", "npusim-large", "npusim-small"])
def test_a_stretch_on_tiles_takes_the_energy_of_its_iterations(chip: str) -> None:
    model = serving_model("gpt-oss-20b", chip)
    contexts = np.array([0, 77, 3000, 250_001])
    found = model.decode_costs(30, contexts, 2).energy_j
    assert found is not None
    alone = [model.cost(Batch((), 30, each, 60, None, 2)).energy_j for each in contexts.tolist()]
    assert found == alone


def test_half_of_the_tiles_draw_half_of_the_static_power() -> None:
    assert serving_model("llama3-8b", "flat32").static_power_w == 70.0
    assert serving_model("llama3-8b", "flat32", units=512).static_power_w == 35.0


def test_engine_rows_that_are_not_filled_cost_a_read_of_every_operand() -> None:
    # One token against the weights of the head: each is loaded, read once, used once. Long blocks
    # get more of the channels, so the plan gives them to several tiles.
    linear = load_model("llama3-8b").head
    product = Product(linear.name, 1, linear.n, linear.k)
    joules = _energy_j(Mapping(_place("flat32")), product, product.macs)
    least = 2 * linear.weights * (43.75 + 2 * 1.75 + 17.5 * 0.15 + 0.5) * 1e-12
    assert 1.0 < joules / least < 1.2


def test_decoding_reads_keys_and_values_from_sram_wherever_they_are() -> None:
    # 4 queries a head of keys and values are far from filling the engine's 32 rows. A run of tiles
    # has 3840 tokens of a head without padding.
    attention = Attention("decode attention", 8, 32, 8, 1, 3840, 128, 128)
    place = _place("flat32")
    macs, cached = 8 * 32 * 3840 * 256, 8 * 8 * 3840 * 256 * 2
    behind = _energy_j(Mapping(place), attention, macs)
    kept = _energy_j(Mapping(replace(place, offchip=None), kept=True), attention, macs)
    assert behind - kept == pytest.approx(cached * (43.75 + 16.5 * 0.15) * 1e-12, rel=0.03)
    least = 2 * macs * 0.5e-12 + cached * (2 * 1.75 + 0.15) * 1e-12
    assert 1.0 < kept / least < 1.1


def test_what_is_in_sram_is_not_read_from_memory() -> None:
    model = serving_model("llama3-8b", "flat32")
    spilled, kept = (
        model.cost(Batch((), 1, 2000, 1, None, 1, tokens)).energy_j for tokens in (0, 2000)
    )
    assert spilled is not None and kept is not None
    byte_j = (43.75 + 16.5 * 0.15) * 1e-12
    read_j = 2001 * model.kv_bytes_per_token * byte_j
    assert spilled - kept == pytest.approx(read_j, rel=0.1)  # blocks of keys are filled up
