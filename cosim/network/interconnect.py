"""The Verilated mesh as an `Interconnect`: packets go through its Verilog, data included."""

import ctypes
from pathlib import Path

import numpy as np

from cosim.errors import HangError
from cosim.network.model import LoopModel
from cosim.verilated.handle import INT, POINTER, U32, U64, Handle, check_wave, declare
from cosim.verilated.pyverilator_fit import PyVerilator
from tlm.errors import InputError
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.packets import Meetings, Packets, ReductionGoal, TileSet

#: Cycles without a handshake after which a mesh that has delivered everything is at rest: the last
#: places that became free are known everywhere.
_REST_CYCLES = 64
#: The same while packets are on their way: nothing will move by itself any more.
_PATIENCE_CYCLES = 1000
_EVENTS, _STILL = 1, 2  # outcomes of a run (loop.cpp)
_LATEST = 2**62
_MOST_PACKETS = 2**32
_SHOWN_DUE = 5
_KINDS = (EventKind.INJECTED, EventKind.EJECTED)
_WORDS = ctypes.POINTER(U32)


class _State(ctypes.Structure):
    """`State` of loop.cpp."""

    _fields_ = [
        ("cycle", U64),
        ("clocked", U64),
        ("quiet", U64),
        ("event_count", U32),
        ("events", _WORDS),
        ("failure", ctypes.c_char_p),
    ]


class RtlInterconnect(Handle):
    """A Verilated mesh, out of reset, that runs in this process (`Interconnect`).

    Every flit that comes out is judged: at the right node, once, in order, its data what went in,
    of a reduction what the operands amount to. While nothing is on its way the mesh is not clocked:
    a mesh at rest is taken to stay as it is.

    Args:
        model: The mesh; built if it is not yet.
        loopback: A sender among the destinations of its multicast gets a copy.
        waves: A VCD file that is written as the mesh runs.

    Raises:
        InputError: if the waves cannot be written.
        SimulationError: if the model cannot be built, or stops in its reset.
    """

    _driver = "loop"
    _State = _State
    _functions = {
        "new": (POINTER, [POINTER, POINTER, U32]),
        "shape": (U32, [POINTER, U32, U32, U32, _WORDS, U32, _WORDS]),
        "push": (None, [POINTER, U32, U32, U32, U64]),
        "run": (INT, [POINTER, U64, U64]),
        "skip": (INT, [POINTER, U64, U64]),
        "begin": (ctypes.c_int64, [POINTER, U64, POINTER]),
        "end": (INT, [POINTER, U64]),
        "due": (U32, [POINTER, U32, _WORDS]),
    }

    def __init__(
        self, model: LoopModel, *, loopback: bool = True, waves: Path | None = None
    ) -> None:
        self._model = model
        self._layout = model.layout()
        self._loopback = loopback
        simulator = PyVerilator(str(model.build()))
        self._simulator = simulator  # keeps the model alive
        self._wave = None if waves is None else _recorded(simulator, waves)
        self._shapes: dict[tuple[int, TileSet | ReductionGoal, int], tuple[int, int]] = {}
        self._meetings = Meetings()
        self._operand_flits: dict[int, int] = {}
        self._count = 0
        self._outstanding = 0  # events to come
        self._operands_lacking = 0
        self._still = False
        reset_cycles = model.spec.reset.cycles
        super().__init__(model.name, simulator.lib, simulator.model, self._wave, reset_cycles)

    def close(self) -> None:
        """Let the model go, and end its wave."""
        open_wave = self._wave if self._pointer is not None else None
        super().close()
        if open_wave is not None:
            self._library.stop_vcd_trace(open_wave)

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
        found = self._library.loop_run(loop, min(until_cycle, _LATEST), _PATIENCE_CYCLES)
        if found == _EVENTS:
            return self._events()
        self._hold_no_failure()
        if found == _STILL:
            self._stand_still()
        return []

    @property
    def _rests(self) -> bool:
        """Nothing will move by itself in the mesh."""
        rest_cycles = _PATIENCE_CYCLES if self._outstanding else _REST_CYCLES
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
        words = self._state.events[: 3 * self._state.event_count]
        self._outstanding -= self._state.event_count
        cycle = self._state.cycle - 1
        seen = sorted(zip(words[0::3], words[1::3], words[2::3], strict=True))
        return [Event(_KINDS[ejected], packet, node, cycle) for ejected, packet, node in seen]

    def _shape(self, source: int, goal: TileSet | ReductionGoal, flits: int) -> tuple[int, int]:
        """The loop's number for packets like this one, and how often each is delivered."""
        key = (source, goal, flits)
        if key not in self._shapes:
            self._check_limits(goal, flits)
            flit = self._layout.encode(Packets.of([(0, source, goal, flits)]))[0]
            nodes = self._destinations(source, goal)
            number = self._library.loop_shape(
                self._pointer,
                source,
                flits,
                1 + goal.maximum if isinstance(goal, ReductionGoal) else 0,
                _words(flit.view(np.uint32).tolist()),
                len(nodes),
                _words(nodes),
            )
            self._shapes[key] = (number, len(nodes))
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

    def _destinations(self, source: int, goal: TileSet | ReductionGoal) -> list[int]:
        if isinstance(goal, ReductionGoal):
            return [goal.root]
        nodes = goal.nodes(self._model.cols)
        own = len(nodes) > 1 and not self._loopback
        return [node for node in nodes if not (own and node == source)]

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
        since = self._state.cycle - _PATIENCE_CYCLES
        return HangError(
            f"{self._name} stands still since cycle {since}; {count} deliveries are due: "
            f"packet {', '.join(shown)}{more}"
        )


def _recorded(simulator: PyVerilator, path: Path) -> int:
    """Begin a wave; the simulator's own method would also write down cycles by itself."""
    check_wave(path)
    start = declare(simulator.lib, "start_vcd_trace", (POINTER, [POINTER, ctypes.c_char_p]))
    declare(simulator.lib, "stop_vcd_trace", (INT, [POINTER]))
    wave: int = start(simulator.model, str(path).encode())
    return wave


def _words(values: list[int]) -> "ctypes.Array[ctypes.c_uint32]":
    return (ctypes.c_uint32 * len(values))(*values)
