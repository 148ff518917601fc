"""The engines of a tile with what is around them: streams of the scratchpad, queues, issue.

The laws are those of rtl/tile/README.md ("Matrix engine", "Vector engine", "Network interface",
"Sequencer"), from a descriptor's start to its end, if no two streams meet at a bank. The constants
are what the Verilog shows (`tile` among the calibrations).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tlm.calibrated import Parameter, load_result
from tlm.compute.base import LawOfShape, ceil_div, larger
from tlm.compute.systolic import Dataflow

_WORD_BITS, _SUM_BITS = 64, 32


@dataclass(frozen=True, slots=True)
class EngineTiming:
    """Constants of a tile's engines, in cycles.

    Attributes:
        output_stationary_cycles: Of a product beside the array's steps and the results' words.
        weight_stationary_cycles: The same with weights at rest.
        vector_cycles: Of a pass beyond one a word.
        issue_cycles: From a transfer's start to its first flit at the router.
        credit_cycles: From a unit's being given to its being there, beyond one a hop.
    """

    output_stationary_cycles: int
    weight_stationary_cycles: int
    vector_cycles: int
    issue_cycles: int
    credit_cycles: int

    @classmethod
    def of(cls, parameters: Mapping[str, Parameter]) -> "EngineTiming":
        """From parameters of the constants' names."""
        return cls(**{field.name: round(parameters[field.name].value) for field in fields(cls)})


def rtl_engine_timing() -> EngineTiming:
    """Timing of rtl/tile as the stored calibration has it.

    Raises:
        InputError: if the result is missing or stale.
    """
    return EngineTiming.of(load_result("tile").parameters)


@dataclass(frozen=True, slots=True)
class MatrixEngine(LawOfShape):
    """A tile's systolic array of ``size`` x ``size`` elements between its streams (`Compute`).

    Cycles are those of all jobs, one after the other.

    Attributes:
        size: Rows, and columns, of the array: operands of a word.
        dataflow: Sums or weights at rest; with weights at rest a product of one panel of K.
        timing: Constants.
    """

    size: int
    dataflow: Dataflow
    timing: EngineTiming

    @property
    def macs_per_cycle(self) -> float:
        """Multiply-accumulates a cycle with every element at work."""
        return float(self.size**2)

    def _cycles(self, m: Any, k: Any, n: Any) -> Any:
        panels_n = ceil_div(n, self.size)
        if self.dataflow == "output-stationary":
            return self._job_cycles(ceil_div(m, self.size) * panels_n, k)
        return ceil_div(k, self.size) * self._job_cycles(panels_n, m)

    def job_cycles(self, folds: int, length: int) -> int:
        """Cycles of one job of ``folds`` folds of ``length`` steps."""
        cycles: int = self._job_cycles(folds, length)
        return cycles

    def _job_cycles(self, folds: Any, length: Any) -> Any:
        row_words = self.size * _SUM_BITS // _WORD_BITS
        if self.dataflow == "output-stationary":
            rows, first = self.size, self.timing.output_stationary_cycles + length + 2 * self.size
        else:
            rows, first = length, self.timing.weight_stationary_cycles + 3 * self.size
        period = larger(larger(length, self.size), rows * row_words)
        return first + (folds - 1) * period + rows * row_words
