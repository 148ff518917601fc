"""Totals of the rows of a matrix: a complete kernel of one's own, at every level.

A tile adds up its elements of each of its rows. Routers add what the tiles of a row have, and the
first column of tiles gets the totals.
"""

from dataclasses import dataclass

from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Buffer, Engine, Program, Reduce, Token, Vector, Work
from workloads.kernels.catalogue import ROWS, Choices, Kernel
from workloads.kernels.parts.pieces import Pieces
from workloads.machine.place import Place


@dataclass(frozen=True)
class TotalsPlan:
    """A matrix cut over tiles: a block of ``m`` rows of ``n`` elements for each."""

    place: Place
    m: int
    n: int

    @property
    def pieces(self) -> Pieces:
        """How it is cut, for a reader."""
        one = {"rows": 1, "columns": 1}
        return Pieces((1, self.place.cols), {"rows": self.m, "columns": self.n}, one)

    @property
    def flits(self) -> int:
        """Flits of a tile's sums."""
        return self.place.flits(self.m, 1, self.place.sum_bits)

    @property
    def balance(self) -> float:
        """Cycles of work over flits of transfers: cases of like balance have like errors."""
        return self.tile_vector_cycles / self.flits

    tile_macs = 0
    tile_matrix_cycles = 0

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of a tile's pass of its vector engine."""
        return self.place.vector.pass_cycles(self.m, self.n)


def plan(sizes: tuple[int, ...], place: Place, choices: Choices) -> TotalsPlan:
    """Rows over rows of tiles, elements over columns, each padded to whole blocks."""
    return TotalsPlan(place, ceil_div(sizes[0], place.rows), ceil_div(sizes[1], place.cols))


def program(plan: TotalsPlan) -> Program:
    """What runs at levels rtl, at and lt."""
    place = plan.place
    everywhere = TileSet(range(place.rows), range(place.cols))
    roots = TileSet(range(place.rows), range(1))
    operations = [
        Work(
            Engine.VECTOR,
            everywhere,
            plan.tile_vector_cycles,
            gives=("added",),
            task=Vector("row-sum", "x", "sum"),
        ),
        Reduce(
            roots,
            "row",
            range(place.cols),
            plan.flits,
            takes=("added",),
            arrivals=("there",),
            source="sum",
            target="total",
        ),
        Work(Engine.CONTROL, roots, 1, takes=("there",)),
    ]
    one = Buffer(plan.m, 1, place.sum_bits)
    buffers = {"x": Buffer(plan.m, plan.n, place.sum_bits), "sum": one, "total": one}
    tokens = {"added": Token(), "there": Token()}
    return Program(place.rows, place.cols, tokens, lambda: operations, buffers)


def cycles(plan: TotalsPlan, timing: NocTiming) -> int:
    """The closed form of level perf: the pass, the way of the farthest sum, and its flits."""
    hops = plan.place.cols - 1
    way = timing.ejection_cycles + hops * timing.hop_cycles + (hops + 1) * timing.reduce_cycles
    return plan.tile_vector_cycles + way + plan.flits + 1


row_totals = Kernel(ROWS, lambda sizes, choices: 0, plan, program, cycles)
