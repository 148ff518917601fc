"""Language models: their shapes, each from its public configuration."""

from workloads.models.model import Linear, Model, load_model, model_names

__all__ = ["Linear", "Model", "load_model", "model_names"]
