"""The network behind TLM sockets: what a tile's initiators see of it."""

from collections.abc import Callable
from dataclasses import dataclass

from simpy import Environment

from tlm.interconnect.packets import ReductionGoal, TileSet
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


@dataclass(frozen=True, slots=True)
class Operand:
    """Extension of a payload: its data is one operand of a reduction.

    The n-th operands of equal reductions meet, one from the interface of each of the operands'
    tiles, all of one length.
    """

    reduction: ReductionGoal


class NetworkInterface:
    """A target at a tile that writes at other tiles, one or many, over the network.

    A payload says where by one of two extensions: `Destinations`, or `Operand` if its data is to
    be combined with that of other tiles on the way, and the result written at the root. The network
    is a model of times: it moves no bytes, and leaves ``data`` as it is.

    A request is open while its flits wait for their turn and leave: END_REQ comes when the last one
    has left the interface, so that a busy network holds the initiator back. BEGIN_RESP comes when
    the last flit has been written at every destination; for all operands of a reduction at once,
    when that of the result has been. Answers come in the order of these times.

    What it cannot do is answered at once: COMMAND_ERROR to all but WRITE, BURST_ERROR to no bytes,
    ADDRESS_ERROR to a payload without either extension, with both, with a tile that is not on the
    mesh, or with an operand that this tile does not bring.

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
        self, payload: GenericPayload, left: Callable[[int], object], arrived: Callable[[], object]
    ) -> None:
        goal = _goal(payload)
        assert goal is not None, "looked at before"
        nodes = [goal.root] if isinstance(goal, ReductionGoal) else goal.nodes(self._cols)
        missing = set(nodes)

        def one_arrived(node: int) -> None:
            missing.remove(node)
            if not missing:
                arrived()

        flits = -(-payload.length_bytes // self._flit_bytes)
        self._network.send(self._node, goal, flits, left, dict.fromkeys(nodes, one_arrived))

    def _answer(self, payload: GenericPayload) -> None:
        payload.response_status = ResponseStatus.OK
        self._responses.put(payload)

    def _fault(self, payload: GenericPayload) -> ResponseStatus:
        """What is wrong with a request; INCOMPLETE if nothing is."""
        if payload.command is not Command.WRITE:
            return ResponseStatus.COMMAND_ERROR
        if payload.length_bytes < 1:
            return ResponseStatus.BURST_ERROR
        goal = _goal(payload)
        if goal is None or not self._on_mesh(goal):
            return ResponseStatus.ADDRESS_ERROR
        return ResponseStatus.INCOMPLETE

    def _on_mesh(self, goal: TileSet | ReductionGoal) -> bool:
        """Whether the mesh has all of the tiles, and an operand is one that this tile brings."""
        tiles = goal.operands if isinstance(goal, ReductionGoal) else goal
        if len(tiles) == 0:
            return False
        for line, size in ((tiles.rows, self._rows), (tiles.cols, self._cols)):
            if min(line) < 0 or max(line) >= size:
                return False
        if isinstance(goal, TileSet):
            return True
        return self._node in tiles.nodes(self._cols) and 0 <= goal.root < self._rows * self._cols


def _goal(payload: GenericPayload) -> TileSet | ReductionGoal | None:
    """Where the data is to go; None if a payload does not say, or says two things."""
    destinations: Destinations | None = payload.extensions.get(Destinations)
    operand: Operand | None = payload.extensions.get(Operand)
    if destinations and not operand:
        return destinations.tiles
    return operand.reduction if operand and not destinations else None
