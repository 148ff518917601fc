"""A network among SimPy processes: transfers go in, callbacks tell when they leave and arrive."""

from collections import deque
from collections.abc import Callable, Sequence

from tlm.errors import InputError
from tlm.interconnect.base import Event, EventKind, Interconnect
from tlm.interconnect.packets import Meetings, ReductionGoal, TileSet, cut
from tlm.lockstep import SteppedEnvironment

# Names of an enumeration are looked up slowly.
_INJECTED, _EJECTED, _TAKEN = EventKind.INJECTED, EventKind.EJECTED, EventKind.TAKEN


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
        self._left: dict[int, Callable[[int], object]] = {}  # by packet
        self._arrived: dict[tuple[int, int], list[Callable[[int], object]]] = {}  # and node
        self._ended: dict[tuple[EventKind, int], Callable[[int], object]] = {}  # in a node's tile
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
        now, whole = self._env.now, isinstance(goal, TileSet) and len(goal) == 1
        for part in (flits,) if whole else cut(flits, self._bound_flits):
            packet = self._network.inject(now, source, goal, part)
        if parts:
            self._parts[packet] = deque(parts)
        # A tree delivers packets in their order: of a transfer only the last one matters.
        self._left[packet] = left
        if isinstance(goal, ReductionGoal):
            packet = self._result(packet, source, goal, flits)
        for node, arrived in arrivals.items():
            self._arrived.setdefault((packet, node), []).append(arrived)
        self._wake()

    def expect(self, kind: EventKind, node: int, effect: Callable[[int], object]) -> None:
        """Have something called with a node when what has begun in its tile ends."""
        self._ended[kind, node] = effect
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
        if self._network.idle:
            # Nothing will move by itself. A network that owes deliveries tells why.
            self._network.advance(self._env.now)
        for kind, packet, node, _ in events:
            if kind is _INJECTED:
                if left := self._left.pop(packet, None):
                    left(node)
            elif kind is _EJECTED:
                self._operand_flits.pop(packet, None)
                self._parts.pop(packet, None)
                for arrived in self._arrived.pop((packet, node), ()):
                    arrived(node)
            elif kind is _TAKEN:
                self._take_part(packet)
            else:
                self._ended.pop((kind, node))(node)
