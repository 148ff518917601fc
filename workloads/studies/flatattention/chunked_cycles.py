"""The kernel `flat_mla` as a performance model: when engines and channels are free, chunk by chunk.

It follows a tile of a group's diagonal that brings chunks of Q as well as of the latent. What parts
take is what FlatAttention's own closed form has for a depth of one chunk.
"""

from collections import defaultdict

import numpy as np

from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.attention.core import in_place
from workloads.kernels.attention.flat_costs import Costs, Slices, Stored, costs_of
from workloads.kernels.attention.flat_laws import cut_costs, laws_of
from workloads.studies.flatattention.chunked import beside
from workloads.studies.flatattention.chunked_plan import TURNS, ChunkedPlan, Phase

_Slot = tuple[str, int]


def chunked_cycles(plan: ChunkedPlan, timing: NocTiming) -> int:
    """Cycles of a plan."""
    return _Timeline(plan, timing).cycles()


class _Timeline:
    """Engines of the tile, its channel, and the buffers of its chunks.

    Args:
        plan: What is to do.
        timing: Of the network.
    """

    def __init__(self, plan: ChunkedPlan, timing: NocTiming) -> None:
        self._plan = plan
        self._costs = {width: _costs(plan, width, timing) for width in set(plan.widths[0])}
        self._own = self._costs[plan.chunk]
        self._matrix = self._vector = self._transfer = self._channel = self._ahead = 0
        self._stored = 0
        self._come: defaultdict[_Slot, int] = defaultdict(int)
        self._there: defaultdict[_Slot, int] = defaultdict(int)
        self._free: defaultdict[_Slot, int] = defaultdict(int)

    def cycles(self) -> int:
        """Until the last result is where it belongs."""
        phases, held, when = self._plan.phases, self._plan.held, beside(self._plan.phases)
        for number in range(held - 1):
            self._ask(number)
        self._send(0)
        for number, phase in enumerate(phases):
            self._ask(number + held - 1)
            self._send(number + 1)
            self._product(phase)
            for stream, sums in when.get(number, ()):
                self._sums(stream % TURNS) if sums else self._maxima(stream % TURNS)
            if number and phases[number - 1].values:
                self._finish(phases[number - 1])
        self._finish(phases[-1])
        return self._stored + self._own.o.written if self._own.ask else self._vector

    def _slices(self, number: int) -> list[tuple[_Slot, Slices]]:
        """What a product brings."""
        found: list[tuple[_Slot, Slices]] = []
        for phase in self._plan.phases[number : number + 1]:
            costs = self._costs[phase.width]
            for name, cost in (
                (("v", costs.v),) if phase.values else (("q", costs.q), ("k", costs.k))
            ):
                found.append(((name, phase.slot), cost))
        return found

    def _ask(self, number: int) -> None:
        for slot, cost in self._slices(number) if self._own.ask else ():
            start = max(self._transfer, self._free[slot])
            self._come[slot] = self._serve(start, cost.served, cost.ahead) + cost.asked
            self._transfer = start + self._own.ask

    def _send(self, number: int) -> None:
        for slot, cost in self._slices(number):
            start = max(self._transfer, self._come[slot], self._free[slot])
            self._there[slot], self._transfer = start + cost.there, start + cost.port

    def _serve(self, asked: int, served: int, ahead: int) -> int:
        """When the channel has served all tiles that ask it, the last one at ``asked``.

        It goes on for tiles of other groups while that one does not ask.
        """
        self._channel = max(self._channel, asked - self._ahead) + served
        self._ahead = max(self._ahead, ahead)
        return max(self._channel, asked + served - ahead)

    def _product(self, phase: Phase) -> None:
        state, used = phase.state, [("v", phase.slot)]
        if phase.values:
            out = ("o", phase.out)
            needs = max(self._there["p", state], self._free[out])
        else:
            used = [("q", phase.slot), ("k", phase.slot)]
            needs = self._free["s", state] if phase.chunk == 0 else 0
        start = max(self._matrix, needs, *(self._there[slot] for slot in used))
        end = self._matrix = start + self._plan.product_cycles(phase)
        self._free |= dict.fromkeys(used, end)
        if phase.values:
            self._there[out] = end
            freed = "s" if in_place(self._plan.place) else "p"
            self._free[freed, state] = end
        else:
            self._there["s", state] = end

    def _meet(self) -> None:
        """Parts of rows come together, and the result goes out: the vector engine waits for it."""
        rows = self._own.rows
        if not rows.sends and rows.spread == 0:  # a tile has whole rows
            return
        start = max(self._transfer, self._vector) if rows.sends else self._vector
        start = max(start + rows.gathered, self._transfer)
        self._vector, self._transfer = start + rows.spread, start + rows.port

    def _maxima(self, state: int) -> None:
        own = self._own
        self._vector = max(self._vector, self._there["s", state]) + own.wide
        self._meet()
        self._vector += own.column + 3 * own.wide

    def _sums(self, state: int) -> None:
        own, memory = self._own, self._own.ask > 0
        self._vector += own.wide
        self._meet()
        free = 0 if in_place(self._plan.place) else self._free["p", state]
        self._vector = max(self._vector + own.column, free) + own.wide
        self._there["p", state] = self._vector
        if not in_place(self._plan.place):
            self._free["s", state] = self._vector
        self._vector = max(self._vector, self._free["total", 0] if memory else 0) + own.column
        if memory:
            self._free["total", 0] = self._store(self._vector, own.total)

    def _store(self, made: int, cost: Stored) -> int:
        sent = self._transfer = max(self._transfer, made) + cost.port
        self._stored = self._serve(sent, cost.served, cost.ahead)
        return sent

    def _finish(self, phase: Phase) -> None:
        """A chunk of the output comes together, and is put where it belongs."""
        own, out = self._own, ("o", phase.out)
        start = max(self._transfer, self._there[out]) if own.sent else self._there[out]
        self._transfer = start + own.sent if own.sent else self._transfer
        self._free[out] = start + own.sent
        summed = max(start, self._free["sum", 0]) + own.summed
        if own.ask:
            self._free["sum", 0] = self._store(summed, own.o)
        else:
            self._vector = self._free["sum", 0] = max(self._vector, summed) + own.deep


def _costs(plan: ChunkedPlan, width: int, timing: NocTiming) -> Costs:
    """Of parts with a chunk of a depth."""
    flat = plan.flat
    laws = laws_of(timing, plan.place, (width, plan.chunk), (False, False), ("network", "network"))
    streams = flat.all_streams
    lies = streams.first, streams.beside, streams.depth, 0, 0
    return costs_of(np.concatenate(cut_costs(laws, *flat.cut, *flat.group, *lies)))
