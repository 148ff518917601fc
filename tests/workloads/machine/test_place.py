"""Places: rectangles of a chip's tiles, and their shares of its off-chip memory."""

from fractions import Fraction
from itertools import pairwise, product

import pytest

from tlm.chips import Chip, load_chip
from tlm.chips.parts import noc_timing, offchip_channels
from tlm.errors import InputError
from workloads.machine.place import Place, Rectangle, chip_place

#: Lines at which a side of the chip is cut.
CUTS = [(0, 1), (0, 0.5, 1), (0, 0.25, 0.5, 1), (0, 0.125, 0.5, 0.625, 1)]


def place(chip: Chip, tiles: Rectangle | tuple[int, int], share: Fraction = Fraction(1)) -> Place:
    return chip_place(chip, tiles, noc_timing(chip), 16, 16, memory=True, share=share)


@pytest.mark.parametrize("name", ["flat32", "flat32-wafer", "npusim-large", "npusim-small"])
@pytest.mark.parametrize(("rows", "cols"), list(product(CUTS, CUTS)))
def test_shares_add_up_to_the_chips_memory(
    name: str, rows: tuple[float, ...], cols: tuple[float, ...]
) -> None:
    """Of places that have all tiles and work side by side: capacity but for parts of a byte."""
    chip = load_chip(name)
    memory, grid = chip.memory, chip.grid
    assert memory is not None
    rectangles = [
        Rectangle(int(top * grid.rows), int(left * grid.cols),
                  int((low - top) * grid.rows), int((right - left) * grid.cols))
        for (top, low), (left, right) in product(pairwise(rows), pairwise(cols))
    ]  # fmt: skip
    assert sum(each.rows * each.cols for each in rectangles) == grid.rows * grid.cols
    shares = [Fraction(each.rows, grid.rows) for each in rectangles]
    edges = [
        place(chip, each, share).offchip for each, share in zip(rectangles, shares, strict=True)
    ]
    carried = sum(edge.channels * edge.timing.bytes_per_cycle for edge in edges if edge)
    assert float(carried) == pytest.approx(memory.bandwidth_bytes_per_s / chip.clock_hz, rel=1e-9)
    held = sum(edge.channels * edge.capacity_bytes for edge in edges if edge)
    assert 0 <= memory.capacity_bytes - held < sum(edge.channels for edge in edges if edge)


@pytest.mark.parametrize("name", ["flat32", "rtl-8x8", "npusim-large"])
def test_rows_and_columns_alone_lie_at_the_channels(name: str) -> None:
    chip = load_chip(name)
    rows = chip.grid.rows
    for grid in [(rows, chip.grid.cols), (4, 8), (3, 5)]:
        found = place(chip, grid)
        assert found == place(chip, Rectangle(rows - grid[0], 0, *grid))
        assert found.offchip == offchip_channels(chip, *grid)
        assert found.origin == (rows - grid[0], 0)
        assert (found.rows, found.cols) == grid


@pytest.mark.parametrize("name", ["flat32", "rtl-8x8"])
def test_tiles_between_a_place_and_the_edge_are_hops(name: str) -> None:
    chip = load_chip(name)
    near, far = (place(chip, Rectangle(chip.grid.rows - up, 2, 3, 4)).offchip for up in (3, 8))
    assert near is not None
    assert far is not None
    assert far.timing == near.timing
    for tile in product(range(3), range(4)):
        assert far.hops(tile) == near.hops(tile) + 5


def test_a_channel_at_a_tile_is_its_own_wherever_the_place_is() -> None:
    chip = load_chip("npusim-large")
    assert chip.memory is not None
    whole = place(chip, (8, 8)).offchip
    assert whole is not None
    assert whole.timing.bytes_per_cycle == 240  # 120 GB/s at 500 MHz
    assert whole.capacity_bytes == chip.memory.capacity_bytes // 64
    for share in (Fraction(3, 8), Fraction(1)):
        part = place(chip, Rectangle(1, 2, 3, 4), share).offchip
        assert part is not None
        assert (part.at_tiles, part.channels, part.rows_below) == (True, 12, 0)
        assert part.timing == whole.timing
        assert part.capacity_bytes == whole.capacity_bytes


@pytest.mark.parametrize(
    "tiles",
    [Rectangle(30, 0, 4, 4), Rectangle(0, 30, 4, 4), Rectangle(-1, 0, 4, 4), Rectangle(0, 0, 0, 4)],
)
def test_tiles_that_the_chip_has_not_are_refused(tiles: Rectangle) -> None:
    with pytest.raises(InputError, match="place: found .* allowed on 'flat32': some of its 32x32"):
        place(load_chip("flat32"), tiles)


def test_a_share_of_less_than_a_byte_a_cycle_is_refused() -> None:
    said = "chip 'rtl-32x4': a share of memory: found 0.5 bytes a cycle of each of 4 channels"
    with pytest.raises(InputError, match=said):
        place(load_chip("rtl-32x4"), Rectangle(0, 0, 1, 4), Fraction(1, 32))
    chip = load_chip("npusim-small")
    assert chip.memory is not None
    memory = chip.memory.model_copy(update={"bandwidth_bytes_per_s": 1e9})
    said = "found 1e[+]09, 0.00781 bytes a cycle of each of 256 channels; allowed: at least 1"
    with pytest.raises(InputError, match=said):
        place(chip.model_copy(update={"memory": memory}), (16, 16))
