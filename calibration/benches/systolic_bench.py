"""cocotb bench of the systolic array: matrix products in folds, checked bit for bit and timed.

The plan is ``{"rows", "cols", "chains": [[case, ...], ...]}`` with cases ``{"dataflow", "m", "k",
"n", "seed", "stall"}``; the outcome is ``{"cycles": [...], "simulated_cycles": n}``, one figure a
chain. The cases of a chain follow each other without waiting for results. A case is C[M,N] =
A[M,K] B[K,N] of random int8 operands; ``stall`` maps a stream (job, west, north, result) to the
probability per cycle that a word is held back, or for results not taken; without it, never. With
``ready_waits_for_valid`` a result is not taken before it has been offered for a cycle.

Cycles are counted from the first operand handshake to the last result handshake, both included.
"""

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

_CLOCK_NS = 2
# Far more than the longest silence of a working array, its latency included, under heavy stalls.
_HANG_CYCLES = 2000


@dataclass(frozen=True, slots=True)
class Fold:
    """What one job takes and gives: its words in order, and where its results belong."""

    length: int
    west: NDArray[np.int8]
    north: NDArray[np.int8]
    result_rows: slice
    result_cols: slice


def weight_stationary_folds(
    a: NDArray[np.int8], b: NDArray[np.int8], rows: int, cols: int
) -> Iterator[Fold]:
    """Folds over K and N; every fold sees all M rows of A and adds to one column block of C."""
    for n in range(0, b.shape[1], cols):
        for k in range(0, b.shape[0], rows):
            west = _padded(a[:, k : k + rows], len(a), rows)
            north = _padded(b[k : k + rows, n : n + cols], rows, cols)
            yield Fold(len(a), west, north, slice(0, len(a)), slice(n, n + cols))


def output_stationary_folds(
    a: NDArray[np.int8], b: NDArray[np.int8], rows: int, cols: int
) -> Iterator[Fold]:
    """Folds over M and N; every fold takes all of K and gives one block of C."""
    depth = a.shape[1]
    for m in range(0, a.shape[0], rows):
        for n in range(0, b.shape[1], cols):
            west = _padded(a[m : m + rows].T, depth, rows)
            north = _padded(b[:, n : n + cols], depth, cols)
            yield Fold(depth, west, north, slice(m, m + rows), slice(n, n + cols))


_FOLDS = {
    "weight-stationary": weight_stationary_folds,
    "output-stationary": output_stationary_folds,
}


def _padded(block: NDArray[np.int8], rows: int, cols: int) -> NDArray[np.int8]:
    full = np.zeros((rows, cols), np.int8)
    full[: block.shape[0], : block.shape[1]] = block
    return full


def _words(blocks: Sequence[NDArray[np.int8]]) -> list[int]:
    """One integer a row, element 0 in the low bits."""
    return [int.from_bytes(row.tobytes(), "little") for block in blocks for row in block]


@dataclass(frozen=True, slots=True)
class Product:
    """One case: its operands, its folds, and how many rows of results a fold gives."""

    name: str
    a: NDArray[np.int8]
    b: NDArray[np.int8]
    mode: int
    folds: list[Fold]
    fold_rows: int

    @classmethod
    def of_case(cls, case: dict[str, Any], rows: int, cols: int) -> "Product":
        """Draw the operands of a case and cut them into folds for an array."""
        generator = np.random.default_rng(case["seed"])
        a = generator.integers(-128, 128, (case["m"], case["k"]), np.int8)
        b = generator.integers(-128, 128, (case["k"], case["n"]), np.int8)
        folds = list(_FOLDS[case["dataflow"]](a, b, rows, cols))
        mode = int(case["dataflow"] == "output-stationary")
        return cls(str(case), a, b, mode, folds, rows if mode else case["m"])

    def check(self, block: NDArray[np.int32]) -> None:
        """Add up the folds' rows of results and compare with the product."""
        c = np.zeros((len(self.a), self.b.shape[1]), np.int32)
        for i, fold in enumerate(self.folds):
            view = c[fold.result_rows, fold.result_cols]
            rows = block[i * self.fold_rows : (i + 1) * self.fold_rows]
            view += rows[: view.shape[0], : view.shape[1]]
        expected = self.a.astype(np.int32) @ self.b.astype(np.int32)
        np.testing.assert_array_equal(c, expected, err_msg=self.name)


class Source:
    """Drives one valid/ready stream; a word once offered stays until it is taken."""

    def __init__(self, dut: Any, name: str, payloads: Sequence[str]) -> None:
        """Bind to the stream's ports; ``payloads`` names the ports of a word's parts in order."""
        self._valid = getattr(dut, f"{name}_valid_i")
        self._ready = getattr(dut, f"{name}_ready_o")
        self._payloads = [getattr(dut, payload) for payload in payloads]
        self._words: Iterator[tuple[int, ...]] = iter(())
        self._waiting: tuple[int, ...] | None = None
        self._offered = False

    def feed(self, words: Sequence[tuple[int, ...]]) -> None:
        """Offer these words from the next cycle on."""
        self._words = iter(words)
        self._waiting = next(self._words, None)

    def sample(self) -> bool:
        """Return whether the offered word is taken at this clock edge."""
        if not self._offered or not self._ready.value:
            return False
        self._offered = False
        self._waiting = next(self._words, None)
        if self._waiting is None:
            self._valid.value = 0
        return True

    def drive(self, hold_back: bool) -> None:
        """Offer the next word, unless one is offered already or it is held back."""
        if self._offered or self._waiting is None:
            return
        self._valid.value = not hold_back
        if not hold_back:
            for payload, value in zip(self._payloads, self._waiting, strict=True):
                payload.value = value
            self._offered = True


class ResultMonitor:
    """Takes rows of results and sees to it that an untaken row does not change."""

    def __init__(self, dut: Any, cols: int) -> None:
        """Bind to the result stream of an array of ``cols`` columns, and be ready."""
        self._dut = dut
        self._bytes = 4 * cols
        self._ready = True
        self._untaken: tuple[int, bool] | None = None
        self.waits_for_valid = False
        self.rows: list[bytes] = []
        self.fold_ends: list[int] = []
        dut.result_ready_i.value = 1

    def sample(self) -> bool:
        """Return whether a row is taken at this clock edge, and keep it."""
        if not self._dut.result_valid_o.value:
            assert self._untaken is None, "result_valid_o fell before result_ready_i rose"
            return False
        row = self._dut.result_data_o.value.to_unsigned(), bool(self._dut.result_last_o.value)
        assert self._untaken in (None, row), "result changed before it was taken"
        self._untaken = None if self._ready else row
        if self._ready:
            self.rows.append(row[0].to_bytes(self._bytes, "little"))
            if row[1]:
                self.fold_ends.append(len(self.rows))
        return self._ready

    def drive(self, hold_back: bool) -> None:
        """Be ready in the next cycle, or not."""
        ready = not hold_back and (self._untaken is not None or not self.waits_for_valid)
        if self._ready != ready:
            self._ready = ready
            self._dut.result_ready_i.value = self._ready

    def take_all(self, cols: int) -> tuple[NDArray[np.int32], list[int]]:
        """Return all rows so far, [rows, cols], with the ends of folds, and forget them."""
        block = np.frombuffer(b"".join(self.rows), np.int32).reshape(-1, cols)
        ends, self.rows, self.fold_ends = self.fold_ends, [], []
        return block, ends


class Bench:
    """Runs chains of cases one after the other on one array."""

    def __init__(self, dut: Any, rows: int, cols: int) -> None:
        """Bind to an array, which must be of ``rows`` x ``cols`` int8 elements."""
        assert len(dut.west_data_i) == 8 * rows, "the plan's rows are not the array's"
        assert len(dut.result_data_o) == 32 * cols, "the plan's columns are not the array's"
        self._dut = dut
        self._rows, self._cols = rows, cols
        self._job = Source(dut, "job", ["job_output_stationary_i", "job_length_i"])
        self._west = Source(dut, "west", ["west_data_i"])
        self._north = Source(dut, "north", ["north_data_i"])
        self._results = ResultMonitor(dut, cols)
        self._edge = RisingEdge(dut.clk_i)
        self.simulated_cycles = 0

    async def reset(self) -> None:
        """Bring the array to its initial state."""
        for name in ("rst_ni", "job_valid_i", "west_valid_i", "north_valid_i"):
            getattr(self._dut, name).value = 0
        for _ in range(3):
            await self._edge
        self._dut.rst_ni.value = 1
        await self._edge

    async def run(self, cases: Sequence[dict[str, Any]]) -> int:
        """Run a chain of cases, compare the data with NumPy's, and return the cycles of the chain.

        The stalls are those of the chain's first case.
        """
        products = [Product.of_case(case, self._rows, self._cols) for case in cases]
        folds = [(product.mode, fold) for product in products for fold in product.folds]
        self._job.feed([(mode, fold.length) for mode, fold in folds])
        self._west.feed([(word,) for word in _words([fold.west for _, fold in folds])])
        self._north.feed([(word,) for word in _words([fold.north for _, fold in folds])])
        self._results.waits_for_valid = cases[0].get("ready_waits_for_valid", False)
        fold_rows = [product.fold_rows for product in products for _ in product.folds]
        cycles = await self._stream(sum(fold_rows), cases[0]["stall"], cases[0]["seed"])
        block, ends = self._results.take_all(self._cols)
        assert ends == list(accumulate(fold_rows)), f"result_last_o at {ends}: {cases}"
        for product in products:
            product.check(block[: product.fold_rows * len(product.folds)])
            block = block[product.fold_rows * len(product.folds) :]
        return cycles

    async def _stream(self, result_rows: int, stall: dict[str, float], seed: int) -> int:
        """Move words until the last row of results is taken."""
        draw = random.Random(seed).random
        streams: dict[str, Source | ResultMonitor] = {
            "job": self._job,
            "west": self._west,
            "north": self._north,
            "result": self._results,
        }
        held = [(stream, stall.get(name, 0.0)) for name, stream in streams.items()]
        first: int | None = None
        taken = 0
        last_move = self.simulated_cycles
        while taken < result_rows:
            for stream, probability in held:
                stream.drive(probability > 0 and draw() < probability)
            await self._edge
            self.simulated_cycles += 1
            moved = self._job.sample()
            operand = self._west.sample() | self._north.sample()
            result = self._results.sample()
            taken += result
            if operand and first is None:
                first = self.simulated_cycles
            if moved | operand | result:
                last_move = self.simulated_cycles
            quiet = self.simulated_cycles - last_move
            assert quiet < _HANG_CYCLES, f"hang: {taken} of {result_rows} rows came"
        assert first is not None, "results without operands"
        return self.simulated_cycles - first + 1


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def run_plan(dut: Any) -> None:
    """Run the chains of ``$WAFERTLM_PLAN`` and write their cycles to ``$WAFERTLM_RESULT``."""
    plan = json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text())
    Clock(dut.clk_i, _CLOCK_NS, unit="ns").start()
    bench = Bench(dut, plan["rows"], plan["cols"])
    await bench.reset()
    cycles = [await bench.run(chain) for chain in plan["chains"]]
    outcome = {"cycles": cycles, "simulated_cycles": bench.simulated_cycles}
    Path(os.environ["WAFERTLM_RESULT"]).write_text(json.dumps(outcome))
