"""A network among SimPy processes: transfers go in, callbacks tell when they leave and arrive."""

from collections.abc import Callable, Sequence

from tlm.interconnect.base import Event, EventKind, Interconnect
from tlm.interconnect.packets import TileSet, cut
from tlm.lockstep import SteppedEnvironment


class SimpyNetwork:
    """Carries whole transfers over an `Interconnect`, in step with SimPy.

    Args:
        env: The clock of the senders.
        network: A network not yet used; nobody else may advance it.
        multicast_flits: Longest packet to several tiles; longer transfers are cut into such.
    """

    def __init__(
        self, env: SteppedEnvironment, network: Interconnect, multicast_flits: int
    ) -> None:
        self._env = env
        self._network = network
        self._multicast_flits = multicast_flits
        self._effects: dict[tuple[EventKind, int, int], Callable[[int], object]] = {}
        self._wake = env.attach(network, self._dispatch)

    def send(
        self,
        source: int,
        where: TileSet,
        flits: int,
        left: Callable[[int], object],
        arrivals: dict[int, Callable[[int], object]],
    ) -> None:
        """Queue a transfer at a node's interface, behind those that are there.

        Args:
            source: Node that sends.
            where: Tiles that receive.
            flits: Length of the transfer.
            left: Called with the source when the last flit has left its interface.
            arrivals: Called with their keys, nodes, when the last flit has been written there.
        """
        bound = self._multicast_flits if len(where) > 1 else flits
        for part in cut(flits, bound):
            packet = self._network.inject(int(self._env.now), source, where, part)
        # A tree delivers packets in their order: of a transfer only the last one matters.
        self._effects[EventKind.INJECTED, packet, source] = left
        for node, arrived in arrivals.items():
            self._effects[EventKind.EJECTED, packet, node] = arrived
        self._wake()

    def _dispatch(self, events: Sequence[Event]) -> None:
        for event in events:
            effect = self._effects.pop((event.kind, event.packet, event.node), None)
            if effect is not None:
                effect(event.node)
