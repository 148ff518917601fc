"""Energy: each term by hand."""

import pytest

from tlm.chips.gpu import load_gpu_box
from workloads.serving.cost import Batch
from workloads.serving.energy import Traffic, traffic_energy_j
from workloads.serving.models import serving_model

_GPU, _ = load_gpu_box("h100x2")


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
