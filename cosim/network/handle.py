"""A Verilated mesh in this process under loop.cpp: opened, told of packets, closed."""

import ctypes
from pathlib import Path

from cosim.network.model import LoopModel
from cosim.spec.flits import Words
from cosim.verilated.handle import INT, POINTER, U32, U64, Handle, check_wave, declare
from cosim.verilated.pyverilator_fit import PyVerilator
from tlm.interconnect.packets import PacketKind, ReductionGoal, TileSet

#: Cycles without a handshake after which nothing will move by itself any more.
PATIENCE_CYCLES = 1000
#: `Event` of loop.cpp: words of a row.
EVENT_WORDS = 5
STILL = 2  # an outcome of a run (loop.cpp)
_WORDS = ctypes.POINTER(U32)
#: As a wave begins, Verilator goes through all models that its library ever had: they stay.
_KEPT: list[PyVerilator] = []


class _State(ctypes.Structure):
    """`State` of loop.cpp."""

    _fields_ = [
        ("cycle", U64),
        ("clocked", U64),
        ("quiet", U64),
        ("still_since", U64),
        ("injected", U64),
        ("ejected", U64),
        ("event_count", U64),
        ("events", ctypes.POINTER(U64)),
        ("failure", ctypes.c_char_p),
    ]


class MeshHandle(Handle):
    """A Verilated mesh, out of reset, that runs in this process.

    Every flit that comes out is judged: at the right node, once, in order, its data what went in,
    of a reduction what the operands amount to.

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
        "shape": (U32, [POINTER, U32, U32, U32, U32, _WORDS, _WORDS, U32, _WORDS]),
        "push": (None, [POINTER, U32, U32, U32, U64]),
        "run": (INT, [POINTER, U64, U64]),
        "finish": (INT, [POINTER, U64, U64]),
        "skip": (INT, [POINTER, U64, U64]),
        "begin": (ctypes.c_int64, [POINTER, U64, POINTER]),
        "end": (INT, [POINTER, U64]),
        "sends_last": (INT, [POINTER, U32]),
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
        if model.waves:
            _KEPT.append(simulator)
        self._wave = None if waves is None else _recorded(simulator, waves)
        reset_cycles = model.spec.reset.cycles
        super().__init__(model.name, simulator.lib, simulator.model, self._wave, reset_cycles)

    def close(self) -> None:
        """Let the model go, and end its wave."""
        open_wave = self._wave if self._pointer is not None else None
        super().close()
        if open_wave is not None:
            self._library.stop_vcd_trace(open_wave)

    def _new_shape(
        self, source: int, goal: TileSet | ReductionGoal, flits: int, head: Words
    ) -> tuple[int, int]:
        """The loop's number for packets that look alike, and how often each is delivered.

        Args:
            source: The node that sends them.
            goal: Where they go.
            flits: How long they are.
            head: The first flit of one of them, shape (words,).
        """
        nodes = self._destinations(source, goal)
        number = self._library.loop_shape(
            self._open,
            source,
            flits,
            goal.kind if isinstance(goal, ReductionGoal) else PacketKind.UNICAST,
            len(goal.operands) if isinstance(goal, ReductionGoal) else 0,
            _words(head.view("<u4").tolist()),
            _words(self._layout.behind(head).view("<u4").tolist()),
            len(nodes),
            _words(nodes),
        )
        return number, len(nodes)

    def _destinations(self, source: int, goal: TileSet | ReductionGoal) -> list[int]:
        if isinstance(goal, ReductionGoal):
            return [goal.root]
        nodes = goal.nodes(self._model.cols)
        own = len(nodes) > 1 and not self._loopback
        return [node for node in nodes if not (own and node == source)]


def _recorded(simulator: PyVerilator, path: Path) -> int:
    """Begin a wave; the simulator's own method would also write down cycles by itself."""
    check_wave(path)
    start = declare(simulator.lib, "start_vcd_trace", (POINTER, [POINTER, ctypes.c_char_p]))
    declare(simulator.lib, "stop_vcd_trace", (INT, [POINTER]))
    wave: int = start(simulator.model, str(path).encode())
    return wave


def _words(values: list[int]) -> "ctypes.Array[ctypes.c_uint32]":
    return (ctypes.c_uint32 * len(values))(*values)
