"""Which kernels run the operators of a model."""

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from workloads.machine.place import chip_place
from workloads.models.operators import Attention
from workloads.serving.price.mapping import Mapping


def test_values_of_a_latent_cache_are_not_loaded_beside_its_keys() -> None:
    chip = load_chip("flat32").for_dtype("fp16")
    mapping = Mapping(chip_place(chip, (32, 32), noc_timing(chip), 16, 16, memory=True))
    shared = Attention("decode attention", 8, 128, 1, 1, 4096, 576, 512, latent=True)
    once, apart = mapping.of(shared), mapping.of(shared._replace(latent=False))
    assert (once.choices.latent, apart.choices.latent) == (True, None)
    assert once.plan.moved.read < 0.65 * apart.plan.moved.read
    assert once.cycles < 0.8 * apart.cycles
