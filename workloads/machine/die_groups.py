"""Dies of a wafer in groups: experts are dealt out in a group, groups form a pipeline."""

from dataclasses import dataclass

from tlm.chips import Chip
from tlm.dies.links import DieMesh, die_mesh
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet


@dataclass(frozen=True, slots=True)
class DieGroups:
    """Equal rectangles of dies that cut a mesh, row by row.

    Attributes:
        mesh: The dies and their links.
        rows: Rows of dies of a group.
        cols: Columns.
    """

    mesh: DieMesh
    rows: int
    cols: int

    @property
    def dies(self) -> int:
        """Dies of a group."""
        return self.rows * self.cols

    @property
    def count(self) -> int:
        """Groups."""
        return self.mesh.dies // self.dies

    @property
    def first(self) -> TileSet:
        """The dies of the first group; those of others lie alike."""
        return TileSet(range(self.rows), range(self.cols))

    @property
    def label(self) -> str:
        """Rows and columns in words."""
        return f"{self.rows}x{self.cols}"


def die_groups(chip: Chip, expert_parallel: int | None, pipeline: int | None) -> DieGroups:
    """The groups of a wafer.

    Of rectangles of as many dies it is the one nearest to a square, rather wide than high: packets
    go along rows first, and then on high ones wait for each other where they turn.

    Args:
        chip: The wafer.
        expert_parallel: Dies of a group; None: as many as the pipeline leaves, or all.
        pipeline: Groups; None: as many as there are dies for.

    Raises:
        InputError: if the chip is a single die, or has no such groups.
    """
    mesh = die_mesh(chip)
    if expert_parallel is None:
        expert_parallel = mesh.dies if pipeline is None else max(1, mesh.dies // max(1, pipeline))
    if pipeline is None:
        pipeline = max(1, mesh.dies // max(1, expert_parallel))
    forms = [
        (rows, expert_parallel // rows)
        for rows in range(1, mesh.rows + 1)
        if mesh.rows % rows == 0
        and expert_parallel % rows == 0
        and mesh.cols % max(1, expert_parallel // rows) == 0
    ]
    if expert_parallel < 1 or pipeline < 1 or expert_parallel * pipeline != mesh.dies or not forms:
        raise InputError(
            f"--expert-parallel, --pp: found {expert_parallel} and {pipeline}; allowed on "
            f"'{chip.name}': groups that cut its {mesh.rows}x{mesh.cols} dies, such as "
            f"{mesh.dies} and 1 or {mesh.cols} and {mesh.rows}"
        )
    # Of two equally far from a square the wide one.
    rows, cols = min(forms, key=lambda form: (max(form) / min(form), form[0]))
    return DieGroups(mesh, rows, cols)


def rows_of_dies(chip: Chip, dies: int) -> Chip:
    """A part of a wafer: whole rows of its dies.

    Raises:
        InputError: for a number of dies that is none of rows.
    """
    wafer = chip.dies
    assert wafer is not None
    if not 1 <= dies <= wafer.rows * wafer.cols or dies % wafer.cols:
        raise InputError(
            f"dies of a pool of '{chip.name}': found {dies}; allowed: whole rows, "
            f"{wafer.cols} to {wafer.rows * wafer.cols}"
        )
    part = wafer.model_copy(update={"rows": dies // wafer.cols})
    return chip.model_copy(update={"dies": part})
