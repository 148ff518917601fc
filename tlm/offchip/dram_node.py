"""The node of a tile's own channel that is a model of DRAM, each block at once.

Nothing but this tile's requests decides what its channel does, so the history of these says when
a block has come (dram.py). Each further request may change the times of those under way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numba import types
from simpy import Environment

from tlm.compiled import compiled, prepare
from tlm.interconnect.packets import TileSet
from tlm.lockstep import call_after
from tlm.memory.base import OfBlock
from tlm.memory.tables import Int64s
from tlm.offchip.dram import Ask, Histories

Cycles = Annotated[Int64s, types.int64[::1]]


@dataclass(slots=True)
class _Load:
    """A load under way: when its units are answered, and its flits."""

    came: Int64s
    flits: int
    arrived: Callable[[], object]


class DramNode:
    """A channel's node, as `tlm.offchip.node.MemoryNode`.

    It asks for a burst a cycle, block after block. Answers leave in the order of the loads. The
    word that a block is kept leaves when the channel has taken all of it, and holds up no answer.

    Attributes:
        read_bytes: What the channel has been asked to read.
        written_bytes: The same of writes.

    Args:
        env: The clock.
        histories: Of the channels that are equal to this one.
        unit_bytes: What the channel is asked for at a time.
        unit_flits: Flits of as much.
    """

    def __init__(
        self, env: Environment, histories: Histories, unit_bytes: int, unit_flits: int
    ) -> None:
        prepare(_last_leaves)
        self.read_bytes = self.written_bytes = 0
        self._env, self._history = env, histories.first
        self._unit_bytes, self._unit_flits = unit_bytes, unit_flits
        self._asks_from = 0
        self._loads: dict[int, _Load] = {}  # by number among the requests
        self._left = 0  # when the last answer has of those that are not under way
        self._taken = 0  # when all that is written will be

    def load(
        self,
        tile: TileSet,
        address: int,
        flits: int,
        arrived: Callable[[], object],
        target: int = 0,
    ) -> None:
        """A request has come for so many flits; ``arrived`` is called when the last has come."""
        del tile, target  # the wire leads to one tile
        units, number = -(-flits // self._unit_flits), self._history.asked
        self.read_bytes += units * self._unit_bytes
        self._loads[number] = _Load(np.zeros(0, dtype=np.int64), flits, arrived)
        self._ask(address, units, writes=False)

    def write(self, address: int, of_block: OfBlock) -> None:
        """The last flit of a burst of a block has come."""
        del of_block
        self.written_bytes += self._unit_bytes
        number = self._history.asked
        self._ask(address, 1, writes=True)
        self._taken = max(self._taken, int(self._history.times[number][-1]))

    def acknowledge(self, tile: TileSet, arrived: Callable[[], object], target: int = 0) -> None:
        """A block's end has come: the tile is told when all before it is taken."""
        del tile, target
        now = int(self._env.now)
        come = max(now, self._taken) + 2  # it leaves in the next cycle
        call_after(self._env, come - now, arrived)

    def _ask(self, address: int, units: int, *, writes: bool) -> None:
        now = int(self._env.now)
        first = max(now, self._asks_from)
        self._asks_from = first + units
        self._history = self._history.after(Ask(now, first, writes, address, units))
        for number, came in self._history.times.items():
            if number in self._loads:
                self._loads[number].came = came
        self._look()

    def _look(self) -> None:
        """Come back when the last answer of the first load has left."""
        if not self._loads:
            return
        asked, number = self._history.asked, next(iter(self._loads))
        load = self._loads[number]
        left = _last_leaves(self._left, load.came, self._unit_flits, load.flits)

        def come() -> None:
            if asked != self._history.asked or number not in self._loads:
                return  # overtaken by a request that came since
            self._left = left
            del self._loads[number]
            load.arrived()
            self._look()

        call_after(self._env, left - int(self._env.now), come)


@compiled
def _last_leaves(left: int, came: Cycles, unit_flits: int, flits: int) -> int:
    """When the last of so many flits has left, if what was before them has at ``left``.

    An answer begins to leave in the cycle after it has come, or when the one before has left.
    """
    for unit in range(len(came)):
        begun = left if left >= came[unit] else came[unit] + 1
        left = begun + min(unit_flits, flits - unit * unit_flits)
    return int(left)
