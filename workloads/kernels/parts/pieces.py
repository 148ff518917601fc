"""How a plan cuts its problem, for a reader."""

from typing import NamedTuple


class Pieces(NamedTuple):
    """What tiles work on.

    Attributes:
        group: Rows and columns of the tiles that share a part of the problem.
        slice: What a tile works on at a time: sizes by dimension.
        blocks: How many such it goes through, by dimension.
    """

    group: tuple[int, int]
    slice: dict[str, int]
    blocks: dict[str, int]
