"""The Verilated systolic array as a `Compute`: a product takes the cycles of its Verilog."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cosim.block import RtlBlock, block_model
from cosim.errors import SimulationError
from cosim.verilog import ARRAY_SOURCES
from tlm.compute.base import ceil_div, check_shape
from tlm.compute.systolic import Dataflow

_OPERAND_BITS, _ACC_BITS = 8, 32
_PATIENCE_CYCLES = 1000  # without a handshake

Matrix = NDArray[np.int64]


class RtlArray:
    """An array of ``rows`` x ``cols`` in this process, fed without a pause.

    Every product is computed, on operands that fill their range, and held against NumPy's. Equal
    shapes take equal cycles and are run once.

    Args:
        rows: Rows of the array.
        cols: Columns of the array.
        dataflow: How a product is cut into folds.

    Raises:
        SimulationError: if the Verilog cannot be built.
    """

    def __init__(self, rows: int, cols: int, dataflow: Dataflow) -> None:
        self._rows, self._cols = rows, cols
        self._stationary_output = dataflow == "output-stationary"
        parameters = {
            "Rows": rows, "Cols": cols, "OperandWidth": _OPERAND_BITS, "AccWidth": _ACC_BITS
        }  # fmt: skip
        self._block = RtlBlock(block_model(ARRAY_SOURCES, parameters))
        self._known: dict[tuple[int, int, int], int] = {}

    @property
    def macs_per_cycle(self) -> float:
        """Multiply-accumulates a cycle with every element at work."""
        return float(self._rows * self._cols)

    def gemm_cycles(self, m: int, k: int, n: int) -> int:
        """Cycles from the first operand handshake to the last result handshake, inclusive.

        Raises:
            InputError: if a size is below 1.
            SimulationError: if a result is wrong, or the array stands still.
        """
        check_shape(m, k, n)
        if (m, k, n) not in self._known:
            self._known[m, k, n] = self._run(m, k, n)
        return self._known[m, k, n]

    def _run(self, m: int, k: int, n: int) -> int:
        rng = np.random.default_rng([m, k, n])
        a = rng.integers(-128, 128, (m, k))
        b = rng.integers(-128, 128, (k, n))
        folds = list(self._folds(a, b))
        wests = [word for west, _, _ in folds for word in west]
        norths = [word for _, north, _ in folds for word in north]
        expected = [row for _, _, results in folds for row in results]
        cycles = self._stream([len(west) for west, _, _ in folds], wests, norths, expected)
        self._block.settle()  # a word that nobody asked for would be offered now
        if self._block.get("result_valid_o"):
            raise SimulationError(f"systolic_array: M={m} K={k} N={n}: more results than rows")
        return cycles

    def _folds(self, a: Matrix, b: Matrix) -> Iterator[tuple[list[int], list[int], list[int]]]:
        """West words, north words and the rows of results of each fold."""
        inner = a.shape[0] if self._stationary_output else a.shape[1]
        for column in range(ceil_div(b.shape[1], self._cols)):
            columns = slice(column * self._cols, (column + 1) * self._cols)
            for place in range(ceil_div(inner, self._rows)):
                held = slice(place * self._rows, (place + 1) * self._rows)
                if self._stationary_output:
                    left, right = _padded(a[held], self._rows, 0), b[:, columns]
                    west = left.T
                else:
                    left, right = _padded(a[:, held], self._rows, 1), b[held, columns]
                    right = _padded(right, self._rows, 0)
                    west = left
                right = _padded(right, self._cols, 1)
                yield (
                    [_word(row, _OPERAND_BITS) for row in west],
                    [_word(row, _OPERAND_BITS) for row in right],
                    [_word(row, _ACC_BITS) for row in left @ right],
                )

    def _stream(
        self, lengths: list[int], wests: list[int], norths: list[int], expected: list[int]
    ) -> int:
        """Offer everything as early as the array takes it; cycles from first to last handshake."""
        block, cycle, first, quiet = self._block, 0, -1, 0
        jobs, west, north, came = 0, 0, 0, 0
        block.put("job_output_stationary_i", self._stationary_output)
        block.put("result_ready_i", 1)
        while came < len(expected):
            for port, data, place, words in (
                ("job", "length", jobs, lengths),
                ("west", "data", west, wests),
                ("north", "data", north, norths),
            ):
                block.put(f"{port}_valid_i", place < len(words))
                if place < len(words):
                    block.put(f"{port}_{data}_i", words[place])
            block.settle()
            moved = [
                place < len(words) and block.get(f"{port}_ready_o")
                for port, place, words in (
                    ("job", jobs, lengths), ("west", west, wests), ("north", north, norths)
                )
            ]  # fmt: skip
            if block.get("result_valid_o"):
                found = block.get("result_data_o")
                if found != expected[came]:
                    raise SimulationError(
                        f"systolic_array: row {came} of the results is {found:#x}, "
                        f"expected {expected[came]:#x}"
                    )
                came, quiet = came + 1, 0
            jobs, west, north = jobs + moved[0], west + moved[1], north + moved[2]
            if first < 0 and (moved[1] or moved[2]):
                first = cycle
            quiet = 0 if any(moved) else quiet + 1
            if quiet > _PATIENCE_CYCLES:
                raise SimulationError(f"systolic_array: stands still; {came} rows of results came")
            block.clock()
            cycle += 1
        return cycle - first


def _padded(matrix: Matrix, size: int, axis: int) -> Matrix:
    """A matrix with zeros behind it, so that it has ``size`` along an axis."""
    widths = [(0, 0), (0, 0)]
    widths[axis] = (0, size - matrix.shape[axis])
    return np.pad(matrix, widths)


def _word(elements: Matrix, bits: int) -> int:
    """Elements in two's complement, element 0 in the low bits."""
    mask = (1 << bits) - 1
    return sum((int(element) & mask) << bits * place for place, element in enumerate(elements))
