"""The schema of a chip profile and its loader.

A profile is a TOML file. Figures of foreign chips carry their source in ``[sources]``; a figure
that our own RTL can show is not written in a profile at all: the profile names the calibration.
"""

import re
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt, ValidationInfo, field_validator

from tlm.chips.engines import MatrixTable
from tlm.errors import InputError
from tlm.tables import Table

_FOLDER = Path(__file__).parent
_RTL_NAME = re.compile(r"rtl-([1-9]\d{0,2})x([1-9]\d{0,2})")


class ChipGrid(Table):
    """Tiles of the chip."""

    rows: PositiveInt
    cols: PositiveInt


class ChipTile(Table):
    """One tile: engines and local memory.

    ``matrix_of`` names the types, of those in ``dtypes``, that another matrix engine than
    ``matrix`` multiplies.
    """

    matrix: MatrixTable
    dtypes: tuple[str, ...]
    matrix_of: dict[str, MatrixTable] = {}
    vector_flop_per_cycle: PositiveInt | None = None
    sram_kib: PositiveFloat
    sram_banks: PositiveInt = 1
    sram_bytes_per_cycle: PositiveInt | None = None

    @field_validator("matrix_of")
    @classmethod
    def _of_known_dtypes(
        cls, engines: dict[str, MatrixTable], others: ValidationInfo
    ) -> dict[str, MatrixTable]:
        allowed = others.data.get("dtypes", tuple(engines))
        if unknown := [dtype for dtype in engines if dtype not in allowed]:
            raise ValueError(
                f"found {', '.join(unknown)}; allowed, of dtypes: {', '.join(allowed)}"
            )
        return engines


class CalibratedNoc(Table):
    """The project's own router: its timing is measured."""

    kind: Literal["calibrated"]


class ForeignNoc(Table):
    """The mesh network of a foreign chip; multicasts stream through it without a gap.

    ``reduce_cycles``: from the meeting of operands in a router to their result; None if the network
    combines nothing.
    """

    kind: Literal["foreign"]
    flit_bytes: PositiveInt
    hop_cycles: PositiveInt
    ejection_cycles: PositiveInt
    reduce_cycles: PositiveInt | None = None


class ChipMemory(Table):
    """Off-chip memory of the whole chip; ``per_tile``: each tile has an equal part of its own."""

    device: str
    stacks: PositiveInt
    channels: PositiveInt
    bandwidth_bytes_per_s: PositiveFloat
    capacity_bytes: PositiveInt
    latency_cycles: PositiveInt
    per_tile: bool = False


class Dies(Table):
    """A wafer of dies, each as the rest of the profile says, and the links between them."""

    rows: PositiveInt
    cols: PositiveInt
    link_bytes_per_s: PositiveFloat
    link_latency_s: PositiveFloat
    port_bytes_per_s: PositiveFloat
    packet_bytes: PositiveInt
    buffer_bytes: PositiveInt


class TileEnergy(Table):
    """Energies of operations on tiles in picojoules, and power in watts.

    ``flop_pj`` is of the engines, reading operands from local memory apart; ``hop_byte_pj`` of a
    byte from one router to the next; ``idle_w`` is drawn by the whole chip, always.
    """

    flop_pj: PositiveFloat
    sram_byte_pj: PositiveFloat
    memory_byte_pj: PositiveFloat
    hop_byte_pj: PositiveFloat
    idle_w: PositiveFloat


class ChipLimits(Table):
    """What a program has to keep within, beside the tile's memory."""

    routing_paths: PositiveInt | None = None


class Chip(Table):
    """A chip profile.

    ``sources`` maps each foreign figure (dotted name) to where it stands in print.
    """

    name: str
    title: str
    grid: ChipGrid
    clock_hz: PositiveFloat
    tile: ChipTile
    noc: CalibratedNoc | ForeignNoc = Field(discriminator="kind")
    memory: ChipMemory | None = None
    limits: ChipLimits = ChipLimits()
    dies: Dies | None = None
    energy: TileEnergy | None = None
    calibration: str | None = None
    sources: dict[str, str] = {}

    def for_dtype(self, dtype: str) -> "Chip":
        """The chip with the matrix engine that it has for elements of a type."""
        engine = self.tile.matrix_of.get(dtype, self.tile.matrix)
        return self.model_copy(update={"tile": self.tile.model_copy(update={"matrix": engine})})


def chip_names() -> tuple[str, ...]:
    """Names of the shipped profiles, and the form of the family that is exactly the RTL."""
    return (*sorted(path.stem for path in _FOLDER.glob("*.toml") if path.stem != "rtl"), "rtl-RxC")


@cache
def load_chip(name: str) -> Chip:
    """Load a profile by name; ``rtl-4x4`` is the project's own RTL on 4 rows and 4 columns.

    Raises:
        InputError: for an unknown name, or naming the file and the field that does not fit.
    """
    own = _RTL_NAME.fullmatch(name)
    path = _FOLDER / ("rtl.toml" if own else f"{name}.toml")
    if not own and name not in chip_names():
        raise InputError(f"unknown chip '{name}'; known: {', '.join(chip_names())}")
    grid = {"grid": {"rows": int(own[1]), "cols": int(own[2])}} if own else {}
    return Chip.read(path, name=name, **grid)
