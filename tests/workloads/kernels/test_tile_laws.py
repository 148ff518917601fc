"""Laws that kernels plan with, against the cycles of their jobs on tiles, word by word."""

import pytest

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing, own_tile
from tlm.program.operations import Engine, Work
from tlm.tiles.programs import on_tiles
from workloads.kernels.attention.flash_attention import flash_attention
from workloads.kernels.attention.flash_search import plan_flash
from workloads.kernels.attention.shape import AttentionShape
from workloads.machine.place import chip_place


@pytest.mark.parametrize("block", [8, 16, 32])
@pytest.mark.parametrize("turns", [1, 2])
def test_products_of_attention_take_what_their_law_says(block: int, turns: int) -> None:
    """Scores with sums at rest, and what comes of the softmax with weights at rest."""
    chip = load_chip("rtl-4x4")
    tile = own_tile(chip)
    assert tile is not None
    place = chip_place(chip, (4, 4), noc_timing(chip), 8, 32)
    shape = AttentionShape(1, 4, 4, 4 * block, 4 * block, block, block)
    program = flash_attention(plan_flash(shape, place, turns))
    works = [
        (planned, timed)
        for planned, timed in zip(
            program.operations(), on_tiles(program, tile).operations(), strict=True
        )
        if isinstance(planned, Work) and planned.engine is Engine.MATRIX
    ]
    assert {planned.label for planned, _ in works} == {"scores", "output"}
    for planned, timed in works:
        assert isinstance(timed, Work)
        # Streams that meet at a bank cost the rest.
        assert planned.cycles == pytest.approx(timed.cycles, rel=0.05)
