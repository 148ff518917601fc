"""The measured timing of the project's own systolic array."""

from collections.abc import Mapping
from dataclasses import fields

from tlm.calibrated import Parameter, load_result
from tlm.compute.systolic import Dataflow, FoldTiming


def fold_timing(parameters: Mapping[str, Parameter], dataflow: Dataflow) -> FoldTiming:
    """Constants of a dataflow from parameters named ``DATAFLOW.CONSTANT``."""
    names = [field.name for field in fields(FoldTiming)]
    return FoldTiming(*(round(parameters[f"{dataflow}.{name}"].value) for name in names))


def rtl_fold_timing(dataflow: Dataflow) -> FoldTiming:
    """Timing of rtl/tile/systolic_array.sv as the stored calibration has it.

    Raises:
        InputError: if the result is missing or stale.
    """
    return fold_timing(load_result("systolic").parameters, dataflow)
