"""A block of Verilog that runs in this process: its ports are set and read cycle by cycle."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from calibration.harness.simulator import SimulationError
from calibration.loop.library import Library, still_open
from calibration.loop.pyverilator_fit import PyVerilator

_RESET_CYCLES = 4


@dataclass(frozen=True, slots=True)
class BlockModel:
    """A module with the ports ``clk_i`` and ``rst_ni`` (active low).

    Attributes:
        sources: Its Verilog, in order of dependence; the last one is its own.
        parameters: Values of its parameters.
    """

    sources: Sequence[Path]
    parameters: Mapping[str, int]

    @property
    def name(self) -> str:
        """The module."""
        return self.sources[-1].stem

    def build(self) -> Path:
        """The library of the model, from the cache if it is there.

        Raises:
            SimulationError: carrying the end of the tools' output.
        """
        flags = [f"-G{name}={value}" for name, value in sorted(self.parameters.items())]
        library = Library(
            name=self.name,
            top=self.name,
            text=self.sources[-1].read_text(),
            driver=Path(__file__).with_name("block.cpp"),
            defines={"BLOCK_CLASS": f"V{self.name}"},
            sources=self.sources[:-1],
            flags=flags,
        )
        return library.build()


class RtlBlock:
    """A block out of reset. A cycle: set inputs, `settle`, read outputs, `clock`.

    Args:
        model: The block; built if it is not yet.

    Raises:
        SimulationError: if it cannot be built, or stops in its reset.
    """

    def __init__(self, model: BlockModel) -> None:
        self._name = model.name
        simulator = PyVerilator(str(model.build()))
        self._simulator = simulator  # keeps the model alive
        self._library = _declared(simulator.lib)
        widths = dict([*simulator.inputs, *simulator.outputs])
        self._setters = {
            port: _setter(simulator.lib, simulator.model, port, width)
            for port, width in simulator.inputs
        }
        self._getters = {
            port: _getter(simulator.lib, simulator.model, port, width)
            for port, width in widths.items()
        }
        self._block: int | None = self._library.block_new(simulator.model, _RESET_CYCLES)
        self._hold_no_failure()

    def __enter__(self) -> Self:
        """The block itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let the model go."""
        self.close()

    def close(self) -> None:
        """Let the model go."""
        if self._block is not None:
            self._library.block_delete(self._block)
            self._block = None

    def put(self, port: str, value: int) -> None:
        """Set an input; of a negative number its low bits."""
        self._setters[port](value)

    def get(self, port: str) -> int:
        """An output as it is since `settle`."""
        value: int = self._getters[port]()
        return value

    def settle(self) -> None:
        """Let the outputs follow the inputs.

        Raises:
            SimulationError: if the model is closed.
        """
        self._library.block_settle(still_open(self._name, self._block))

    def clock(self, more_cycles: int = 0) -> None:
        """End the cycle, and go through others in which no input changes.

        Raises:
            SimulationError: if the Verilog has stopped, saying where and what it printed; if the
                model is closed.
        """
        self._library.block_clock(still_open(self._name, self._block), more_cycles)
        self._hold_no_failure()

    def _hold_no_failure(self) -> None:
        found = self._library.block_failure(self._block)
        if found is not None:
            raise SimulationError(f"{self._name}: {found.decode(errors='replace').strip()}")


def _setter(library: Any, model: Any, port: str, width: int) -> Any:
    """A function that sets an input; it is looked up once, which makes it five times as fast."""
    function = getattr(library, f"set_{port}")
    if width <= 64:
        word = ctypes.c_uint64 if width > 32 else ctypes.c_uint32
        function.argtypes = [ctypes.c_void_p, word]
        mask = (1 << width) - 1
        return lambda value: function(model, value & mask)
    function.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]

    def put(value: int) -> None:
        value &= (1 << width) - 1
        for number in range(-(-width // 32)):
            function(model, number, value >> 32 * number & 0xFFFFFFFF)

    return put


def _getter(library: Any, model: Any, port: str, width: int) -> Any:
    """A function that reads a port."""
    function = getattr(library, f"get_{port}")
    if width <= 64:
        function.restype = ctypes.c_uint64 if width > 32 else ctypes.c_uint32
        function.argtypes = [ctypes.c_void_p]
        return lambda: function(model)
    function.restype = ctypes.c_uint32
    function.argtypes = [ctypes.c_void_p, ctypes.c_int]
    words = -(-width // 32)
    return lambda: sum(function(model, number) << 32 * number for number in range(words))


def _declared(library: Any) -> Any:
    """The functions of block.cpp with their types."""
    pointer = ctypes.c_void_p
    signatures = {
        "block_new": (pointer, [pointer, ctypes.c_uint32]),
        "block_settle": (None, [pointer]),
        "block_clock": (None, [pointer, ctypes.c_uint64]),
        "block_failure": (ctypes.c_char_p, [pointer]),
        "block_delete": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
