"""What can be named: chips, models and kernels, and what a name stands for."""

from collections.abc import Mapping
from typing import Any

from tlm.chips import AnyChip, find_chip
from tlm.chips.find import all_chip_names
from workloads.kernels.catalogue import KERNELS
from workloads.models import Model, find_model, model_names


def chips() -> list[str]:
    """Names of chips; ``rtl-RxC`` stands for the project's own tiles, such as ``rtl-4x4``."""
    return list(all_chip_names())


def models() -> list[str]:
    """Names of language models."""
    return list(model_names())


def kernels() -> list[str]:
    """Names of kernels."""
    return list(KERNELS)


def chip(name: str, set: Mapping[str, Any] | None = None) -> AnyChip:
    """A chip's profile, each figure of it a field.

    Args:
        name: Of `chips`, or a TOML file.
        set: Figures that are changed, such as ``{"noc.hop_cycles": 2}``.

    Raises:
        InputError: for a name that is not known, a file at fault, and a figure that does not fit.
    """
    return find_chip(name, tuple(f"{field}={value}" for field, value in (set or {}).items()))


def model(name: str) -> Model:
    """A model's sizes.

    Args:
        name: Of `models`, a TOML file, or a ``config.json`` in Hugging Face's format.

    Raises:
        InputError: for a name that is not known, and a file at fault.
    """
    return find_model(name)
