"""Which kernels run the operators of a model."""

import pytest

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.machine.place import chip_place
from workloads.models.operators import Attention, Product
from workloads.serving.price.mapping import Mapping


def test_values_of_a_latent_cache_are_not_loaded_beside_its_keys() -> None:
    chip = load_chip("flat32").for_dtype("fp16")
    mapping = Mapping(chip_place(chip, (32, 32), noc_timing(chip), 16, 16, memory=True))
    shared = Attention("decode attention", 8, 128, 1, 1, 4096, 576, 512, latent=True)
    once, apart = mapping.of(shared), mapping.of(shared._replace(latent=False))
    assert (once.choices.latent, apart.choices.latent) == (True, None)
    assert once.plan.moved.read < 0.65 * apart.plan.moved.read
    assert once.cycles < 0.8 * apart.cycles


@pytest.mark.parametrize(
    ("weight_bytes", "groups", "variant"),
    [(2.0, 1, ""), (1.0, 1, "narrow weights"), (0.53125, 8, "narrow weights")],
)
def test_products_of_narrow_weights_are_not_compared_as_others(
    weight_bytes: float, groups: int, variant: str
) -> None:
    """Tiles widen what comes in fewer bits, and less of it crosses the network."""
    chip = load_chip("flat32")
    place = chip_place(chip, (8, 8), noc_timing(chip), 16, 32, memory=True)
    mapping = Mapping(place)
    mapped = mapping.of(Product("up", 64, 512, 256, groups, weight_bytes))
    assert mapping.variant(mapped) == variant


def test_weights_in_the_tiles_are_in_any_width_the_same() -> None:
    chip = load_chip("flat32")
    place = chip_place(chip, (4, 4), noc_timing(chip), 16, 32)
    kernel = KERNELS["stream-gemm"]
    for bits in (None, 4.0):
        assert kernel.variant(Choices(resident=True, weight_bits=bits), place) == "resident"
    assert kernel.variant(Choices(weight_bits=16.0), place) == ""
