"""Passes of the vector engine over blocks, and the fixed-point factors that they need."""

import math
from dataclasses import dataclass
from functools import lru_cache

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Work
from tlm.program.data import Buffer, Vector, VectorOperation
from workloads.machine.place import Place

_MOST_SHIFT = 63
_STEPS = 256
"""Steps of the exponent of `exp` to a factor of two."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor as the vector unit has it: times ``multiplier``, shifted right by ``shift``."""

    multiplier: int
    shift: int

    @classmethod
    def near(cls, value: float) -> "Factor":
        """The nearest factor to a positive value, to 15 bits.

        Raises:
            InputError: for a value that it cannot have.
        """
        if not 2.0**-48 <= value < 2.0**15:
            raise InputError(f"factor {value}; allowed: 2^-48 up to, but not, 2^15")
        shift = max(0, 14 - math.floor(math.log2(value)))
        multiplier = round(value * 2**shift)
        if multiplier == 2**15:
            multiplier, shift = 2**14, shift - 1
        return cls(multiplier, shift)

    @classmethod
    @lru_cache(64)
    def of_exponent(cls, unit: float) -> "Factor":
        """From numbers in a ``unit`` to the exponents of two that `exp` takes."""
        return cls.near(unit * math.log2(math.e) * _STEPS)

    @property
    def value(self) -> float:
        """The factor."""
        return self.multiplier / 2.0**self.shift


@dataclass(frozen=True, slots=True)
class Passes:
    """Makes work of the vector engine on some tiles.

    Attributes:
        tiles: Where.
        place: Whose vector engine.
        buffers: Those of the program.
        label: What the passes are for.
    """

    tiles: TileSet
    place: Place
    buffers: dict[str, Buffer]
    label: str

    def __call__(
        self,
        operation: VectorOperation,
        a: str,
        out: str,
        b: str | None = None,
        factor: Factor | None = None,
        takes: tuple[str, ...] = (),
        gives: tuple[str, ...] = (),
    ) -> Work:
        """One pass."""
        factor = Factor(1, 0) if factor is None else factor
        return Work(
            Engine.VECTOR,
            self.tiles,
            self.place.vector.pass_cycles(*self.buffers[a].shape),
            takes=takes,
            gives=gives,
            task=Vector(operation, a, out, b, factor.multiplier, factor.shift),
            label=self.label,
        )
