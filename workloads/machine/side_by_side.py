"""Places side by side on a chip: rectangles of tiles, each with its share of the channels."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from tlm.chips import Chip
from tlm.errors import InputError
from workloads.machine.place import Rectangle


class Lot(NamedTuple):
    """Tiles of a chip that others lie beside.

    Attributes:
        tiles: The rectangle.
        share: What it has of the channels below its columns, which others may use besides.
    """

    tiles: Rectangle
    share: Fraction = Fraction(1)


class _Form(NamedTuple):
    """A rectangle of a number of tiles, and how far it is from a square."""

    rows: int
    cols: int

    @property
    def skew(self) -> float:
        return max(self.rows, self.cols) / min(self.rows, self.cols)


def whole(chip: Chip) -> Lot:
    """All tiles of a chip."""
    return Lot(Rectangle(0, 0, chip.grid.rows, chip.grid.cols))


def side_by_side(chip: Chip, counts: Sequence[int]) -> list[Lot]:
    """Rectangles of some numbers of tiles, which do not overlap.

    Whole rows lie above each other, the last ones at the edge. Others lie next to each other with
    channels of their own, or above each other, where they are more like squares so.

    Args:
        chip: The chip.
        counts: Tiles of each.

    Raises:
        InputError: if no such rectangles lie on the chip together.
    """
    rows, cols = chip.grid.rows, chip.grid.cols
    whole_rows = all(count > 0 and count % cols == 0 for count in counts)
    if whole_rows and sum(counts) <= rows * cols:
        above: list[_Form] | None = [_Form(count // cols, cols) for count in counts]
        beside = None
    else:
        forms = [_forms(count, rows, cols) for count in counts]
        above = _fitting(forms, rows, 0)
        beside = _fitting(forms, cols, 1)
    if beside is not None and (above is None or _skew(beside) <= _skew(above)):
        return _next_to_each_other(chip, beside)
    if above is None:
        found = " and ".join(map(str, counts))
        raise InputError(
            f"tiles of a pool of '{chip.name}': found {found}; allowed: rectangles of tiles that "
            f"lie on its {rows}x{cols} together, such as whole rows of {cols}"
        )
    return _above_each_other(chip, above)


def links_between(one: Rectangle, other: Rectangle) -> int:
    """Links of the mesh each way that go from the tiles of one to those of another.

    They are the columns, or rows, in which both have tiles.
    """
    cols = min(one.col + one.cols, other.col + other.cols) - max(one.col, other.col)
    rows = min(one.row + one.rows, other.row + other.rows) - max(one.row, other.row)
    return max(cols, rows)


def hops_between(one: Rectangle, other: Rectangle) -> int:
    """From the far side of one to the far side of another that lies beside it."""
    rows = max(one.row + one.rows, other.row + other.rows) - min(one.row, other.row)
    cols = max(one.col + one.cols, other.col + other.cols) - min(one.col, other.col)
    stacked = min(one.row + one.rows, other.row + other.rows) <= max(one.row, other.row)
    return (rows if stacked else cols) - 1


def _forms(count: int, rows: int, cols: int) -> list[_Form]:
    """Rectangles of some tiles."""
    heights = (height for height in range(1, rows + 1) if count > 0 and count % height == 0)
    return [_Form(height, count // height) for height in heights if count // height <= cols]


def _fitting(forms: Sequence[Sequence[_Form]], side: int, along: int) -> list[_Form] | None:
    """One form of each, together no longer than a side along it, of least skew."""
    best: dict[int, list[_Form]] = {0: []}
    for choices in forms:
        longer: dict[int, list[_Form]] = {}
        for taken, chosen in best.items():
            for form in choices:
                length, tried = taken + form[along], [*chosen, form]
                known = longer.get(length)
                if length <= side and (known is None or _skew(tried) < _skew(known)):
                    longer[length] = tried
        best = longer
    return min(best.values(), key=_skew, default=None)


def _skew(forms: Sequence[_Form]) -> float:
    return sum(form.skew for form in forms)


def _above_each_other(chip: Chip, forms: Sequence[_Form]) -> list[Lot]:
    row = chip.grid.rows - sum(form.rows for form in forms)
    found = []
    for form in forms:
        found.append(Rectangle(row, 0, *form))
        row += form.rows
    return [Lot(each, _share(each, found)) for each in found]


def _next_to_each_other(chip: Chip, forms: Sequence[_Form]) -> list[Lot]:
    col, found = 0, []
    for form in forms:
        found.append(Lot(Rectangle(chip.grid.rows - form.rows, col, *form)))
        col += form.cols
    return found


def _share(tiles: Rectangle, everywhere: Sequence[Rectangle]) -> Fraction:
    """Its rows over those of all that lie below or above it in one of its columns."""
    beside = [
        sum(each.rows for each in everywhere if each.col <= col < each.col + each.cols)
        for col in range(tiles.col, tiles.col + tiles.cols)
    ]
    return Fraction(tiles.rows, max(beside))
