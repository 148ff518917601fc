"""Products on a line of tiles, each of which sends itself blocks of one operand, against `lt`."""

import numpy as np
import pytest

from calibration.levels.chips import Ground
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing, own_tile
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.machine.dtypes import DTYPE_BITS
from workloads.machine.place import chip_place

_Case = tuple[str, tuple[int, int], tuple[int, ...]]

#: Chip, grid, sizes: plans that do not cut K where tiles share blocks.
_CASES: list[_Case] = [
    ("flat32", (1, 4), (49, 357, 276)),
    ("npusim-large", (4, 1), (969, 203, 762)),
    ("npusim-large", (1, 8), (51, 524, 319)),
    ("npusim-large", (8, 1), (2528, 225, 432)),
]
_GROUPS: list[_Case] = [
    ("flat32", (1, 4), (3, 64, 324, 287)),
    ("npusim-large", (4, 1), (3, 537, 179, 513)),
    ("npusim-large", (1, 8), (3, 45, 401, 408)),
]


@pytest.mark.parametrize(("name", "cases"), [("stream-gemm", _CASES), ("grouped-gemm", _GROUPS)])
def test_streaming_products(name: str, cases: list[_Case]) -> None:
    kernel, errors = KERNELS[name], []
    for chip, grid, sizes in cases:
        ground = Ground.of(chip, grid, memory=False)
        plan = kernel.planned(sizes, ground.place, Choices())
        found = ground.both(kernel, plan)
        assert found is not None
        errors.append(100 * abs(found[1] / found[0] - 1))
    assert np.mean(errors) < 1
    assert max(errors) < 3


@pytest.mark.parametrize("name", ["flat32", "npusim-large", "rtl"])
@pytest.mark.parametrize("grid", [(1, 8), (8, 1)])
def test_all_gather_products(name: str, grid: tuple[int, int]) -> None:
    # Panels of few packets, and of many; products that are soon done, and that are not.
    kernel, unit = KERNELS["allgather-gemm"], 4 if name == "rtl" else 20
    ground = Ground.of(name, grid, memory=False) if name != "rtl" else _line_of_own_tiles(grid)
    for m, n, k in ((1, 1, 1), (2, 1, 4), (1, 3, 2)):
        sizes = unit * m * grid[0], unit * n * grid[1], unit * k * 8
        found = ground.both(kernel, kernel.planned(sizes, ground.place, Choices()))
        assert found is not None
        assert found[1] == pytest.approx(found[0], rel=0.005)


def _line_of_own_tiles(grid: tuple[int, int]) -> Ground:
    """A line of the tiles of the project's own chip."""
    chip = load_chip("rtl-8x8").for_dtype("int8")
    timing = noc_timing(chip)
    place = chip_place(chip, grid, timing, *DTYPE_BITS["int8"], memory=False)
    return Ground(chip, timing, place, own_tile(chip))
