"""Multicasts along a line of tiles, each of which sends itself blocks as well: step by step.

A block that a tile sends to itself leaves by its ejection port as one packet. Packets of a
multicast take turns with such blocks there, in the order in which they ask. The next packet goes
when one has passed at all tiles, but for what buffers take beside one packet. So a block at any
tile holds a multicast up at all of them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import Numbers, allocating, compiled, forget_stale, inlined
from tlm.interconnect.transfer_times import credit_cycles
from tlm.interconnect.zero_load import NocTiming

_FOLLOWED_STEPS = 64
"""The others go on at the pace of the last ones."""
_NEVER = 2**60


class LineSteps(NamedTuple):
    """Steps in which a root multicasts a block, every tile sends itself one, and all multiply.

    Attributes:
        tiles: Of the line.
        sent: Flits of a block that is multicast.
        own: Flits of a tile's own block.
        own_first: Whether a root sends its own block first.
        buffers: Blocks of either kind for which a tile has room.
        product: Cycles of a step's product.
    """

    tiles: int
    sent: int
    own: int
    own_first: bool
    buffers: int
    product: int


class _Router(NamedTuple):
    """Cycles, and flits: see `NocTiming`."""

    hop: int
    ejection: int
    launch: int
    packet: int
    gap: int
    places: int
    credit: int  # of a tile to itself


class _Tiles(NamedTuple):
    """What tiles do, by step or not, and by tile.

    Attributes:
        come: When multicast blocks (0) and own ones (1) have come; shape (2, steps, tiles).
        ends: When products have ended; shape (steps, tiles).
        done: How many have.
        turn: Two of each step: which block a tile sends next.
        ready: When it asks for it, or for the next packet.
        left: Flits of a block of which packets have gone.
        begun: When the first one has.
        engine: When the transfer engine is free.
        port: When the ejection port is.
    """

    come: NDArray[np.int64]
    ends: NDArray[np.int64]
    done: NDArray[np.int64]
    turn: NDArray[np.int64]
    ready: NDArray[np.int64]
    left: NDArray[np.int64]
    begun: NDArray[np.int64]
    engine: NDArray[np.int64]
    port: NDArray[np.int64]


def line_cycles(steps: LineSteps, roots: NDArray[np.int64], timing: NocTiming) -> int:
    """Cycles until the last product.

    Args:
        steps: What each step takes.
        roots: Of each step the place from which the block is multicast.
        timing: Of the network.
    """
    router = _Router(
        timing.hop_cycles, timing.ejection_cycles, timing.launch_cycles, timing.packet_bound,
        timing.multicast_gap_cycles, timing.input_places, credit_cycles(timing, 0),
    )  # fmt: skip
    count, followed = len(roots), min(len(roots), _FOLLOWED_STEPS)
    ends = _ends(steps, roots[:followed], router)
    half = followed // 2
    pace = (ends[-1] - ends[half - 1]) / (followed - half) if followed < count else 0
    cycles: int = round(ends[-1] + (count - followed) * pace)
    return cycles


@allocating
def _ends(steps: LineSteps, roots, router: _Router):  # type: ignore[no-untyped-def]  # arrays
    """When all tiles have multiplied, of each step; shape (steps,)."""
    count, tiles = len(roots), steps.tiles
    now = _Tiles(
        np.full((2, count, tiles), _NEVER),
        np.full((count, tiles), _NEVER),
        np.zeros(tiles, dtype=np.int64),
        np.zeros(tiles, dtype=np.int64),
        np.full(tiles, _NEVER),
        np.zeros(tiles, dtype=np.int64),
        np.zeros(tiles, dtype=np.int64),
        np.full(tiles, router.launch),
        np.zeros(tiles, dtype=np.int64),
    )
    changed = True
    while True:
        if changed:
            _multiply(now, steps)
            _take_up(now, steps, roots, router)
        tile = int(now.ready.argmin())
        if now.ready[tile] == _NEVER:
            break
        if _sends_own(now, steps, tile):
            _send_own(now, steps, tile, router)
            changed = True
        else:
            changed = _send_packet(now, steps, tile, router)
    last = np.empty(count, dtype=np.int64)
    for step in range(count):
        last[step] = now.ends[step].max()
    return last


@inlined
def _sends_own(now: _Tiles, steps: LineSteps, tile: int) -> bool:
    first: bool = now.turn[tile] % 2 == 0
    return first == steps.own_first


@compiled
def _multiply(now: _Tiles, steps: LineSteps) -> None:
    """Work on all that has come."""
    count = len(now.ends)
    for tile in range(steps.tiles):
        while now.done[tile] < count:
            step = now.done[tile]
            come = max(now.come[0, step, tile], now.come[1, step, tile])
            if come == _NEVER:
                break
            before = now.ends[step - 1, tile] if step else 0
            now.ends[step, tile] = max(come, before) + steps.product
            now.done[tile] += 1


@compiled
def _take_up(now: _Tiles, steps: LineSteps, roots: Numbers[int], router: _Router) -> None:
    """Find out when each tile asks for what it sends next."""
    count = len(now.ends)
    for tile in range(steps.tiles):
        if now.left[tile]:
            continue
        now.ready[tile] = _NEVER
        if now.turn[tile] < 2 * count and not _sends_own(now, steps, tile):
            now.turn[tile] += roots[now.turn[tile] // 2] != tile
        step = now.turn[tile] // 2
        if step == count:
            continue
        before, known = step - steps.buffers, 0
        if before >= 0 and _sends_own(now, steps, tile):
            known = now.ends[before, tile] + router.credit + router.launch
        elif before >= 0:
            for other in range(steps.tiles):
                credit = router.credit + router.hop * abs(other - tile)
                known = max(known, now.ends[before, other] + credit + router.launch)
        now.ready[tile] = min(_NEVER, max(now.engine[tile], known))


@compiled
def _send_own(now: _Tiles, steps: LineSteps, tile: int, router: _Router) -> None:
    """Send a tile's block through its port."""
    now.port[tile] = max(now.ready[tile], now.port[tile]) + steps.own
    now.come[1, now.turn[tile] // 2, tile] = now.port[tile] + router.ejection
    now.engine[tile] = now.port[tile]
    now.ready[tile] = _NEVER
    now.turn[tile] += 1


@compiled
def _send_packet(now: _Tiles, steps: LineSteps, root: int, router: _Router) -> bool:
    """Send a packet through all ports; whether a block has left, of this tile or of another."""
    time, step, changed = now.ready[root], now.turn[root] // 2, False
    if now.left[root] == 0:
        now.left[root], now.begun[root] = steps.sent, time
    flits = min(router.packet, now.left[root])
    now.left[root] -= flits
    leaves = time + flits
    for tile in range(steps.tiles):
        hops = abs(tile - root)
        asks = time + router.hop * hops
        if now.ready[tile] < asks and now.left[tile] == 0 and _sends_own(now, steps, tile):
            _send_own(now, steps, tile, router)
            changed = True
        late = max(0, now.port[tile] - asks)
        now.port[tile] = asks + late + flits
        leaves = max(leaves, time + flits + late - (router.places - router.packet) * hops)
        if now.left[root] == 0:
            now.come[0, step, tile] = now.port[tile] + router.ejection
    now.ready[root] = leaves + router.gap
    if now.left[root]:
        return changed
    # The last packet leaves its root for the buffer behind when the one before it has passed.
    now.engine[root] = max(now.begun[root] + steps.sent, time + flits, now.port[root])
    now.turn[root] += 1
    return True


forget_stale(_ends)
