"""What a step of the streaming product is made of: of one plan, or of many candidates at once.

Every number here may be an array with one element for each candidate.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.packets import TileSet
from tlm.interconnect.transfer_times import hold_cycles_over
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.times import OffChipLaw, load_law, store_law
from workloads.kernels.gemm.stream_plan import GridCut, StreamPlan, blocks_along
from workloads.kernels.parts.channels import of_tiles
from workloads.machine.place import Place

#: A whole number, or an array of them.
Numbers = Any


class CutFigures(NamedTuple):
    """A cut, and what the lines of the grid cost by it."""

    m_rows: Numbers
    n_rows: Numbers
    k_rows: Numbers
    m_cols: Numbers
    n_cols: Numbers
    k_cols: Numbers
    a_loads: Numbers  # blocks of A that the busiest channel loads for a step
    b_loads: Numbers
    c_stores: Numbers  # blocks of C that it stores for a pass
    a_hops: Numbers  # from the sender of a block to the farthest tile
    b_hops: Numbers
    both: Numbers  # whether a tile sends blocks of both
    a_way: Numbers  # hops between a channel and the farthest tile that loads A from it
    b_way: Numbers
    c_way: Numbers  # and that stores C to it
    # Asked for before the last first block of A: first ones of B, and second ones of A and of B.
    a_behind_b: Numbers
    a_behind_a2: Numbers
    a_behind_b2: Numbers
    # Before that of B: first ones of A, and second ones.
    b_behind_a: Numbers
    b_behind_a2: Numbers
    b_behind_b2: Numbers

    @property
    def parts(self) -> tuple[Numbers, Numbers, Numbers]:
        """Parts of M, N and K."""
        return GridCut(*self[:6]).parts


class Candidates(NamedTuple):
    """Cuts with blocks of ``m`` rows, ``n`` columns and depth ``k``."""

    cut: CutFigures
    m: Numbers
    n: Numbers
    k: Numbers


class Operand(NamedTuple):
    """A or B in a step."""

    flits: Numbers  # of a block
    shared: Numbers  # whether several tiles share it
    hold: Numbers  # for which a sender sends it
    trees: Numbers  # that lie between each other's tiles on a line
    loads: Numbers  # see `CutFigures`
    hops: Numbers
    way: Numbers
    law: OffChipLaw | None  # of loading a block
    there: bool = False  # whether it lies in the tiles that use it


class Steps(NamedTuple):
    """The steps of a product."""

    cut: CutFigures
    a: Operand
    b: Operand
    c_flits: Numbers  # of a block of C
    product: Numbers  # cycles of a block product
    combine: Numbers  # cycles to add two blocks of C
    depth: Numbers  # steps of a pass
    passes: Numbers
    count: Numbers  # steps of all passes
    ahead: Numbers  # whether a second block of A is asked for before the first one of B
    store: OffChipLaw | None  # of storing a block of C


def steps_of(problem: StreamPlan, which: Candidates, timing: NocTiming) -> Steps:
    """The steps of candidates of a problem, whose own cut and block do not matter."""
    place, (cut, m, n, k) = problem.place, which
    high, wide, deep = blocks_of(problem, cut.parts, (m, n, k))
    passes = problem.groups * high * wide

    def operand(*columns: Numbers) -> Operand:
        flits, shared, trees, loads, hops, way = columns
        law = None if place.offchip is None else load_law(timing, place.offchip, flits)
        hold = np.where(shared, hold_cycles_over(timing, flits), 0)
        return Operand(flits, shared, hold, trees, loads, hops, way, law)

    flits: Any = place.flits
    c_flits = flits(m, n, place.sum_bits)
    return Steps(
        cut=cut,
        a=operand(
            flits(k, m, place.element_bits), cut.n_cols > 1, cut.k_cols, cut.a_loads, cut.a_hops,
            cut.a_way,
        ),
        b=operand(0 * k, k < 0, 1, 0, 0, 0)._replace(there=True) if problem.resident else operand(
            np.asarray(flits(k, n, problem.b_bits)).astype(np.int64), cut.m_rows > 1, cut.k_rows,
            cut.b_loads, cut.b_hops, cut.b_way,
        ),
        c_flits=c_flits,
        product=place.matrix.gemm_cycles_over(m, k, n),
        combine=place.vector.pass_cycles_over(m, n),
        depth=deep,
        passes=passes,
        count=passes * deep,
        ahead=(cut.n_cols > 1) & (cut.m_rows == 1) & (passes * deep > 1) & (not problem.resident),
        store=None if place.offchip is None else store_law(timing, place.offchip, c_flits),
    )  # fmt: skip


def blocks_of(problem: StreamPlan, parts: Iterable[Numbers], sides: Iterable[Numbers]) -> Any:
    """Blocks of a tile's share along M, N and K."""
    return tuple(
        blocks_along(size, part, side)
        for size, part, side in zip(problem.shape, parts, sides, strict=True)
    )


def cut_figures(place: Place, cut: GridCut) -> CutFigures:
    """Those of one cut."""
    return figures_on(place)(cut)


@lru_cache(64)
def figures_on(place: Place) -> Callable[[GridCut], CutFigures]:
    """`cut_figures` of a place, of which a search looks up many: each is found once."""
    return lru_cache(1 << 14)(partial(_figures, place))


def _figures(place: Place, cut: GridCut) -> CutFigures:
    plan = StreamPlan(place, (1, 1, 1), 1, cut, (1, 1, 1), place.method(None))
    hops = []
    for name in "ab":
        ends = [(each.roots, (each.segment[0], each.segment[-1])) for each in plan.sharing(name)]
        hops.append(max(int(np.abs(roots - end).max()) for roots, pair in ends for end in pair))
    senders = {name: _mask(place, plan.senders(name)) for name in "ab"}
    both, edge = (
        int((senders["a"] & plan.shared["a"] & senders["b"] & plan.shared["b"]).any()),
        place.offchip,
    )
    if edge is None:
        return CutFigures._make((*cut, 0, 0, 0, *hops, both, 0, 0, 0, *[0] * 6))
    number, away = of_tiles(edge, place.rows, place.cols)
    moving = (*senders.values(), _mask(place, plan.results()))
    busiest = [int(np.bincount(number[tiles]).max()) for tiles in moving]
    ways = [int(away[tiles].max()) for tiles in moving]
    behind = _asked_before(place, number, away, (senders["a"], senders["b"]))
    return CutFigures._make((*cut, *busiest, *hops, both, *ways, *behind))


def _asked_before(
    place: Place,
    number: NDArray[np.int64],
    away: NDArray[np.int64],
    senders: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> list[int]:
    """What tiles ask a channel for before the last of them asks for its first block, the most.

    A tile asks for its first blocks of A and of B, and then for its second ones, a cycle each. The
    farther a tile is from its channel, the later its requests come.

    Args:
        place: The tiles.
        number: Shape (rows, columns): the channel of each.
        away: Shape (rows, columns): hops to it.
        senders: Shape (rows, columns): which tiles load A, and which load B.

    Returns:
        The last six fields of `CutFigures`.
    """
    a, b = senders
    come = away * place.timing.hop_cycles
    turns = (0 * come, 1 * a, a + 1 * b, 2 * a + 1)  # of first blocks of A and of B, of second ones
    asked = [come + turn for turn in turns]
    loads = (a, b, a, b)
    found = []
    for first, others in enumerate(((1, 2, 3), (0, 2, 3))):
        last = np.full(number.max() + 1, -1)
        np.maximum.at(last, number[loads[first]], asked[first][loads[first]])
        for other in others:
            sooner = loads[other] & (asked[other] < last[number])
            found.append(int(np.bincount(number[sooner], minlength=1).max()))
    return found


def _mask(place: Place, sets: Iterable[TileSet]) -> NDArray[np.bool_]:
    """Shape (rows, columns): the tiles of some sets."""
    mask = np.zeros((place.rows, place.cols), dtype=bool)
    for tiles in sets:
        rows, cols = (slice(each.start, each.stop, each.step) for each in (tiles.rows, tiles.cols))
        mask[rows, cols] = True
    return mask
