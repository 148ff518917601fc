"""The node of a memory channel: requests from tiles to the channel, and its answers to them.

What it does, cycle by cycle:

- It takes a request in the cycle after its flit has come, and goes on with the next when the
  channel has been asked for all of it: for a burst a cycle, if the channel takes one.
- A read is answered by a packet a burst, in the order in which the channel answers: each flit says
  where in the tile it belongs. One packet leaves while the channel holds the next answer; the first
  flit leaves in the cycle after the answer.
- A burst that a tile writes is handed over when its packet has come. The word that a block is kept
  goes back when the channel has taken all of it, if that is as good as done
  (`MemoryTarget.posts_writes`), else when it has been written.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from simpy import Environment

from tlm.interconnect.packets import TileSet, cut
from tlm.memory.base import MemoryTarget
from tlm.payload import Command, GenericPayload
from tlm.sockets import Answer, InitiatorSocket, Phase, Sync

#: Sends flits to a tile, to be written from an address (in flits) on; calls back when they have
#: left, and when they have come.
SendFlits = Callable[[TileSet, int, int, Callable[[], object], Callable[[], object]], object]


@dataclass(slots=True)
class _Reply:
    """What a tile waits for.

    Attributes:
        tile: The tile.
        arrived: Called when all of it has come.
        left: Packets not yet sent.
        target: Where it is written in the tile.
    """

    tile: TileSet
    arrived: Callable[[], object]
    left: int
    target: int


@dataclass(slots=True)
class _Packet:
    """A part of a reply, from one of its flits on."""

    reply: _Reply
    first: int
    flits: int


class MemoryNode:
    """A channel's network interface.

    Attributes:
        socket: Bound to the channel.
        read_bytes: What the channel has been asked to read.
        written_bytes: The same of writes.

    Args:
        env: The clock.
        memory: The channel, at any level; bound to this node.
        send: Sends from the node's router.
        unit_bytes: What the channel is asked for at a time.
        unit_flits: Flits of as much.
    """

    def __init__(
        self,
        env: Environment,
        memory: MemoryTarget,
        send: SendFlits,
        unit_bytes: int,
        unit_flits: int,
    ) -> None:
        self.read_bytes = self.written_bytes = 0
        self._env, self._send = env, send
        self._unit_bytes, self._unit_flits = unit_bytes, unit_flits
        self.socket = InitiatorSocket(self)
        self.socket.bind(memory.socket)
        self._waiting: deque[GenericPayload | _Reply] = deque()
        self._asking = False
        self._sending = False
        self._kept: deque[_Reply] = deque()
        self._posts = memory.posts_writes
        self._unwritten = 0
        self._unkept: deque[tuple[_Reply, int]] = deque()  # and how many writes are before it
        self._refused: GenericPayload | None = None

    def load(
        self,
        tile: TileSet,
        address: int,
        flits: int,
        arrived: Callable[[], object],
        target: int = 0,
    ) -> None:
        """A request has come: ``flits`` from ``address`` (in bytes) on are sent to the tile."""
        parts = cut(flits, self._unit_flits)
        reply = _Reply(tile, arrived, len(parts), target)
        for number, part in enumerate(parts):
            payload = self._payload(Command.READ, address + number * self._unit_bytes)
            payload.extend(_Packet(reply, number * self._unit_flits, part))
            self._waiting.append(payload)
        self.read_bytes += len(parts) * self._unit_bytes
        self._go_on()

    def write(self, address: int) -> None:
        """A packet of a block has come."""
        self._waiting.append(self._payload(Command.WRITE, address))
        self.written_bytes += self._unit_bytes
        self._go_on()

    def acknowledge(self, tile: TileSet, arrived: Callable[[], object], target: int = 0) -> None:
        """A block's end has come: the tile is told when all before it is kept."""
        self._waiting.append(_Reply(tile, arrived, 1, target))
        self._go_on()

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Be told that the channel has taken a request, or that it answers."""
        assert delay_cycles == 0, "this node is told of phases when they begin"
        if phase is Phase.END_REQ:
            self._after(1, self._taken)
            return Sync.ACCEPTED, phase, 0
        if payload.command is Command.WRITE:
            self._written()
            return Sync.COMPLETED, Phase.END_RESP, 0
        if self._sending:
            self._refused = payload
            return Sync.ACCEPTED, phase, 0
        self._take(payload)
        return Sync.COMPLETED, Phase.END_RESP, 0

    def _payload(self, command: Command, address: int) -> GenericPayload:
        return GenericPayload(command, address, self._unit_bytes)

    def _after(self, cycles: int, call: Callable[[], None]) -> None:
        event = self._env.timeout(cycles)
        assert event.callbacks is not None
        event.callbacks.append(lambda _: call())

    def _go_on(self) -> None:
        """Ask for what is next, if the channel has taken what was before."""
        while self._waiting and not self._asking:
            first = self._waiting.popleft()
            if isinstance(first, GenericPayload):
                self._asking = True
                self._unwritten += first.command is Command.WRITE
                sync, _, _ = self.socket.nb_transport_fw(first, Phase.BEGIN_REQ, 0)
                if sync is Sync.UPDATED:  # taken at once
                    self._after(1, self._taken)
                continue
            if self._posts or not self._unwritten:
                self._keep(first)
            else:
                self._unkept.append((first, self._unwritten))

    def _written(self) -> None:
        """The channel has written the first of what it had not: it answers in order."""
        self._unwritten -= 1
        self._unkept = deque((reply, before - 1) for reply, before in self._unkept)
        while self._unkept and not self._unkept[0][1]:
            self._keep(self._unkept.popleft()[0])

    def _keep(self, reply: _Reply) -> None:
        """A tile is told that its block is kept."""
        self._kept.append(reply)
        if not self._sending:
            self._sending = True
            self._after(1, self._send_next)

    def _taken(self) -> None:
        self._asking = False
        self._go_on()

    def _take(self, payload: GenericPayload) -> None:
        """An answer is taken from the channel, and leaves from the next cycle on."""
        self._sending = True
        self._after(1, lambda: self._send_part(payload.extension(_Packet)))

    def _send_part(self, packet: _Packet) -> None:
        reply = packet.reply
        reply.left -= 1
        arrived = _nothing if reply.left else reply.arrived
        self._send(reply.tile, reply.target + packet.first, packet.flits, self._send_next, arrived)

    def _send_next(self) -> None:
        """A packet has left: another may."""
        if self._kept:
            self._send_part(_Packet(self._kept.popleft(), 0, 1))
        elif self._refused is not None:
            payload, self._refused = self._refused, None
            self._send_part(payload.extension(_Packet))
            self.socket.nb_transport_fw(payload, Phase.END_RESP, 0)
        else:
            self._sending = False


def _nothing() -> None:
    """Nobody waits for this packet."""
