"""Products on a line of tiles, each of which sends itself blocks of one operand, against `lt`."""

import numpy as np
import pytest

from calibration.levels.chips import Ground
from workloads.kernels.catalogue import KERNELS, Choices

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
