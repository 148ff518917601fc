"""Areas of cores between the points of a profile."""

import pytest

from tlm.chips import find_tiles, load_chip
from tlm.chips.area import core_mm2


def area(side: int, gb_s: float) -> float | None:
    """Of a core of npusim-large, 64 of which have their share of the memory."""
    changes = (
        f"tile.matrix.rows={side}",
        f"tile.matrix.cols={side}",
        f"memory.bandwidth_bytes_per_s={64e9 * gb_s}",
    )
    return core_mm2(find_tiles("npusim-large", changes))


#: Printed areas of chips of 63 cores, 21 of which have such an array and so much bandwidth.
PRINTED = {
    (64, 60): 749.4, (64, 120): 761.7, (64, 240): 798.5, (64, 480): 861.5, (32, 30): 623.9,
    (32, 60): 636.2, (32, 120): 648.5, (32, 240): 685.3, (32, 480): 759.0,
}  # fmt: skip


@pytest.mark.parametrize("of_decode", PRINTED)
def test_chips_of_two_kinds_of_cores_have_the_printed_area(of_decode: tuple[int, float]) -> None:
    own, others = area(*of_decode), area(64, 60)
    assert own is not None
    assert others is not None
    assert 42 * others + 21 * own == pytest.approx(PRINTED[of_decode], abs=0.6)


def test_area_is_linear_in_elements_and_bandwidth() -> None:
    low, high, middle = area(32, 120), area(32, 240), area(32, 180)
    assert low is not None
    assert high is not None
    assert middle == pytest.approx((low + high) / 2)
    small, large, between = area(32, 60), area(64, 60), area(48, 60)
    assert small is not None
    assert large is not None
    assert between == pytest.approx(small + (large - small) * (48**2 - 32**2) / (64**2 - 32**2))


def test_beyond_the_points_no_area_is_known() -> None:
    assert area(128, 60) is None
    assert area(64, 500) is None
    assert core_mm2(load_chip("flat32")) is None
