"""A block of Verilog that runs in this process: its ports are set and read cycle by cycle."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cosim.verilated.handle import INT, POINTER, U32, U64, Handle, declare
from cosim.verilated.library import Library
from cosim.verilated.pyverilator_fit import PyVerilator

_RESET_CYCLES = 4


def block_model(sources: Sequence[Path], parameters: Mapping[str, int]) -> Library:
    """A module with the ports ``clk_i`` and ``rst_ni`` (active low), to be run as `RtlBlock`.

    Args:
        sources: Its Verilog, in order of dependence; the last one is its own.
        parameters: Values of its parameters.
    """
    *others, own = sources
    return Library(
        name=own.stem,
        top=own.stem,
        text=own.read_text(),
        driver=Path(__file__).with_name("block.cpp"),
        defines={"BLOCK_CLASS": f"V{own.stem}"},
        sources=others,
        flags=[f"-G{name}={value}" for name, value in sorted(parameters.items())],
    )


class RtlBlock(Handle):
    """A block out of reset. A cycle: set inputs, `settle`, read outputs, `clock`.

    Args:
        model: The block; built if it is not yet.

    Raises:
        SimulationError: if it cannot be built, or stops in its reset.
    """

    _driver = "block"
    _functions = {
        "new": (POINTER, [POINTER, U32]),
        "settle": (None, [POINTER]),
        "clock": (None, [POINTER, U64]),
    }

    def __init__(self, model: Library) -> None:
        simulator = PyVerilator(str(model.build()))
        self._simulator = simulator  # keeps the model alive
        block, library = simulator.model, simulator.lib
        inputs = dict(simulator.inputs)
        self._setters = {
            port: _setter(library, block, port, width) for port, width in inputs.items()
        }
        self._getters = {
            port: _getter(library, block, port, width)
            for port, width in (inputs | dict(simulator.outputs)).items()
        }
        super().__init__(model.name, library, block, _RESET_CYCLES)

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
        self._library.block_settle(self._open)

    def clock(self, more_cycles: int = 0) -> None:
        """End the cycle, and go through others in which no input changes.

        Raises:
            SimulationError: if the Verilog has stopped, saying where and what it printed; if the
                model is closed.
        """
        self._library.block_clock(self._open, more_cycles)
        self._hold_no_failure()


def _setter(library: Any, model: Any, port: str, width: int) -> Any:
    """A function that sets an input; it is looked up once, which makes it five times as fast."""
    mask = (1 << width) - 1
    if width <= 64:
        short = declare(library, f"set_{port}", (INT, [POINTER, U64 if width > 32 else U32]))
        return lambda value: short(model, value & mask)
    wide = declare(library, f"set_{port}", (INT, [POINTER, INT, U64]))

    def put(value: int) -> None:
        value &= mask
        for number in range(-(-width // 32)):
            wide(model, number, value >> 32 * number & 0xFFFFFFFF)

    return put


def _getter(library: Any, model: Any, port: str, width: int) -> Any:
    """A function that reads a port."""
    if width <= 64:
        short = declare(library, f"get_{port}", (U64 if width > 32 else U32, [POINTER]))
        return lambda: short(model)
    wide, words = declare(library, f"get_{port}", (U32, [POINTER, INT])), -(-width // 32)
    return lambda: sum(wide(model, number) << 32 * number for number in range(words))
