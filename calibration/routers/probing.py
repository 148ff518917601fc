"""What a mesh shows of itself in a few packets, before anything is fitted."""

from collections.abc import Callable

import numpy as np

from calibration.benches.mesh_bench import Log
from calibration.routers.scenes import Send
from tlm.interconnect.packets import TileSet

#: Handshakes of packets, named in words, on the fit's mesh; None if the run goes wrong.
Observe = Callable[[str, list[Send]], Log | None]

#: Cycles between messages of which the first has long come.
_APART = 1000
#: Cycles by which a message is behind another whose data still go.
_BEHIND = 3


def head_leads(observe: Observe, longest_flits: int) -> tuple[int, int]:
    """Cycles from the first to the second flit in, of messages over one link and over three.

    Where there is only one flit none come between; nor where the mesh does not take all.
    """
    flits = min(2, longest_flits)
    items: list[Send] = [
        (start, 0, TileSet.tile(0, to), flits) for start, to in ((0, 1), (_APART, 3))
    ]
    log = observe("messages from tile 0,0 to 0,1 and 0,3", items)
    if log is None:
        return 0, 0
    cycles = log[log[:, 0] == 0, 2].astype(int)
    if len(cycles) < len(items) * flits:
        return 0, 0
    leads = np.diff(cycles.reshape(len(items), flits), axis=1).sum(axis=1)
    return int(leads[0]), int(leads[1])


def messages_mix(observe: Observe, flits: int) -> bool:
    """Whether data of a message come between those of another that began before it.

    Either of two may go first wherever both have flits: each begins once.
    """
    for pair in ((0, 2), (2, 0)):
        starts = zip((0, _BEHIND), pair, strict=True)
        if _mix(observe, [(start, node, TileSet.tile(0, 1), flits) for start, node in starts]):
            return True
    return False


def flits_mix(observe: Observe, flits: int) -> bool:
    """Whether flits of packets from two senders mix on the way into a tile."""
    return _mix(observe, [(0, node, TileSet.tile(0, 1), flits) for node in (0, 2)])


def _mix(observe: Observe, items: list[Send]) -> bool:
    """Whether flits to tile 0,1 mix: node 1 of any mesh."""
    log = observe("two packets that meet at tile 0,1", items)
    if log is None:
        return False
    mine = log[(log[:, 0] == 1) & (log[:, 1] == 1)]
    senders = mine[:, 4] >> np.uint64(32)
    return int((senders[1:] != senders[:-1]).sum()) > 1
