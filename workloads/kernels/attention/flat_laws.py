"""What the parts of FlatAttention's plans take, by the laws of network, memory and engines."""

from dataclasses import replace
from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.transfer_times import arrival_cycles, hold_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.memory.bandwidth_latency import PARTS_OF_A_CYCLE
from tlm.offchip.times import OffChipLaw, load_law, store_law
from workloads.kernels.attention.core import products
from workloads.kernels.attention.flat_costs import Slices, Stored, Together
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.groups import Groups
from workloads.kernels.attention.plan import NAMES, flits_of, widths
from workloads.kernels.attention.shape import AttentionShape, Block
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.channels import of_tiles
from workloads.kernels.parts.closed_form import (
    all_reduce_cycles,
    broadcast_cycles,
    reduce_cycles,
)
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.message_times import gather_behind_spread
from workloads.kernels.parts.passes import Factor
from workloads.machine.place import Place

Costs = NDArray[np.int64]


class _Ways(NamedTuple):
    """Between the tiles that load and their channels."""

    hops: int  # of the farthest
    most: int  # tiles of one channel
    others: int  # of these, those of other groups than the last one's
    nearer: int  # hops by which the nearest of these is nearer than the farthest


class Laws:
    """What network, memory and engines say of blocks; equal ones are one object.

    Figures that plans of many problems have in common are kept by it.

    Args:
        problem: Whose lengths and cut do not matter.
        timing: Of the network.
    """

    def __init__(self, problem: FlatPlan, timing: NocTiming) -> None:
        self.problem, self.timing, self.edge = problem, timing, problem.place.offchip
        self.method, self.operands = problem.method, problem.operands
        self.widths = widths(problem)
        self.groups: dict[tuple[int, ...], tuple[Groups, Groups]] = {}
        self.of_rows: dict[tuple[int, ...], Costs] = {}
        self.of_keys: dict[tuple[int, ...], Costs] = {}
        self.of_block: dict[tuple[int, ...], Costs] = {}

    def flits(self, name: str, rows: int, keys: int) -> int:
        """Flits of a block of so many rows and keys."""
        flits: int = flits_of(self.widths, NAMES.index(name), rows, keys)
        return flits


@lru_cache(64)
def laws_of(
    timing: NocTiming, place: Place, depths: tuple[int, int], flags: tuple[bool, bool],
    methods: tuple[str, str],
) -> Laws:  # fmt: skip
    """Those of all problems on a place with heads of some depths.

    Args:
        timing: Of the network.
        place: The grid.
        depths: Columns of Q and K, and of V.
        flags: Whether values are in the keys, and whether there is a causal mask.
        methods: How parts of rows come together, and how slices are sent to many.
    """
    shape, block = AttentionShape(1, 1, 1, 1, 1, *depths, *flags), Block(1, 1, *depths)
    how = methods[0], "naive", Factor(1, 0), methods[1]
    return Laws(FlatPlan(place, shape, block, 1, 1, (1, 1), *how), timing)


def cut_costs(
    laws: Laws, rows: int, keys: int, q_blocks: int, kv_blocks: int, down: int, across: int,
    first: int, beside: int, depth: int, most: int, alike: int,
) -> tuple[Costs, Costs, Costs]:  # fmt: skip
    """Of a plan, one after the other in the order of `flat_costs.costs_of`.

    Args:
        laws: Of the network and engines.
        rows: Of a block.
        keys: Of a block.
        q_blocks: Blocks of rows.
        kv_blocks: Blocks of keys.
        down: Rows of a group.
        across: Columns.
        first: The first row of groups that has streams.
        beside: Groups of a row.
        depth: Blocks under way.
        most: The group with the most to do.
        alike: Those that have as much; 0: all are alike.
    """
    lies = down, across, first, beside
    groups, busiest = laws.groups.get((*lies, most, alike)) or _groups(laws, *lies, most, alike)
    key: tuple[int, ...] = (*lies, most, alike, rows, depth)
    of_rows = laws.of_rows.get(key)
    if of_rows is None:
        of_rows = laws.of_rows[key] = np.array(_of_rows(laws, groups, busiest, rows, depth))
    key = *lies, keys
    of_keys = laws.of_keys.get(key)
    if of_keys is None:
        of_keys = laws.of_keys[key] = np.array(_of_keys(laws, groups, keys))
    key = *lies, rows, keys
    of_block = laws.of_block.get(key)
    if of_block is None:
        of_block = laws.of_block[key] = np.array(_of_block(laws, groups, rows, keys))
    return of_rows, of_keys, of_block


def _groups(
    laws: Laws, down: int, across: int, first: int, beside: int, most: int, alike: int
) -> tuple[Groups, Groups]:
    """All groups, and the rows of those with the most to do."""
    every = range(first, laws.problem.place.rows // down)
    groups = Groups((down, across), every, range(beside), first)
    found = groups, groups.with_work(most, alike) if alike else groups
    laws.groups[down, across, first, beside, most, alike] = found
    return found


def _of_rows(laws: Laws, groups: Groups, busiest: Groups, rows: int, depth: int) -> tuple[int, ...]:
    """Costs that depend on the rows of a block."""
    vector, shape = laws.problem.place.vector, laws.problem.shape
    column, deep = vector.pass_cycles(rows, 1), vector.pass_cycles(rows, shape.v_depth)
    output, total = laws.flits("o", rows, 1), laws.flits("total", rows, 1)
    # Of messages the root of a row sends none. One item after the other that is all that counts,
    # if the row's other tiles have no slices to send on.
    sends = laws.method == "network" or laws.operands == "tree" or depth > 1
    sends |= groups.size[1] > groups.size[0]
    unseen = Slices(0, 0, 0, 0, 0, 0, 0)
    if shape.causal and groups.size != (1, 1):
        unseen = _own(laws, groups, laws.flits("unseen", rows, 1))
    return (
        column,
        deep,
        # Two requests are launched at a time.
        0 if laws.edge is None else ceil((1 + laws.timing.launch_cycles) / 2),
        output if sends else 0,
        laws.method != "network",
        _summed(laws, groups, output, deep),
        *_together(laws, busiest, total, column),
        _again(laws, groups, laws.flits("q", rows, 1)),
        *_slices(laws, groups, "q", laws.flits("q", rows, 1)),
        *unseen,
        *_stored(laws, groups, total),
        *_stored(laws, groups, output),
    )


def _of_keys(laws: Laws, groups: Groups, keys: int) -> tuple[int, ...]:
    """Costs that depend on the keys of a block: of K, and of V."""
    k, v = (laws.flits(name, 1, keys) for name in ("k", "k" if laws.problem.shared else "v"))
    return (*_slices(laws, groups, "k", k), *_slices(laws, groups, "k", v))


def _of_block(laws: Laws, groups: Groups, rows: int, keys: int) -> tuple[int, ...]:
    """Costs that depend on both, and for which a channel is busy with one tile's mask, in parts."""
    place, shape = laws.problem.place, laws.problem.shape
    block, flits = Block(rows, keys, shape.qk_depth, shape.v_depth), laws.flits("mask", rows, keys)
    wide, served = place.vector.pass_cycles(rows, keys), PARTS_OF_A_CYCLE
    mask = _own(laws, groups, flits) if shape.causal else _slices(laws, groups, "mask", flits)
    if laws.edge is not None and shape.causal:
        served = _load(laws, flits).served_parts
    turns = 0
    together = groups.size != (1, 1) and laws.operands not in BY_MESSAGES
    if laws.edge is not None and laws.edge.fills_links and together:
        # Of one row each group's roots make the others wait, too; of more `_slices` has that.
        turns = _ways(laws, groups, "k").most if groups.size[0] > 1 else 1
    return (*products(place, block), wide, *mask, served, *_meeting(laws, groups, rows), turns)


def _meeting(laws: Laws, groups: Groups, rows: int) -> tuple[int, int]:
    """See `Costs.packets` and `Costs.room`."""
    (down, across), places = groups.size, laws.timing.input_places
    if down > 1 or across == 1:
        return 0, 0
    if laws.operands in BY_MESSAGES:
        # Tiles of a tree that send Q on send their own slices behind it.
        return across - 1 if laws.operands == "sequential" else 1, places
    packet = laws.timing.packet_bound
    packets = ceil(hold_cycles(laws.timing, laws.flits("q", rows, 1), multicast=True) / packet)
    return packets, places + packet


def _reduction(laws: Laws, groups: Groups, flits: int, cycles: int) -> Reduction:
    """Of what comes together along the rows of tiles: one for each place of a root."""
    roots = tuple(sorted(set(groups.line_roots("q"))))
    lines = Lines("row", range(len(roots)), groups.size[1])
    return Reduction(lines, roots, laws.method, "", "", "", flits, cycles)


@lru_cache(1 << 14)
def _together(laws: Laws, groups: Groups, flits: int, column: int) -> Together:
    """Maxima or sums of rows of a block."""
    # The diagonal sends the result out as soon as it has come.
    reduction = _reduction(laws, groups, flits, column)
    gathered, port = reduce_cycles(reduction, laws.timing), hold_cycles(laws.timing, flits)
    if laws.method in BY_MESSAGES:
        port = _messages(laws.method, groups.size[1]) * flits
    spread = all_reduce_cycles(reduction, laws.timing) - gathered
    last = behind = 0
    if laws.operands in BY_MESSAGES:
        last = arrival_cycles(laws.timing, 1, flits) + column
    if laws.operands == "tree":
        roots, senders = (groups.diagonals(name)[0] for name in "qk")
        whole = replace(reduction, root=tuple(roots))
        behind = gather_behind_spread(whole, senders, laws.timing)
    return Together(gathered, port, spread, laws.method == "network", last, behind)


def _again(laws: Laws, groups: Groups, flits: int) -> int:
    """See `Costs.again`."""
    if laws.operands != "tree":
        return 0
    return max(0, _messages("tree", groups.size[1]) - 1) * flits


@lru_cache(1 << 14)
def _summed(laws: Laws, groups: Groups, flits: int, deep: int) -> int:
    """Outputs of a block."""
    return reduce_cycles(_reduction(laws, groups, flits, deep), laws.timing)


@lru_cache(1 << 14)
def _slices(laws: Laws, groups: Groups, name: str, flits: int) -> Slices:
    """Of what tiles of the diagonal bring for all."""
    timing, edge, length = laws.timing, laws.edge, groups.size[1 if name == "q" else 0]
    if laws.operands in BY_MESSAGES:
        own = edge is None  # without memory a root sends a copy to itself
        roots = set(groups.line_roots(name))
        port = (own + _messages(laws.operands, length)) * flits
        there = max(
            broadcast_cycles(timing, laws.operands, length, root, flits, own=own) for root in roots
        )
    else:
        port, there = (
            hold_cycles(timing, flits, multicast=length > 1),
            arrival_cycles(timing, length - 1, flits, multicast=length > 1),
        )
    if edge is None:
        return Slices(port, there, 0, 0, 0, 0, 0)
    found = _loaded(laws, _ways(laws, groups, name), flits, port, there)
    if name == "q" or length == 1 or not edge.fills_links:
        return found
    # In some columns roots send up the links of what comes to those above them. Both take turns,
    # and all in the column waits, as if no two groups sent at once.
    beside = found.ahead * (1 if laws.operands == "network" else _messages(laws.operands, length))
    return found._replace(served=found.served + beside, ahead=found.ahead + beside)


@lru_cache(1 << 14)
def _own(laws: Laws, groups: Groups, flits: int) -> Slices:
    """Of what every tile brings for itself."""
    timing, edge = laws.timing, laws.edge
    if edge is None:
        return Slices(hold_cycles(timing, flits), arrival_cycles(timing, 0, flits), 0, 0, 0, 0, 0)
    return _loaded(laws, _ways(laws, groups, ""), flits, 0, 0)


def _loaded(laws: Laws, way: _Ways, flits: int, port: int, there: int) -> Slices:
    """Of slices that come from off-chip memory."""
    law, nearer = _load(laws, flits), way.nearer * laws.timing.hop_cycles
    served, ahead = (ceil(tiles * law.served_cycles) for tiles in (way.most, way.others))
    asked = law.alone_cycles(way.hops) - ceil(law.served_cycles)
    return Slices(port, there, asked, served, ahead, way.most, nearer)


@lru_cache(1 << 14)
def _load(laws: Laws, flits: int) -> OffChipLaw:
    assert laws.edge is not None  # or there were no channels
    return load_law(laws.timing, laws.edge, flits)


def _messages(method: str, length: int) -> int:
    """Of a line's root to the others, which a tree's send on."""
    return length - 1 if method == "sequential" else (length - 1).bit_length()


@lru_cache(1 << 14)
def _stored(laws: Laws, groups: Groups, flits: int) -> Stored:
    """Of results, which tiles of the diagonal store."""
    timing, edge = laws.timing, laws.edge
    if edge is None:
        return Stored(0, 0, 0, 0)
    law, way = store_law(timing, edge, flits), _ways(laws, groups, "q")
    written = law.alone_cycles(way.hops) - law.sent_flits - ceil(law.served_cycles)
    served, ahead = (ceil(tiles * law.paced_cycles) for tiles in (way.most, way.others))
    return Stored(law.sent_flits, served, ahead, written)


@lru_cache(1 << 10)
def _ways(laws: Laws, groups: Groups, name: str) -> _Ways:
    """Of the tiles of each group that load slices of a kind; of no name of all."""
    edge, place, (rows, cols) = laws.edge, laws.problem.place, groups.size
    assert edge is not None  # or there were no channels
    channels, hops = of_tiles(edge, place.rows, place.cols)
    # Along the axes rows of groups, their groups, and the tiles of one.
    places = np.array([_loading(groups, name, at) for at in range(len(groups.down))])[:, None]
    row = rows * np.array(groups.down)[:, None, None] + places[..., 0]
    col = cols * np.array(groups.across)[:, None] + places[..., 1]
    channel, far = channels[row, col], hops[row, col]
    group = np.arange(channel[..., 0].size).reshape(*channel.shape[:2], 1)
    own = np.unique(group * edge.channels + channel, return_counts=True)[1].max()
    tiles = np.bincount(channel.ravel())
    most, busiest = tiles.max(), far[channel == tiles.argmax()]
    return _Ways(*map(int, (far.max(), most, most - own, np.ptp(busiest))))


def _loading(groups: Groups, name: str, number: int) -> list[tuple[int, int]]:
    """Places in a group of a row of groups."""
    if not name:
        return [*groups.places]
    if name == "q":
        return [*enumerate(groups.diagonals(name)[number])]
    return [(row, col) for col, row in enumerate(groups.diagonals(name)[0])]
