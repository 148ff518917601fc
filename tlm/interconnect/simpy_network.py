"""A network among SimPy processes: transfers go in, callbacks tell when they leave and arrive."""

from collections import deque
from collections.abc import Callable, Sequence

from tlm.errors import InputError
from tlm.interconnect.base import NO_PACKET, Event, EventKind, Interconnect
from tlm.interconnect.packets import Meetings, ReductionGoal, TileSet, cut
from tlm.lockstep import SteppedEnvironment


class SimpyNetwork:
    """Carries whole transfers over an `Interconnect`, in step with SimPy.

    Args:
        env: The clock of the senders.
        network: A network not yet used; nobody else may advance it.
        bound_flits: Longest packet of a multicast or a reduction; longer transfers are cut into
            such.
    """

    def __init__(self, env: SteppedEnvironment, network: Interconnect, bound_flits: int) -> None:
        self._env = env
        self._network = network
        self._bound_flits = bound_flits
        self._effects: dict[tuple[EventKind, int, int], list[Callable[[int], object]]] = {}
        self._parts: dict[int, deque[Callable[[], object]]] = {}
        self._meetings = Meetings()
        self._operand_flits: dict[int, int] = {}
        self._wake = env.attach(network, self._dispatch)

    def send(
        self,
        source: int,
        goal: TileSet | ReductionGoal,
        flits: int,
        left: Callable[[int], object],
        arrivals: dict[int, Callable[[int], object]],
        parts: Sequence[Callable[[], object]] = (),
    ) -> None:
        """Queue a transfer at a node's interface, behind those that are there.

        The n-th operands of equal `ReductionGoal`s meet, one of each of their tiles; each is sent
        at its own time. `tlm.interconnect.ordering` says which may be in flight together.

        Args:
            source: Node that sends.
            goal: Tiles that receive, or the reduction of which this is an operand.
            flits: Length of the transfer.
            left: Called with the source when the last flit has left its interface.
            arrivals: Called with their keys, nodes, when the last flit has been written there: of
                an operand the last of the result, at the root.
            parts: Called one after the other when a node without a tile has taken a part before the
                last.

        Raises:
            InputError: for an operand that is not as long as those that it meets.
        """
        bound = flits if isinstance(goal, TileSet) and len(goal) == 1 else self._bound_flits
        for part in cut(flits, bound):
            packet = self._network.inject(int(self._env.now), source, goal, part)
        if parts:
            self._parts[packet] = deque(parts)
        # A tree delivers packets in their order: of a transfer only the last one matters.
        self._effects[EventKind.INJECTED, packet, source] = [left]
        if isinstance(goal, ReductionGoal):
            packet = self._result(packet, source, goal, flits)
        for node, arrived in arrivals.items():
            self._effects.setdefault((EventKind.EJECTED, packet, node), []).append(arrived)
        self._wake()

    def expect(self, kind: EventKind, node: int, effect: Callable[[int], object]) -> None:
        """Have something called with a node when what has begun in its tile ends."""
        self._effects[kind, NO_PACKET, node] = [effect]
        self._wake()

    def _result(self, packet: int, source: int, goal: ReductionGoal, flits: int) -> int:
        """The number by which the network tells the end of a result: its first operand's."""
        first = self._meetings.joint(packet, source, goal)
        expected = self._operand_flits.setdefault(first, flits)
        if flits != expected:
            raise InputError(
                f"operand of node {source}: found {flits} flits; allowed: {expected}, as those "
                "that it meets"
            )
        return first

    def _take_part(self, packet: int) -> None:
        """A node has taken a part of a packet; its last one is told as the packet's end."""
        parts = self._parts.get(packet)
        if parts:
            parts.popleft()()

    def _dispatch(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind is EventKind.TAKEN:
                self._take_part(event.packet)
            if event.kind is EventKind.EJECTED:
                self._operand_flits.pop(event.packet, None)
                self._parts.pop(event.packet, None)
            for effect in self._effects.pop((event.kind, event.packet, event.node), ()):
                effect(event.node)
        if self._network.idle:
            # Nothing will move by itself. A network that owes deliveries tells why.
            self._network.advance(int(self._env.now))
