"""The channels of chips: together they hold and carry what the part of the chip does."""

from fractions import Fraction

import pytest

from tlm.chips import load_chip
from tlm.chips.parts import offchip_channels
from tlm.errors import InputError


@pytest.mark.parametrize("name", ["flat32", "flat32-wafer"])
@pytest.mark.parametrize("cols", [32, 16, 3])
def test_channels_hold_what_the_part_of_the_chip_does(name: str, cols: int) -> None:
    """The wafer's dies have more channels than columns."""
    chip = load_chip(name)
    assert chip.memory is not None
    edge = offchip_channels(chip, 4, cols)
    assert edge.channels == cols
    held = chip.memory.capacity_bytes * cols // 32
    assert edge.capacity_bytes * edge.channels == held
    carried = chip.memory.bandwidth_bytes_per_s / chip.clock_hz * cols / 32
    assert float(edge.timing.bytes_per_cycle * cols) == pytest.approx(carried, rel=1e-9)


def test_bandwidth_is_an_exact_ratio() -> None:
    """2 TB/s over 32 channels at 965 MHz; of a tile of NpuSim's 120 GB/s at 500 MHz."""
    for name, ratio in [("flat32", Fraction(12500, 193)), ("npusim-large", Fraction(240))]:
        assert offchip_channels(load_chip(name), 4, 4).timing.bytes_per_cycle == ratio


def test_a_channel_of_less_than_a_byte_a_cycle_is_refused() -> None:
    chip = load_chip("flat32")
    assert chip.memory is not None
    memory = chip.memory.model_copy(update={"bandwidth_bytes_per_s": 1e9})
    slow = chip.model_copy(update={"memory": memory})
    said = "memory.bandwidth_bytes_per_s: found 1e[+]09, 0.0324 bytes a cycle of each of 32 "
    with pytest.raises(InputError, match=said):
        offchip_channels(slow, 4, 32)
