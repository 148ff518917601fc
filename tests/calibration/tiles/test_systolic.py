"""The law of the systolic array holds on arrays that no constant was fitted on."""

from dataclasses import replace

import pytest

from calibration.tiles.systolic import SystolicExperiment
from tlm.calibrated import load_result


@pytest.mark.slow
@pytest.mark.rtl
def test_another_array_takes_the_cycles_of_the_law() -> None:
    experiment = SystolicExperiment()
    cases = [replace(case, rows=4, cols=6) for case in experiment.check_cases(quick=False)]
    predicted = experiment.predict(load_result("systolic").parameters, cases)
    assert predicted == experiment.measure(cases)
