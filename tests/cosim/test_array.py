"""The Verilated array as a matrix engine: the cycles of its formula, and faults that are seen."""

from pathlib import Path

import pytest

from cosim import array
from cosim.array import RtlArray
from cosim.errors import SimulationError
from cosim.verilog import ARRAY_SOURCES
from tlm.calibrated import load_result
from tlm.compute.calibration import fold_timing
from tlm.compute.systolic import Dataflow, Systolic
from tlm.errors import InputError

pytestmark = pytest.mark.rtl

SHAPES = [(1, 1, 1), (8, 8, 8), (3, 40, 3), (33, 31, 29), (40, 9, 17)]


@pytest.mark.parametrize("dataflow", ["weight-stationary", "output-stationary"])
def test_a_product_takes_the_cycles_of_the_formula(dataflow: Dataflow) -> None:
    engine = RtlArray(8, 8, dataflow)
    timing = fold_timing(load_result("systolic").parameters, dataflow)
    formula = Systolic(8, 8, dataflow, timing)
    assert engine.macs_per_cycle == formula.macs_per_cycle
    for shape in SHAPES:
        assert engine.gemm_cycles(*shape) == formula.gemm_cycles(*shape), shape
    with pytest.raises(InputError, match="K is 0"):
        engine.gemm_cycles(4, 0, 4)


def test_a_wrong_result_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array whose columns of results are exchanged."""
    right, source = "result_data_o[c*AccWidth +: AccWidth]", tmp_path / ARRAY_SOURCES[-1].name
    text = ARRAY_SOURCES[-1].read_text()
    assert text.count(right) == 1
    source.write_text(text.replace(right, right.replace("[c", "[(Cols-1-c)")))
    monkeypatch.setattr(array, "ARRAY_SOURCES", (*ARRAY_SOURCES[:-1], source))
    with pytest.raises(SimulationError, match="row 0 of the results is 0x[0-9a-f]+, expected 0x"):
        RtlArray(8, 8, "weight-stationary").gemm_cycles(8, 8, 8)
