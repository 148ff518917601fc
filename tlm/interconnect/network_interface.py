"""The network behind TLM sockets: what a tile's initiators see of it."""

from collections.abc import Callable
from dataclasses import dataclass

from simpy import Environment

from tlm.interconnect.packets import TileSet
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.sockets import (
    Answer,
    BlockingCall,
    PayloadEventQueue,
    Phase,
    ResponseQueue,
    Sync,
    TargetSocket,
)


@dataclass(frozen=True, slots=True)
class Destinations:
    """Extension of a payload: the tiles at which its data is to be written."""

    tiles: TileSet


class NetworkInterface:
    """A target at a tile that writes at other tiles, one or many, over the network.

    A request is open while its flits wait for their turn and leave: END_REQ comes when the last one
    has left the interface, so that a busy network holds the initiator back. BEGIN_RESP comes when
    the last flit has been written at every destination. Answers come in the order of these times.

    What it cannot do is answered at once: COMMAND_ERROR to all but WRITE, BURST_ERROR to no bytes,
    ADDRESS_ERROR to a payload without `Destinations` or with one that is not on the mesh.

    Args:
        env: Clock of the network.
        network: Carries the data.
        shape: Rows and columns of the mesh.
        tile: Row and column of this interface.
        flit_bytes: Payload of a flit.
    """

    def __init__(
        self,
        env: Environment,
        network: SimpyNetwork,
        shape: tuple[int, int],
        tile: tuple[int, int],
        flit_bytes: int,
    ) -> None:
        self.socket = TargetSocket(self)
        self._env = env
        self._network = network
        self._rows, self._cols = shape
        self._node = tile[0] * self._cols + tile[1]
        self._flit_bytes = flit_bytes
        self._requests = PayloadEventQueue(env, self._send)
        self._responses = ResponseQueue(env, self.socket)

    def b_transport(self, payload: GenericPayload, delay_cycles: int) -> BlockingCall:
        """Wait until the data has been written at every destination."""
        payload.response_status = self._fault(payload)
        if payload.response_status is not ResponseStatus.INCOMPLETE:
            return delay_cycles
        yield self._env.timeout(delay_cycles)
        arrived = self._env.event()
        self._carry(payload, lambda _: None, arrived.succeed)
        yield arrived
        payload.response_status = ResponseStatus.OK
        return 0

    def nb_transport_fw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Take a request, or be told that an answer was taken."""
        if phase is Phase.END_RESP:
            self._responses.taken(delay_cycles)
            return Sync.COMPLETED, phase, delay_cycles
        payload.response_status = self._fault(payload)
        if payload.response_status is not ResponseStatus.INCOMPLETE:
            return Sync.COMPLETED, Phase.END_RESP, delay_cycles
        self._requests.notify(payload, phase, delay_cycles)
        return Sync.ACCEPTED, phase, delay_cycles

    def _send(self, payload: GenericPayload, phase: Phase) -> None:
        self._carry(
            payload,
            lambda _: self.socket.nb_transport_bw(payload, Phase.END_REQ, 0),
            lambda: self._answer(payload),
        )

    def _carry(
        self,
        payload: GenericPayload,
        left: Callable[[int], object],
        arrived: Callable[[], object],
    ) -> None:
        where = payload.extension(Destinations).tiles
        nodes = where.nodes(self._cols)
        missing = set(nodes)

        def one_arrived(node: int) -> None:
            missing.remove(node)
            if not missing:
                arrived()

        flits = -(-payload.length_bytes // self._flit_bytes)
        self._network.send(self._node, where, flits, left, dict.fromkeys(nodes, one_arrived))

    def _answer(self, payload: GenericPayload) -> None:
        payload.response_status = ResponseStatus.OK
        self._responses.put(payload)

    def _fault(self, payload: GenericPayload) -> ResponseStatus:
        """What is wrong with a request; INCOMPLETE if nothing is."""
        if payload.command is not Command.WRITE:
            return ResponseStatus.COMMAND_ERROR
        if payload.length_bytes < 1:
            return ResponseStatus.BURST_ERROR
        where = payload.extensions.get(Destinations)
        if where is None or len(where.tiles) == 0:
            return ResponseStatus.ADDRESS_ERROR
        for line, size in ((where.tiles.rows, self._rows), (where.tiles.cols, self._cols)):
            if min(line) < 0 or max(line) >= size:
                return ResponseStatus.ADDRESS_ERROR
        return ResponseStatus.INCOMPLETE
