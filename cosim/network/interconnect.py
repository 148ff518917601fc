"""The Verilated mesh as an `Interconnect`: packets go through its Verilog, data included."""

import ctypes
from array import array
from pathlib import Path

from cosim.errors import HangError
from cosim.network.handle import EVENT_WORDS, PATIENCE_CYCLES, STILL, MeshHandle
from cosim.network.model import LoopModel
from cosim.network.waiting import told_waiting
from tlm.errors import InputError
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.packets import Meetings, Packets, ReductionGoal, TileSet
from tlm.interconnect.zero_load import NocTiming

#: Cycles without a handshake after which a mesh that has delivered everything is at rest: the last
#: places that became free are known everywhere.
_REST_CYCLES = 64
_EVENTS = 1  # an outcome of a run (loop.cpp)
_LATEST = 2**62
_MOST_PACKETS = 2**32
_SHOWN_DUE = 5
_KINDS = (EventKind.INJECTED, EventKind.EJECTED)


class RtlInterconnect(MeshHandle):
    """A Verilated mesh that packets are told to as time goes on (`Interconnect`).

    While nothing is on its way the mesh is not clocked: a mesh at rest is taken to stay as it is.

    Args:
        model: The mesh; built if it is not yet.
        loopback: A sender among the destinations of its multicast gets a copy.
        waves: A VCD file that is written as the mesh runs.
        timing: What the routers were measured to be like: if the mesh stands still, their model
            tells which packets wait for each other.

    Raises:
        InputError: if the waves cannot be written.
        SimulationError: if the model cannot be built, or stops in its reset.
    """

    def __init__(
        self,
        model: LoopModel,
        *,
        loopback: bool = True,
        waves: Path | None = None,
        timing: NocTiming | None = None,
    ) -> None:
        super().__init__(model, loopback=loopback, waves=waves)
        self._timing = timing
        self._sent = array("q")  # of each packet its cycle and its shape
        self._shapes: dict[tuple[int, TileSet | ReductionGoal, int], tuple[int, int]] = {}
        self._meetings = Meetings()
        self._operand_flits: dict[int, int] = {}
        self._count = 0
        self._outstanding = 0  # events to come
        self._operands_lacking = 0
        self._still = False

    @property
    def idle(self) -> bool:
        """Nothing moves: no packet is on its way, or those that are wait for operands."""
        return self._outstanding == 0 or self._still

    @property
    def clocked_cycles(self) -> int:
        """Cycles that the Verilog has been clocked for; the others have been skipped."""
        return int(self._state.clocked)

    def inject(self, cycle: int, source: int, goal: TileSet | ReductionGoal, flits: int) -> int:
        """Queue a packet at a node's interface; returns its number (see `Interconnect`).

        Raises:
            InputError: for a packet that comes too late, that headers of the mesh cannot express,
                or that is not as long as the operands that it meets.
            SimulationError: if the mesh does something by itself, or the model is closed.
        """
        loop = self._open
        if not self._state.cycle <= cycle < _LATEST or self._count == _MOST_PACKETS:
            raise InputError(
                f"packet {self._count}: found cycle {cycle}; "
                f"allowed: {self._state.cycle} to {_LATEST - 1}"
            )
        shape, deliveries = self._shape(source, goal, flits)
        number = joint = self._count
        if isinstance(goal, ReductionGoal):
            joint = self._joint(number, source, goal, flits)
        if self._outstanding == 0:
            self._skip(cycle)
        self._library.loop_push(loop, shape, number, joint, cycle)
        self._outstanding += 1 + (deliveries if joint == number else 0)
        self._still = False
        self._sent.extend((cycle, shape))
        self._count += 1
        return number

    def advance(self, until_cycle: int) -> list[Event]:
        """Simulate up to the first cycle with an event (see `Interconnect`).

        Operands may wait for others that are not injected yet.

        Raises:
            HangError: if nothing moves though packets are on their way.
            SimulationError: if anything wrong comes out, the Verilog stops, or the model is closed.
        """
        loop = self._open
        if self.idle:
            return []
        found = self._library.loop_run(loop, min(until_cycle, _LATEST), PATIENCE_CYCLES)
        if found == _EVENTS:
            return self._events()
        self._hold_no_failure()
        if found == STILL:
            self._stand_still()
        return []

    @property
    def _rests(self) -> bool:
        """Nothing will move by itself in the mesh."""
        rest_cycles = PATIENCE_CYCLES if self._outstanding else _REST_CYCLES
        return bool(self._state.quiet >= rest_cycles)

    def _skip(self, cycle: int) -> None:
        """Let a mesh in which nothing moves come to rest; go on in a cycle."""
        self._library.loop_skip(self._open, cycle, _REST_CYCLES)
        self._hold_no_failure()

    def _stand_still(self) -> None:
        """Wait for operands; anything else would come by itself."""
        if self._operands_lacking == 0:
            raise self._hang()
        self._still = True

    def _events(self) -> list[Event]:
        """What happened in the last cycle: injections, then ejections by packet and node."""
        words, row = self._state.events[: EVENT_WORDS * self._state.event_count], EVENT_WORDS
        self._outstanding -= self._state.event_count
        cycle = self._state.cycle - 1
        seen = sorted(zip(words[0::row], words[1::row], words[2::row], strict=True))
        return [Event(_KINDS[ejected], packet, node, cycle) for ejected, packet, node in seen]

    def _shape(self, source: int, goal: TileSet | ReductionGoal, flits: int) -> tuple[int, int]:
        """The loop's number for packets like this one, and how often each is delivered."""
        key = (source, goal, flits)
        if key not in self._shapes:
            self._check_limits(goal, flits)
            head = self._layout.encode(Packets.of([(0, source, goal, flits)]))[0]
            self._shapes[key] = self._new_shape(source, goal, flits, head)
        return self._shapes[key]

    def _check_limits(self, goal: TileSet | ReductionGoal, flits: int) -> None:
        spec, limits = self._model.spec, self._model.spec.limits
        if isinstance(goal, ReductionGoal):
            name, limit = "reduction_flits", limits.reduction_flits
        elif len(goal) > 1:
            name, limit = "multicast_flits", limits.multicast_flits
        else:
            name, limit = "packet_flits", limits.packet_flits
        if limit is not None and flits > limit:
            raise InputError(
                f"{spec.file.name}: limits.{name}: found a packet of {flits} flits; "
                f"allowed: {limit}"
            )

    def _joint(self, number: int, source: int, goal: ReductionGoal, flits: int) -> int:
        """The first of the operands that meet this one."""
        joint = self._meetings.joint(number, source, goal)
        expected = self._operand_flits.setdefault(joint, flits)
        if flits != expected:
            raise InputError(
                f"packet {number}: found {flits} flits; allowed: {expected}, as those of the "
                f"reduction's first operand, packet {joint}"
            )
        self._operands_lacking += len(goal.operands) - 1 if joint == number else -1
        return joint

    def _hang(self) -> HangError:
        """What a mesh that stands still owes."""
        pairs = (ctypes.c_uint32 * (2 * _SHOWN_DUE))()
        count = self._library.loop_due(self._pointer, _SHOWN_DUE, pairs)
        shown = [
            f"{pairs[2 * n]} at node {pairs[2 * n + 1]}" for n in range(min(count, _SHOWN_DUE))
        ]
        more = ", ..." if count > _SHOWN_DUE else ""
        since = self._state.cycle - PATIENCE_CYCLES
        return HangError(
            f"{self._name} stands still since cycle {since}; {count} deliveries are due: "
            f"packet {', '.join(shown)}{more}{self._told_waiting()}"
        )

    def _told_waiting(self) -> str:
        """What the model says of all packets up to now."""
        if self._timing is None:
            return ""
        keys = {number: key for key, (number, _) in self._shapes.items()}
        sent = zip(self._sent[0::2], self._sent[1::2], strict=True)
        packets = Packets.of([(cycle, *keys[shape]) for cycle, shape in sent])
        model = self._model
        return f"; {told_waiting(model.rows, model.cols, self._timing, packets)}"
