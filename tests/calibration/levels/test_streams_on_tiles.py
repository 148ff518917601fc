"""Sums that tiles stream, on tiles in Verilog: data bit for bit, and the cycles of level `at`."""

import pytest

from calibration.levels.cases import STREAMED, Tiles
from calibration.levels.tiles import COMPARED, TileCase, cases, point
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import tile_model
from workloads.kernels.catalogue import KERNELS, Choices, Sizes

CASES: tuple[tuple[str, str, Sizes], ...] = (
    ("mesh-gemv", "stream", (1, 256, 64)),
    ("mesh-gemv", "stream-tree", (1, 250, 128)),
    ("mesh-gemm-t", "stream", (32, 32, 32)),
    ("mesh-gemm-t", "stream", (48, 40, 64)),
)
SIXTEEN, SIXTY_FOUR = Tiles((4, 4)), Tiles((8, 8))


@pytest.mark.rtl
@pytest.mark.parametrize(
    "tiles",
    [SIXTEEN, pytest.param(SIXTY_FOUR, marks=pytest.mark.slow)],
    ids=lambda tiles: tiles.chip.name,
)
def test_streams_take_the_cycles_of_level_at(tiles: Tiles) -> None:
    """A chain, a tree, and sums to a root that moves; `point` holds the data, too."""
    with TileMachine(tile_model(tiles.chip, tiles.grid)) as machine:
        for kernel, way, sizes in CASES:
            choices = Choices(collective=way)
            plan = KERNELS[kernel].planned(sizes, tiles.place, choices)
            assert plan.relayed is not None
            found = point(TileCase(kernel, tiles, sizes, choices), machine)
            assert found.at == pytest.approx(found.rtl, rel=0.005), (kernel, way)


def test_streams_are_among_what_is_compared() -> None:
    compared = {(case.kernel, case.variant) for tiles in COMPARED for case in cases(tiles)}
    assert {(name, way) for name, ways in STREAMED.items() for way in ways} <= compared
