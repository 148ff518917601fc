"""cocotb bench of the vector unit: jobs of all operations, checked bit for bit and timed.

The plan is ``{"lanes", "operand_width", "chains": [[job, ...], ...]}`` with jobs ``{"operation",
"words", "rows", "multiplier", "shift", "seed"}``; the stalls of a chain stand in its first job, as
in `systolic_bench`, for the streams job, a, b and result. The outcome is ``{"cycles": [...],
"results": [...]}``, a chain's figure each: cycles from its first operand handshake to its last
result handshake, both included, and its words of results.

The jobs of a chain follow each other without waiting for results. Every word of results must leave
three cycles behind the operands that complete it, and as many more as a result stood untaken in
between.
"""

import json
import os
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from calibration.benches.systolic_bench import ResultMonitor, Source

Int64s = NDArray[np.int64]

_CLOCK_NS = 2
_LATENCY_CYCLES = 3
# Far more than the longest silence of a working unit under heavy stalls.
_HANG_CYCLES = 2000
#: Operations by name: their codes, as in rtl/tile/vector_unit.sv.
OPERATIONS = {
    "add": 0, "maximum": 1, "scale": 2, "quantize": 3, "exp": 4, "multiply": 5,
    "row sum": 6, "row maximum": 7,
}  # fmt: skip
_TWO_OPERANDS = ("add", "maximum", "multiply")
_EDGES = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1])


def exp2(exponents: Int64s) -> Int64s:
    """2^(exponent/256) in steps of 2^-16: the fraction's power to 15 places, halved, cut off."""
    exponents = np.minimum(exponents, 0)
    powers = np.floor(2.0 ** (15 + exponents % 256 / 256) + 0.5).astype(np.int64)
    return 2 * powers >> np.minimum(-(exponents // 256), 40)


def computed(job: dict[str, Any], a: Int64s, b: Int64s, operand_width: int) -> Int64s:
    """Results of a job over elements of shape (rows, elements of a row), before wrapping."""
    results: Int64s
    match job["operation"]:
        case "add":
            results = a + b
        case "maximum":
            results = np.maximum(a, b)
        case "scale" | "quantize" as operation:
            top = 2 ** ((32 if operation == "scale" else operand_width) - 1)
            results = np.clip(a * job["multiplier"] >> job["shift"], -top, top - 1)
        case "multiply":
            results = np.clip(a * b.astype(np.int16) >> job["shift"], -(2**31), 2**31 - 1)
        case "exp":
            results = exp2(a)
        case "row sum":
            results = a.sum(axis=1, keepdims=True)
        case "row maximum":
            results = a.max(axis=1, keepdims=True)
        case other:
            raise ValueError(f"no operation '{other}'")
    return results


@dataclass(frozen=True, slots=True)
class Streams:
    """Words that a job takes and gives.

    Attributes:
        a: Words of A.
        b: Words of B; none for an operation of one operand.
        results: Elements of the results, shape (words of results, lanes).
        complete: Of each word of A, whether a word of results is complete with it.
    """

    a: list[int]
    b: list[int]
    results: NDArray[np.int32]
    complete: list[bool]

    @classmethod
    def of_job(cls, job: dict[str, Any], lanes: int, operand_width: int) -> "Streams":
        """Draw a job's operands and compute its results."""
        generator = np.random.default_rng(job["seed"])
        words = job["rows"] * job["words"]
        a, b = (
            _elements(generator, job["operation"], (job["rows"], job["words"] * lanes))
            for _ in range(2)
        )
        results = computed(job, a, b, operand_width).astype(np.int32)
        by_row = job["operation"].startswith("row")
        return cls(
            a=_words(a, lanes),
            b=_words(b, lanes) if job["operation"] in _TWO_OPERANDS else [],
            results=np.repeat(results, lanes, axis=1) if by_row else results.reshape(-1, lanes),
            complete=[(word + 1) % job["words"] == 0 or not by_row for word in range(words)],
        )


def _elements(generator: np.random.Generator, operation: str, shape: tuple[int, int]) -> Int64s:
    """Random elements of all magnitudes, edges among them; for exp mostly such as matter."""
    bits = generator.integers(1, 33, shape)
    elements = generator.integers(-(2**31), 2**31, shape) >> (32 - bits)
    if operation == "exp":
        elements = np.where(generator.random(shape) < 0.8, -(np.abs(elements) % 5000), elements)
    return np.where(generator.random(shape) < 0.1, generator.choice(_EDGES, shape), elements)


def _words(elements: Int64s, lanes: int) -> list[int]:
    """One integer a word, element 0 in the low bits."""
    words = elements.astype("<i4").reshape(-1, lanes)
    return [int.from_bytes(word.tobytes(), "little") for word in words]


class Bench:
    """Runs chains of jobs one after the other on one unit."""

    def __init__(self, dut: Any, lanes: int, operand_width: int) -> None:
        """Bind to a unit, which must be of so many lanes."""
        assert len(dut.a_data_i) == 32 * lanes, "the plan's lanes are not the unit's"
        self._dut, self._lanes, self._operand_width = dut, lanes, operand_width
        parts = ("operation", "words", "rows", "multiplier", "shift")
        self._job = Source(dut, "job", [f"job_{part}_i" for part in parts])
        self._a = Source(dut, "a", ["a_data_i"])
        self._b = Source(dut, "b", ["b_data_i"])
        self._results = ResultMonitor(dut, lanes)
        self._edge = RisingEdge(dut.clk_i)
        self._cycle = 0

    async def reset(self) -> None:
        """Bring the unit to its initial state."""
        for name in ("rst_ni", "job_valid_i", "a_valid_i", "b_valid_i"):
            getattr(self._dut, name).value = 0
        for _ in range(3):
            await self._edge
        self._dut.rst_ni.value = 1
        await self._edge

    async def run(self, jobs: Sequence[dict[str, Any]]) -> tuple[int, int]:
        """Run a chain and compare its results; returns its cycles and its words of results."""
        streams = [Streams.of_job(job, self._lanes, self._operand_width) for job in jobs]
        self._job.feed([_payload(job) for job in jobs])
        self._a.feed([(word,) for stream in streams for word in stream.a])
        self._b.feed([(word,) for stream in streams for word in stream.b])
        complete = [flag for stream in streams for flag in stream.complete]
        cycles = await self._stream(complete, jobs[0]["stall"], jobs[0]["seed"])
        block, ends = self._results.take_all(self._lanes)
        counts = [len(stream.results) for stream in streams]
        assert ends == np.cumsum(counts).tolist(), f"result_last_o at {ends}: {jobs}"
        for job, stream in zip(jobs, streams, strict=True):
            own, block = np.split(block, [len(stream.results)])
            np.testing.assert_array_equal(own, stream.results, err_msg=str(job))
        return cycles, sum(counts)

    async def _stream(self, complete: list[bool], stall: dict[str, float], seed: int) -> int:
        """Move words until the last word of results is taken; returns the cycles.

        ``complete`` says of each word of A whether a word of results is complete with it.
        """
        draw = random.Random(seed).random
        streams: dict[str, Source | ResultMonitor] = {
            "job": self._job, "a": self._a, "b": self._b, "result": self._results,
        }  # fmt: skip
        held = [(stream, stall.get(name, 0.0)) for name, stream in streams.items()]
        # When, on a clock that stands while a result stands, each result under way is due.
        due = deque[int]()
        stopped = taken = 0
        entries = iter(complete)
        first: int | None = None
        last_move = self._cycle
        left = sum(complete)
        while taken < left:
            for stream, probability in held:
                stream.drive(probability > 0 and draw() < probability)
            await self._edge
            self._cycle += 1
            moved = self._job.sample()
            entered = self._a.sample()
            assert not self._b.sample() or entered, "a word of B was taken without one of A"
            result = self._results.sample()
            if entered:
                first = self._cycle if first is None else first
                if next(entries):
                    due.append(self._cycle - stopped + _LATENCY_CYCLES)
            if result:
                assert due and due[0] == self._cycle - stopped, f"result {taken} is late or early"
                due.popleft()
                taken += 1
            stopped += not result and bool(self._dut.result_valid_o.value)
            if moved | entered | result:
                last_move = self._cycle
            assert self._cycle - last_move < _HANG_CYCLES, f"hang: {taken} of {left} results came"
        assert first is not None, "results without operands"
        return self._cycle - first + 1


def _payload(job: dict[str, Any]) -> tuple[int, ...]:
    """Parts of a job as its ports take them."""
    code = OPERATIONS[job["operation"]]
    return code, job["words"], job["rows"], job["multiplier"] & 0xFFFF, job["shift"]


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def run_plan(dut: Any) -> None:
    """Run the chains of ``$WAFERTLM_PLAN`` and write the outcome to ``$WAFERTLM_RESULT``."""
    plan = json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text())
    Clock(dut.clk_i, _CLOCK_NS, unit="ns").start()
    bench = Bench(dut, plan["lanes"], plan["operand_width"])
    await bench.reset()
    ran = [await bench.run(chain) for chain in plan["chains"]]
    outcome = {"cycles": [cycles for cycles, _ in ran], "results": [count for _, count in ran]}
    Path(os.environ["WAFERTLM_RESULT"]).write_text(json.dumps(outcome))
