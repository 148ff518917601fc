"""What serving pays for an iteration on tiles is what its kernels take, one by one."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.test_architecture import FILES, imported
from tests.wafertlm.test_iteration import TINY
from wafertlm.asked.iteration import IterationOptions
from wafertlm.iteration.run import run_iteration
from wafertlm.serving import ServeOptions
from wafertlm.serving.service import Service
from workloads.serving.price.models import serving_model

_SERVED = [
    ("llama3-8b", "flat32"),
    ("gpt-oss-20b", "flat32"),
    ("qwen3-30b-a3b", "npusim-large"),
    ("qwen3-4b", "npusim-small"),
]


def _random_work(stream: np.random.Generator) -> tuple[tuple[str, ...], str | None]:
    """Prompt chunks and decoding requests, as options have them."""
    chunks = stream.integers(0, 3)
    prefill = tuple(
        f"{stream.integers(1, 2048)}@{stream.choice([0, stream.integers(0, 6000)])}"
        for _ in range(chunks)
    )
    decoding = None
    if not chunks or stream.random() < 0.7:
        decoding = f"{stream.integers(1, 128)}@{stream.integers(1, 6000)}"
    return prefill, decoding


#: Of these draws one has prompts alone, one has decoding alone; the others have one or two prompts.
_SEEDS = range(3, 13)


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize(("model", "chip"), _SERVED)
def test_serving_pays_what_an_iterations_kernels_take(model: str, chip: str, seed: int) -> None:
    prefill, decoding = _random_work(np.random.default_rng(seed))
    options = IterationOptions(
        model=model, chip=chip, prefill=prefill, decode=decoding, allow_stale=True
    )
    ran, batch = run_iteration(options), options.batch
    # An iteration by itself has as much room for keys and values as it needs, if there is any.
    cached = sum(map(sum, batch.prefills)) + batch.decode_context_tokens + batch.decode_tokens
    served = serving_model(model, chip, kv_wanted_tokens=cached)
    kept = min(batch.decode_context_tokens, served.kv_sram_tokens or 0)
    cost = served.cost(batch._replace(decode_sram_tokens=kept))
    assert cost.seconds == ran.seconds
    if cost.energy_j is None:
        assert ran.energy_j is None
    else:
        assert served.static_power_w is not None and ran.energy_j is not None
        idle_j = served.static_power_w * ran.seconds
        assert cost.energy_j + idle_j == pytest.approx(ran.energy_j, rel=1e-12)


def test_the_draws_are_of_all_kinds() -> None:
    drawn = [_random_work(np.random.default_rng(seed)) for seed in _SEEDS]
    kinds = {(len(prefill), decoding is not None) for prefill, decoding in drawn}
    assert kinds == {(0, True), (1, True), (2, False), (2, True)}


@pytest.mark.parametrize(("chip", "are_kept"), [("flat32", False), ("npusim-large", True)])
def test_routers_are_held_against_the_plans_that_are_priced(
    chip: str, are_kept: bool, tmp_path: Path
) -> None:
    """The second chip's tiles keep all weights of this model, and run some products with them."""
    model = tmp_path / "config.json"
    model.write_text(json.dumps(TINY))
    asked = {"scheduler": "chunked", "workload": "fixed:512:16", "rate_rps": 1.0, "requests": 4}
    service = Service(ServeOptions(model=str(model), chip=chip, **asked))
    (price,) = service.tiles
    plans = service._usual_plans(price)
    products = [place.offchip for place, mapped in plans if mapped.kernel == "stream-gemm"]
    assert products
    assert any(edge is None for edge in products) == are_kept


def test_routers_are_held_against_reshuffles_of_a_wafer_too() -> None:
    """Of this model a prompt of 512 tokens runs on the grid of decoding, one of 4,096 does not."""
    asked = {"scheduler": "chunked", "workload": "fixed:512:16", "rate_rps": 1.0, "requests": 4}
    service = Service(ServeOptions(model="qwen3-1.7b", chip="wse2", **asked))
    (price,) = service.tiles
    assert "exchange" in {mapped.kernel for _, mapped in service._usual_plans(price)}


#: What prices of tiles may compute with: the kernels' plans and closed forms, and energy of plans.
_ALLOWED = {
    "tlm.calibrated",  # of which sources a measurement is
    "tlm.chips",
    "tlm.chips.find",
    "tlm.chips.parts",
    "tlm.compiled",
    "tlm.compute.base",  # quotients of whole numbers
    "tlm.engines.lt",  # the kernels' programs at level lt
    "tlm.engines.at.cost",  # what they cost at level at
    "tlm.on_routers",  # and they there
    "tlm.program",
    "tlm.errors",
    "tlm.files",
    "tlm.level_errors",  # how far off a closed form may be
    "tlm.offchip.edge",  # how far a tile is from its channel, for energy
}
#: Of no kernel: what goes between dies, and weights on their way to another grid.
_BESIDE = {
    "die_links": ("tlm.dies.",),
    "die_plan": ("tlm.dies.schedule",),
    "regions": ("tlm.interconnect.zero_load",),
    "wafer": ("tlm.interconnect.zero_load",),
}
#: Prices of GPUs, what they share with tiles, and who chooses between both.
_OF_GPUS = ("gpu_cost", "gpu_kernels", "energy", "models")
_PRICES = [name.rpartition(".")[2] for name in FILES if name.startswith("workloads.serving.price.")]


@pytest.mark.parametrize("name", [name for name in _PRICES if name not in _OF_GPUS])
def test_prices_of_tiles_import_no_formula_but_the_kernels(name: str) -> None:
    path = FILES[f"workloads.serving.price.{name}"]
    for module in imported(path):
        if module.startswith("tlm"):
            known = module in _ALLOWED or module.startswith(_BESIDE.get(name, ()))
            assert known, f"{path} imports {module}"
        elif module.startswith("workloads"):
            parts = ("kernels", "machine", "models", "serving.price")
            assert module.startswith(tuple(f"workloads.{each}" for each in parts))
            assert "gpu" not in module
