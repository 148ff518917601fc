"""Integer arithmetic of tiles, element by element as the Verilog computes it.

Arrays are int64; ``bits`` is the width of what they stand for, two's complement. Sources:
rtl/tile/vector_lane.sv, rtl/tile/exp2_table.sv, rtl/tile/vector_reduce.sv, rtl/tile/pe.sv.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.program.data import VectorOperation

Integers = NDArray[np.int64]

_FRACTION_BITS = 8
_POWERS = 2 * np.rint(2.0**15 * 2.0 ** (np.arange(2**_FRACTION_BITS) / 2**_FRACTION_BITS)).astype(
    np.int64
)
"""2^f in units of 2^-16 for the fractions f = 0/256, 1/256, ..."""


def wrap(values: Integers, bits: int) -> Integers:
    """Values as ``bits`` low bits hold them."""
    half = 1 << (bits - 1)
    return ((values + half) & ((1 << bits) - 1)) - half


def saturate(values: Integers, bits: int) -> Integers:
    """The nearest values that ``bits`` hold."""
    half = 1 << (bits - 1)
    return np.clip(values, -half, half - 1)


def exp2(values: Integers) -> Integers:
    """2^(values / 256) in units of 2^-16, of values up to zero; those above count as it."""
    values = np.minimum(values, 0)
    halvings = np.minimum(-(values >> _FRACTION_BITS), 62)
    powers: Integers = _POWERS[values & (2**_FRACTION_BITS - 1)] >> halvings
    return powers


def vector(
    operation: VectorOperation,
    a: Integers,
    b: Integers | None,
    bits: int,
    multiplier: int = 1,
    shift: int = 0,
) -> Integers:
    """What a pass of the vector unit makes of blocks of shape (rows, columns).

    Args:
        operation: As of `tlm.program.data.Vector`.
        a: Operand.
        b: Second operand, or None.
        bits: Of the result's elements.
        multiplier: Of ``scale`` and ``quantize``.
        shift: Of these and of ``multiply``.
    """
    if operation in ("scale", "quantize"):
        return saturate((a * multiplier) >> shift, bits)
    if operation == "exp":
        return wrap(exp2(a), bits)
    if operation == "row-sum":
        return wrap(a.sum(axis=1, keepdims=True), bits)
    if operation == "row-maximum":
        return wrap(a.max(axis=1, keepdims=True), bits)
    assert b is not None, "checked with the program"
    if operation == "multiply":
        return saturate((a * wrap(b, 16)) >> shift, bits)
    return wrap(a + b if operation == "add" else np.maximum(a, b), bits)
