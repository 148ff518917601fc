"""Transfers among SimPy processes: what hangs is told, whenever it comes to a stand."""

import numpy as np
import pytest

from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Packets, TileSet
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.interconnect.zero_load import NocTiming
from tlm.lockstep import SteppedEnvironment

ROWS, COLS = 3, 2
TIMING = NocTiming(
    hop_cycles=1,
    ejection_cycles=1,
    fifo_depth=4,
    multicast_gap_cycles=1,
    flit_bytes=8,
    cut_through=False,
)
Item = tuple[int, int, TileSet, int]
"""Cycle, from, to, flits."""


def run(items: list[Item]) -> None:
    env = SteppedEnvironment()
    network = SimpyNetwork(env, HandshakeMesh(ROWS, COLS, TIMING), bound_flits=100)
    for cycle, *transfer in items:
        later = env.timeout(cycle, transfer)
        assert later.callbacks is not None
        later.callbacks.append(lambda now: network.send(*now.value, lambda _: None, {}))
    env.run()


def test_a_hang_is_told_like_that_of_the_batch() -> None:
    # Multicasts of which neither has room: many of these hang in the cycle of a last report.
    rng = np.random.default_rng(8)
    hangs = 0
    for _ in range(200):
        items = []
        for cycle in sorted(rng.integers(9, size=8).tolist()):
            where = TileSet(range(int(rng.integers(1, 4))), range(int(rng.integers(1, 3))))
            items.append((cycle, int(rng.integers(6)), where, int(rng.integers(1, 14))))
        try:
            HandshakeMesh(ROWS, COLS, TIMING).simulate(Packets.of(items))
        except DeadlockError as hang:
            hangs += 1
            with pytest.raises(DeadlockError) as told:
                run(items)
            # It may stand before the last packets have been sent.
            assert set(told.value.waiting) <= set(hang.waiting)
            assert told.value.cycle
        else:
            run(items)
    assert hangs > 20
