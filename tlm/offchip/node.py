"""The node of a memory channel: requests from tiles to the channel, and its answers to them.

What it does, cycle by cycle:

- It takes a request from its router, and in the next cycle begins to ask the channel: for a burst a
  cycle, if the channel takes one. It takes the next one in the cycle of the last burst, and has
  `SLOTS` loads under way at most. Of a channel that is a formula, and where a network cannot hold
  flits back, it takes all that comes, and requests wait in the node.
- A read is answered by a packet a burst, in the order in which the channel answers: each flit says
  where in the tile it belongs. One packet leaves while the channel holds the next answer; the first
  flit leaves in the cycle after the answer.
- A burst that a tile writes is handed over when its last flit has come; as long as the channel does
  not take it nothing else is taken. The word that a block is kept goes back when the channel has
  taken all of it, if that is as good as done (`MemoryTarget.posts_writes`), else when it has been
  written. In the first case nothing else is taken, nor any answer, until it leaves.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from simpy import Environment

from tlm.interconnect.packets import TileSet, cut
from tlm.lockstep import call_after
from tlm.memory.base import MemoryTarget, OfBlock
from tlm.offchip.outlet import Outlet, Part, Reply, SendFlits
from tlm.payload import Command, GenericPayload
from tlm.sockets import Answer, InitiatorSocket, Phase, Sync


class Gate(Protocol):
    """A node's side of a router that says of each flit when it moves."""

    def let_take(self, flits: int) -> None:
        """Have the node take so many flits, then none."""

    def let_load(self, lets: bool) -> None:
        """Have the node take requests for loads, too, or leave them in the router."""

    def sends_last(self) -> bool:
        """Whether the node has nothing to send after the cycle that begins now."""


#: Loads that a node which holds flits back has under way (`Slots` of rtl/memory/memory_node.sv).
SLOTS = 16


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
        gate: The node's side of its router; None: it takes all that comes.
    """

    def __init__(
        self,
        env: Environment,
        memory: MemoryTarget,
        send: SendFlits,
        unit_bytes: int,
        unit_flits: int,
        gate: Gate | None = None,
    ) -> None:
        self.read_bytes = self.written_bytes = 0
        self._env, self._gate = env, gate
        self._outlet = Outlet(env, send, gate.sends_last if gate else None, self._freed)
        self._unit_bytes, self._unit_flits = unit_bytes, unit_flits
        self.socket = InitiatorSocket(self)
        self.socket.bind(memory.socket)
        self._waiting: deque[GenericPayload | Reply] = deque()
        self._loads = 0  # under way
        self._asking = False
        self._kept: deque[Reply] = deque()
        self._tell_waits = False  # and nothing else is taken
        self._posts = memory.posts_writes
        self._unwritten = 0
        self._unkept: deque[tuple[Reply, int]] = deque()  # and how many writes are before it
        self._refused: GenericPayload | None = None
        self._let_take(unit_flits)

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
        reply = Reply(tile, arrived, len(parts), target)
        of_block = OfBlock(len(parts) * self._unit_bytes)
        for number, part in enumerate(parts):
            payload = self._payload(Command.READ, address + number * self._unit_bytes, of_block)
            payload.extend(Part(reply, number * self._unit_flits, part))
            self._waiting.append(payload)
        self.read_bytes += len(parts) * self._unit_bytes
        self._loads += 1
        self._let_load()
        self._go_on()

    def write(self, address: int, of_block: OfBlock) -> None:
        """The last flit of a burst of a block has come."""
        self._waiting.append(self._payload(Command.WRITE, address, of_block))
        self.written_bytes += self._unit_bytes
        self._go_on()

    def acknowledge(self, tile: TileSet, arrived: Callable[[], object], target: int = 0) -> None:
        """A block's end has come: the tile is told when all before it is kept."""
        self._waiting.append(Reply(tile, arrived, 1, target))
        self._go_on()

    def nb_transport_bw(self, payload: GenericPayload, phase: Phase, delay_cycles: int) -> Answer:
        """Be told that the channel has taken a request, or that it answers."""
        assert delay_cycles == 0, "this node is told of phases when they begin"
        if phase is Phase.END_REQ:
            self._asked()
            return Sync.ACCEPTED, phase, 0
        if payload.command is Command.WRITE:
            self._written()
            return Sync.COMPLETED, Phase.END_RESP, 0
        if not self._outlet.may_take():
            self._refused = payload
            return Sync.ACCEPTED, phase, 0
        self._answer(payload, 1)
        return Sync.COMPLETED, Phase.END_RESP, 0

    def _answer(self, payload: GenericPayload, after_cycles: int) -> None:
        """Take an answer from the channel; a load's last one leaves its slot to another."""
        part = payload.extension(Part)
        self._outlet.take(part, after_cycles)
        if not part.reply.left:
            call_after(self._env, 1, self._leave_slot)

    def _leave_slot(self) -> None:
        self._loads -= 1
        self._let_load()

    def _let_load(self) -> None:
        if self._gate is not None and self._posts:
            self._gate.let_load(self._loads < SLOTS)

    def _let_take(self, flits: int) -> None:
        if self._gate is not None:
            self._gate.let_take(flits)

    def _payload(self, command: Command, address: int, of_block: OfBlock) -> GenericPayload:
        payload = GenericPayload(command, address, self._unit_bytes)
        payload.extend(of_block)
        return payload

    def _go_on(self) -> None:
        """Begin with what has come, if the channel has taken what was before."""
        self._let_take(0 if self._posts else self._unit_flits)
        self._ask()

    def _ask(self) -> None:
        """Ask for what is next, if the channel has taken what was before."""
        while self._waiting and not self._asking:
            first = self._waiting.popleft()
            if isinstance(first, GenericPayload):
                self._asking = True
                self._unwritten += first.command is Command.WRITE
                sync, _, _ = self.socket.nb_transport_fw(first, Phase.BEGIN_REQ, 0)
                if sync is Sync.UPDATED:  # taken at once
                    self._asked()
                continue
            if self._posts or not self._unwritten:
                self._keep(first)
            else:
                self._unkept.append((first, self._unwritten))
            self._done()

    def _asked(self) -> None:
        """The channel takes in this cycle what it is asked for."""
        call_after(self._env, 1, self._taken)
        self._done()

    def _done(self) -> None:
        """Take more in this cycle, if nothing is left to do for what has come."""
        if self._posts and not self._waiting and not self._tell_waits:
            self._let_take(self._unit_flits)

    def _written(self) -> None:
        """The channel has written the first of what it had not: it answers in order."""
        self._unwritten -= 1
        self._unkept = deque((reply, before - 1) for reply, before in self._unkept)
        while self._unkept and not self._unkept[0][1]:
            self._keep(self._unkept.popleft()[0])

    def _keep(self, reply: Reply) -> None:
        """A tile is told that its block is kept."""
        if not self._kept and self._outlet.may_take():
            self._outlet.take(Part(reply, 0, 1))
        else:
            self._kept.append(reply)
            self._tell_waits = self._posts

    def _taken(self) -> None:
        self._asking = False
        self._ask()

    def _freed(self, after_cycles: int) -> None:
        """A packet has left: another may."""
        if self._kept:
            self._outlet.take(Part(self._kept.popleft(), 0, 1), after_cycles)
            if self._tell_waits:
                self._tell_waits = False
                self._done()
        elif self._refused is not None:
            payload, self._refused = self._refused, None
            self._answer(payload, after_cycles)
            self.socket.nb_transport_fw(payload, Phase.END_RESP, 0)
        if self._kept or self._refused is not None:
            self._outlet.may_take()
