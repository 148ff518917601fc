"""The measured timing of the project's own systolic array."""

from collections.abc import Mapping
from dataclasses import fields

from tlm.calibrated import Parameter
from tlm.compute.systolic import Dataflow, FoldTiming


def fold_timing(parameters: Mapping[str, Parameter], dataflow: Dataflow) -> FoldTiming:
    """Constants of a dataflow from parameters named ``DATAFLOW.CONSTANT``."""
    names = [field.name for field in fields(FoldTiming)]
    return FoldTiming(*(round(parameters[f"{dataflow}.{name}"].value) for name in names))
