"""All packets of a list through a Verilated mesh: when each was delivered."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from cosim.errors import HangError, SimulationError
from cosim.network.handle import EVENT_WORDS, PATIENCE_CYCLES, STILL, MeshHandle
from cosim.network.model import LoopModel
from cosim.spec.header import goal_of
from tlm.errors import InputError
from tlm.interconnect.packets import Deliveries, Int64s, Packets

_LONGEST_CYCLES = 10_000_000
#: Cycles between which a run can be interrupted.
_STEP_CYCLES = 5000


class StandstillError(HangError):
    """A mesh in which nothing moves though flits are due.

    Attributes:
        since_cycle: The cycle after the last one in which a flit moved.
    """

    def __init__(self, mesh: str, since_cycle: int, counts: str) -> None:
        super().__init__(f"{mesh} stands still since cycle {since_cycle}: {counts}")
        self.since_cycle = since_cycle


def simulate(
    model: LoopModel,
    packets: Packets,
    *,
    loopback: bool = True,
    waves: Path | None = None,
    first: int = 0,
) -> Deliveries:
    """Run packets to their delivery; each node sends its own in the order of their numbers.

    Every flit is checked on the way: data, order, completeness, exactly one copy a destination. The
    mesh is clocked from the first cycle to the last, also while nothing is on its way.

    Args:
        model: The mesh; built if it is not yet.
        packets: What is sent.
        loopback: A sender among the destinations of its multicast gets a copy.
        waves: A VCD file that is written.
        first: Number of the first packet on the mesh: with other numbers go other data.

    Raises:
        InputError: for a packet that headers of this mesh cannot express, or that is not as long as
            the operands that it meets.
        StandstillError: if the mesh stands still though flits are due.
        SimulationError: if the model cannot be built or stops, or anything comes out wrong.
    """
    with _ListedPackets(model, loopback=loopback, waves=waves) as mesh:
        return mesh.deliveries(packets, first)


class _ListedPackets(MeshHandle):
    """A mesh to which all packets are told before it runs."""

    def deliveries(self, packets: Packets, first: int) -> Deliveries:
        """What `simulate` says."""
        due = self._push(packets, first)
        events = np.concatenate([*self._steps()]) - np.array([0, first, 0, 0, 0])
        state, sent = self._state, int(packets.flits.sum())
        counts = f"{state.injected} of {sent} flits injected, {state.ejected} of {due} ejected"
        if state.cycle >= _LONGEST_CYCLES:
            raise SimulationError(f"{self._name} moves still in cycle {state.cycle}: {counts}")
        if (state.injected, state.ejected) != (sent, due):
            raise StandstillError(self._name, state.still_since, counts)
        return _deliveries(events)

    def _push(self, packets: Packets, first: int) -> int:
        """Queue packets at their nodes; returns how many flits are to come out."""
        _hold_equal_operands(packets)
        alike, shapes = _alike(packets)
        starts = np.cumsum(alike.flits) - alike.flits
        try:
            heads = self._layout.encode(alike)[starts]
        except InputError:
            self._layout.check(packets)  # which names the packet by its own number
            raise
        made = [
            self._new_shape(int(alike.source[n]), goal_of(alike, n), int(alike.flits[n]), heads[n])
            for n in range(len(alike))
        ]
        push, loop, joints = self._library.loop_push, self._open, packets.joint.tolist()
        for number, shape in enumerate(shapes.tolist()):
            cycle, joint = int(packets.cycle[number]), first + joints[number]
            push(loop, made[shape][0], first + number, joint, cycle)
        copies = np.array([count for _, count in made])[shapes]
        own = packets.joint == np.arange(len(packets))
        return int((packets.flits * copies)[own].sum())

    def _steps(self) -> Iterator[Int64s]:
        """Run until nothing moves or waits any more; rows of `Event` of loop.cpp, step by step."""
        found, state = None, self._state
        while found != STILL and state.cycle < _LONGEST_CYCLES:
            until = state.cycle + _STEP_CYCLES
            found = self._library.loop_finish(self._open, until, PATIENCE_CYCLES)
            self._hold_no_failure()
            shape = (state.event_count, EVENT_WORDS)
            rows = np.ctypeslib.as_array(state.events, shape) if state.event_count else ()
            yield np.array(rows, dtype=np.int64).reshape(-1, EVENT_WORDS)


def _hold_equal_operands(packets: Packets) -> None:
    """Hold that operands are as long as the first one that they meet."""
    wanted = packets.flits[packets.joint]
    for number in np.nonzero(packets.flits != wanted)[0].tolist():
        raise InputError(
            f"packet {number}: found {packets.flits[number]} flits; allowed: {wanted[number]}, as "
            f"those of the reduction's first operand, packet {packets.joint[number]}"
        )


def _alike(packets: Packets) -> tuple[Packets, Int64s]:
    """One packet for all that differ in time alone, and which stands for each of all."""
    zero = np.zeros_like(packets.cycle)
    columns = np.stack(replace(packets, cycle=zero, joint=zero).columns(), axis=1)
    kinds, which = np.unique(columns, axis=0, return_inverse=True)
    return Packets(*np.ascontiguousarray(kinds.T)), which.reshape(-1)


def _deliveries(events: Int64s) -> Deliveries:
    """From rows of events: one for each packet that went in, and for each time that it came out."""
    injected, ejected = (events[events[:, 0] == kind, 1:] for kind in (0, 1))
    injected = injected[np.argsort(injected[:, 0])]
    ejected = ejected[np.lexsort((ejected[:, 1], ejected[:, 0]))]
    return Deliveries(*injected.T[2:], *ejected.T)
