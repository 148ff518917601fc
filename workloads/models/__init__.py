"""Language models: their shapes, each from its public configuration."""

from workloads.models.find import find_model
from workloads.models.model import (
    DTYPE_BYTES,
    Dtype,
    Experts,
    Heads,
    Linear,
    Model,
    SlidingWindow,
    load_model,
    model_names,
)

__all__ = [
    "DTYPE_BYTES",
    "Dtype",
    "Experts",
    "Heads",
    "Linear",
    "Model",
    "SlidingWindow",
    "find_model",
    "load_model",
    "model_names",
]
