"""The kernels of a layer on a square grid, and the regions that layers lie in."""

import pytest

from tlm.chips import load_chip
from tlm.errors import InputError
from workloads.kernels.catalogue import KERNELS
from workloads.models import load_model
from workloads.serving.price.grid_layer import check_grid_model, grid_operators
from workloads.serving.price.parts import Decode, Layer, Prompt
from workloads.serving.price.regions import regions_of

SIDE, CONTEXT = 420, 4095
MODEL = load_model("llama3-8b")


def test_a_prompt_is_nine_products_of_which_five_align() -> None:
    parts = (Layer(4096, False), Prompt(4096, 0, None))
    found = [each for part in parts for each in grid_operators(MODEL, part, SIDE)]
    products = [each for each in found if each.kernel.startswith("mesh-gemm")]
    assert len(products) == 9
    assert products[-2].kernel == "mesh-gemm-t"  # one operand shifts
    aligned = [each.name for each in products if not each.choices.skewed]
    aligned.remove("scores")
    assert aligned == ["query", "attention output", "gate", "down", "values"]
    macs = sum(KERNELS[each.kernel].macs(each.sizes, each.choices) for each in products)
    # Keys and values as wide as queries.
    assert macs == 4096 * (4 * 4096**2 + 3 * 4096 * 14336 + 2 * 4096 * 4096)


def test_a_token_is_ten_all_reductions() -> None:
    parts = (Layer(1, False), Decode(1, 1, CONTEXT, None))
    found = [each for part in parts for each in grid_operators(MODEL, part, SIDE)]
    lengths = [-(-each.sizes[1] // SIDE) for each in found if each.kernel == "mesh-gemv"]
    lengths += [each.sizes[0] for each in found if each.kernel == "row-sum"]
    d, s, f = -(-4096 // SIDE), -(-4096 // SIDE), -(-14336 // SIDE)
    assert sorted(lengths) == sorted([1, 3 * d, s, 1, 1, d, d, 1, 2 * f, d])


def test_other_layers_are_refused() -> None:
    with pytest.raises(InputError, match="'deepseek-v3-671b' has experts and a latent cache; allo"):
        check_grid_model(load_model("deepseek-v3-671b"))


def test_regions_hold_all_layers_and_fill_and_drain() -> None:
    chip = load_chip("wse2")
    six = regions_of(MODEL, chip, 360)
    assert (six.count, six.layers_each) == (6, 6)
    assert regions_of(MODEL, chip, 720).count == 1
    # One item is in one region at a time; many keep all of them at work.
    assert six.pipelined(600.0, 600.0) == 600.0
    assert six.pipelined(6000.0, 600.0) == pytest.approx(1500.0)
    assert six.bubble_pct(1) == pytest.approx(100 * 5 / 6)
    with pytest.raises(InputError, match="has 921x921 tiles, found 1000x1000"):
        regions_of(MODEL, chip, 1000)
