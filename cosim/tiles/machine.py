"""A Verilated mesh of tiles in this process: load it, run it, see what it did."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.errors import HangError
from cosim.tiles.descriptors import TOKENS, Words
from cosim.tiles.fit import check_fits
from cosim.tiles.image import TileImage
from cosim.tiles.model import TileModel
from cosim.verilated.handle import INT, POINTER, U32, U64, Handle, Signature, check_wave, declare
from tlm.errors import InputError
from tlm.program import Engine

_SCRATCHPAD = 0  # load_space_i of rtl/tile/tile.sv
_STILL, _TOO_LONG = 1, 2  # outcomes of a run (driver.cpp)
_ARRIVAL = 2 * len(Engine)
#: Cycles without any movement after which nothing moves any more.
_PATIENCE_CYCLES = 100
_MOST_UNITS = 249
_SHOWN = 5
#: `machine_memory`, which only drivers of meshes with memory channels have.
_MOVE_MEMORY: Signature = (None, [POINTER, U32, INT, U64, U64, POINTER])
_EVENT = np.dtype([("cycle", np.uint64), ("tile", np.uint32), ("kind", np.uint32)])


class _State(ctypes.Structure):
    """`State` of driver.cpp."""

    _fields_ = [
        ("cycle", U64),
        ("event_count", U64),
        ("work_cycles", U64),
        ("events", POINTER),
        ("failure", ctypes.c_char_p),
    ]


@dataclass(frozen=True, slots=True)
class Span:
    """A descriptor at work: from the cycle of its start to that of its end, both included."""

    tile: int
    engine: Engine
    number: int
    start_cycle: int
    end_cycle: int
    label: str

    @property
    def cycles(self) -> int:
        """How long its engine had it."""
        return self.end_cycle - self.start_cycle + 1


@dataclass(frozen=True, slots=True)
class TileRun:
    """What a run did.

    Attributes:
        cycles: Cycles up to the last end, or the last word that comes and is written, included;
            credits on their way do not count.
        spans: Every descriptor, by tile, engine and number.
        arrivals: Tile and cycle of the last word of every transfer that gives tokens where it
            arrives, in order of time.
    """

    cycles: int
    spans: tuple[Span, ...]
    arrivals: tuple[tuple[int, int], ...]

    def of(self, tile: int, engine: Engine) -> list[Span]:
        """What one engine did, in order."""
        return [span for span in self.spans if (span.tile, span.engine) == (tile, engine)]


class TileMachine(Handle):
    """A Verilated mesh of tiles; memories keep what they hold from run to run.

    Args:
        model: The mesh; built if it is not yet.
        waves: A VCD file that is written as it runs.

    Raises:
        InputError: if the waves cannot be written.
        SimulationError: if the model cannot be built, or stops by itself.
    """

    _driver = "machine"
    _State = _State
    _functions = {
        "new": (POINTER, [ctypes.c_char_p]),
        "reset": (INT, [POINTER]),
        "load": (INT, [POINTER, INT, U32, POINTER, POINTER, POINTER]),
        "run": (INT, [POINTER, U64, U64]),
    }

    def __init__(self, model: TileModel, *, waves: Path | None = None) -> None:
        if waves is not None:
            check_wave(waves)
        self.model = model
        path = None if waves is None else str(waves).encode()
        super().__init__(model.name, ctypes.CDLL(str(model.build())), path)

    def run(self, images: Mapping[int, TileImage], *, limit_cycles: int = 1_000_000) -> TileRun:
        """Reset, load the tiles named in ``images`` and run until no descriptor is left.

        Raises:
            InputError: for what a tile cannot hold.
            HangError: if descriptors are left and nothing moves, or they take longer than allowed.
            SimulationError: if the Verilog stops, or the model is closed.
        """
        machine = self._open
        self._check(images)
        self._library.machine_reset(machine)
        self._hold_no_failure()
        self._load(images)
        found = self._library.machine_run(machine, limit_cycles, _PATIENCE_CYCLES)
        self._hold_no_failure()
        starts, ends, arrivals = self._events()
        if found in (_STILL, _TOO_LONG):
            raise HangError(self._left(images, ends, found == _STILL))
        spans = tuple(
            Span(tile, engine, number, starts[tile, engine][number], ends[tile, engine][number],
                 descriptor.label)
            for tile, image in sorted(images.items())
            for engine, queue in sorted(image.queues.items())
            for number, descriptor in enumerate(queue)
        )  # fmt: skip
        return TileRun(self._state.work_cycles, spans, tuple(arrivals))

    def read(self, tile: int, address: int, count: int) -> Words:
        """``count`` words of a tile's scratchpad from ``address`` on.

        Raises:
            InputError: for words or a tile that are not there.
            SimulationError: if the Verilog stops, or the model is closed.
        """
        self._check_tile(tile)
        self._check_words(tile, address, count)
        counts = [count if t == tile else 0 for t in range(self.model.tiles)]
        addresses = np.arange(address, address + count, dtype=np.uint16)
        words = np.zeros(count, dtype=np.uint64)
        self._move(True, _SCRATCHPAD, counts, addresses, words)
        return words

    def write_memory(self, col: int, address: int, words: Words) -> None:
        """Write words of the memory channel below a column, from ``address`` (in words) on.

        Raises:
            InputError: for words or a channel that are not there.
            SimulationError: if the model is closed.
        """
        self._move_memory(col, False, address, np.ascontiguousarray(words, dtype=np.uint64))

    def read_memory(self, col: int, address: int, count: int) -> Words:
        """``count`` words of the memory channel below a column, as `write_memory` writes them.

        Raises:
            InputError: for words or a channel that are not there.
            SimulationError: if the model is closed.
        """
        words = np.zeros(count, dtype=np.uint64)
        self._move_memory(col, True, address, words)
        return words

    def _move_memory(self, col: int, read: bool, address: int, words: Words) -> None:
        model, end = self.model, address + len(words)
        channels = model.cols if model.memory else 0
        if not 0 <= col < channels:
            allowed = f"0 to {channels - 1}" if channels else "none without memory channels"
            raise InputError(f"channel: found {col}; allowed: {allowed}")
        if not 0 <= address <= end <= model.channel_words:
            raise InputError(
                f"channel {col}: found words {address} to {end - 1}; "
                f"allowed: 0 to {model.channel_words - 1}"
            )
        node = (model.rows - 1) * model.cols + col
        move = declare(self._library, "machine_memory", _MOVE_MEMORY)
        move(self._open, node, read, address, len(words), words.ctypes.data)

    def _check(self, images: Mapping[int, TileImage]) -> None:
        for tile, image in images.items():
            self._check_tile(tile)
            for engine, queue in image.queues.items():
                if len(queue) > self.model.queue_depth:
                    raise InputError(
                        f"tile {tile}: {engine.name.lower()} queue: found {len(queue)} "
                        f"descriptors; allowed: {self.model.queue_depth}"
                    )
                for number, descriptor in enumerate(queue):
                    where = f"tile {tile}: {engine.name.lower()} descriptor {number}"
                    check_fits(where, engine, descriptor, self.model)
            for token, units in image.tokens.items():
                if not (0 <= token < TOKENS and 0 <= units <= _MOST_UNITS):
                    raise InputError(
                        f"tile {tile}: found {units} units of token {token}; "
                        f"allowed: 0 to {_MOST_UNITS} of tokens 0 to {TOKENS - 1}"
                    )
            for address, words in image.memory.items():
                self._check_words(tile, address, len(words))

    def _check_tile(self, tile: int) -> None:
        if not 0 <= tile < self.model.tiles:
            raise InputError(f"tile: found {tile}; allowed: 0 to {self.model.tiles - 1}")

    def _check_words(self, tile: int, address: int, count: int) -> None:
        if not 0 <= address <= address + count <= self.model.memory_words:
            raise InputError(
                f"tile {tile}: found words {address} to {address + count - 1}; "
                f"allowed: 0 to {self.model.memory_words - 1}"
            )

    def _load(self, images: Mapping[int, TileImage]) -> None:
        tiles = [images.get(tile, TileImage()) for tile in range(self.model.tiles)]
        loads = [image.loads(self.model.queue_depth) for image in tiles]
        for space, lists in enumerate(zip(*loads, strict=True)):
            addresses = np.concatenate([addresses for addresses, _ in lists])
            words = np.concatenate([words for _, words in lists])
            self._move(False, space, [len(addresses) for addresses, _ in lists], addresses, words)

    def _move(
        self, read: bool, space: int, counts: Sequence[int], addresses: NDArray[np.uint16],
        words: Words,
    ) -> None:  # fmt: skip
        begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
        arrays = [array.ctypes.data for array in (begin, addresses, words)]
        self._library.machine_load(self._open, int(read), space, *arrays)
        self._hold_no_failure()

    def _events(
        self,
    ) -> tuple[
        dict[tuple[int, Engine], list[int]],
        dict[tuple[int, Engine], list[int]],
        list[tuple[int, int]],
    ]:
        """Cycles of starts and of ends by tile and engine, and the arrivals."""
        count = self._state.event_count
        raw = ctypes.string_at(self._state.events, count * _EVENT.itemsize) if count else b""
        starts: dict[tuple[int, Engine], list[int]] = {}
        ends: dict[tuple[int, Engine], list[int]] = {}
        arrivals = []
        for cycle, tile, kind in np.frombuffer(raw, dtype=_EVENT).tolist():
            if kind == _ARRIVAL:
                arrivals.append((tile, cycle))
            else:
                of_kind = ends if kind >= len(Engine) else starts
                of_kind.setdefault((tile, Engine(kind % len(Engine))), []).append(cycle)
        return starts, ends, arrivals

    def _left(
        self,
        images: Mapping[int, TileImage],
        ends: Mapping[tuple[int, Engine], list[int]],
        still: bool,
    ) -> str:
        """Which descriptors have not ended."""
        left = [
            f"tile {tile} {engine.name.lower()} {len(ended)} '{queue[len(ended)].label}'"
            for tile, image in sorted(images.items())
            for engine, queue in sorted(image.queues.items())
            if len(ended := ends.get((tile, engine), [])) < len(queue)
        ]
        since = self._state.cycle - _PATIENCE_CYCLES
        what = (
            f"stands still since cycle {since}" if still else f"runs at cycle {self._state.cycle}"
        )
        more = ", ..." if len(left) > _SHOWN else ""
        return (
            f"{self._name} {what}; {len(left)} queues have not ended, next: "
            f"{', '.join(left[:_SHOWN])}{more}"
        )
