"""Types of elements: how wide they and their sums are, and which a chip computes a model in."""

from tlm.chips import Chip
from tlm.errors import InputError

#: Bits of an element and of a sum of products.
DTYPE_BITS = {
    "int8": (8, 32),
    "int16": (16, 32),
    "fp16": (16, 16),
    "bf16": (16, 16),
    "fp8": (8, 16),
    "fp32": (32, 32),
}
#: Of 2 bytes, as activations, keys and values are; a chip takes the first that it has.
_ACTIVATIONS = ("fp16", "bf16", "int16")


def has_activations(chip: Chip) -> bool:
    """Whether a chip computes elements of 2 bytes."""
    return any(dtype in chip.tile.dtypes for dtype in _ACTIVATIONS)


def activation_dtype(chip: Chip) -> str:
    """The type of a model's activations, keys and values on a chip.

    Raises:
        InputError: if it computes none of 2 bytes.
    """
    found = next((dtype for dtype in _ACTIVATIONS if dtype in chip.tile.dtypes), None)
    if found is None:
        raise InputError(
            f"--chip: '{chip.name}' computes {', '.join(chip.tile.dtypes)}; allowed: chips that "
            f"compute one of {', '.join(_ACTIVATIONS)}, as activations are of 2 bytes"
        )
    return found


def computed_dtype(chip: Chip, weights: str) -> str:
    """The type in which the dies of a wafer compute: fp8 with such weights, where they can.

    Keys, values and what goes from die to die are of it, too.

    Raises:
        InputError: as `activation_dtype`.
    """
    return "fp8" if weights == "fp8" and "fp8" in chip.tile.dtypes else activation_dtype(chip)
