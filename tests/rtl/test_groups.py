"""FlatAttention in groups of tiles side by side, in Verilog: data, and cycles against `at`."""

import pytest

from calibration.levels.cases import Tiles
from calibration.levels.tiles import TileCase, point
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import tile_model
from tlm.calibrated import stale_allowed
from workloads.kernels.catalogue import Choices

pytestmark = pytest.mark.rtl

#: Heads of queries and of keys, rows, keys and depths: streams for four groups, and for three.
SHAPES = ((1, 8, 8, 64, 64, 16, 16), (1, 3, 3, 32, 80, 8, 8))


@pytest.mark.slow  # tiles of 8x8 take minutes to build
@pytest.mark.parametrize(("dtype", "memory"), [("int8", True), ("int16", False)])
def test_groups_of_4x4_on_8x8_tiles(dtype: str, memory: bool) -> None:
    tiles = Tiles((8, 8), dtype, memory)
    with stale_allowed(True), TileMachine(tile_model(tiles.chip, tiles.grid, memory=memory)) as up:
        for shape in SHAPES:
            for schedule in ("naive", "async"):
                choices = Choices(schedule=schedule, group=(4, 4))
                ran = point(TileCase("flat-attention", tiles, shape, choices), up)
                assert ran.at == pytest.approx(ran.rtl, rel=0.02), (shape, schedule)


#: A prompt, a chunk of one with tokens before it, and heads that share keys.
CAUSAL = ((1, 4, 4, 32, 32, 16, 16), (1, 4, 2, 16, 48, 16, 16))


@pytest.mark.slow  # tiles of 4x4 take a minute to build
@pytest.mark.parametrize(("dtype", "memory"), [("int8", True), ("int16", True)])
def test_causal_groups_of_2x2_on_4x4_tiles(dtype: str, memory: bool) -> None:
    tiles = Tiles((4, 4), dtype, memory)
    with stale_allowed(True), TileMachine(tile_model(tiles.chip, tiles.grid, memory=memory)) as up:
        for shape in CAUSAL:
            for schedule in ("naive", "async"):
                choices = Choices(schedule=schedule, group=(2, 2), causal=True)
                ran = point(TileCase("flat-attention", tiles, shape, choices), up)
                assert ran.at == pytest.approx(ran.rtl, rel=0.02), (shape, schedule)
