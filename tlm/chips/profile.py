"""The schema of a chip profile and its loader.

A profile is a TOML file. Figures of foreign chips carry their source in ``[sources]``; a figure
that our own RTL can show is not written in a profile at all: the profile names the calibration.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from tlm.chips.engines import MatrixTable, SystolicEngine, TiledSystolicEngine
from tlm.errors import InputError
from tlm.tables import Count, Duration, Figure, Natural, Size, Table, toml_fields

_FOLDER = Path(__file__).parent
_RTL = "rtl"
_RTL_NAME = re.compile(r"rtl-([1-9]\d{0,2})x([1-9]\d{0,2})")

#: Energy of an operation; 0 where it is part of the power that is always drawn.
Picojoules = Annotated[float, Field(ge=0, le=1e30, allow_inf_nan=False)]
#: Types of elements.
Dtype = Literal["int8", "int16", "fp16", "bf16", "fp8", "fp32"]


class ChipGrid(Table):
    """Tiles of the chip."""

    rows: Count
    cols: Count


class ChipTile(Table):
    """One tile: engines and local memory.

    ``matrix_of`` names the types, of those in ``dtypes``, that another matrix engine than
    ``matrix`` multiplies.
    """

    matrix: MatrixTable
    dtypes: tuple[Dtype, ...] = Field(min_length=1)
    matrix_of: dict[str, MatrixTable] = {}
    vector_flop_per_cycle: Count | None = None
    sram_kib: Figure
    sram_banks: Count = 1
    sram_bytes_per_cycle: Count | None = None

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

    @model_validator(mode="after")
    def _lanes_are_there(self) -> Self:
        for engine in (self.matrix, *self.matrix_of.values()):
            if not isinstance(engine, TiledSystolicEngine) or not engine.lane_alus:
                continue
            if not engine.lanes(self.vector_flop_per_cycle):
                raise ValueError(
                    f"matrix.lane_alus: found {engine.lane_alus}, with vector_flop_per_cycle "
                    f"{self.vector_flop_per_cycle or 'not given'}; allowed: 0, or a lane at least: "
                    f"{2 * engine.lane_alus} operations a cycle"
                )
        return self


class CalibratedNoc(Table):
    """The project's own router: its timing is measured."""

    kind: Literal["calibrated"]

    @model_validator(mode="before")
    @classmethod
    def _says_nothing_else(cls, fields: Any) -> Any:
        for name in fields if isinstance(fields, dict) else ():
            if name != "kind":
                raise ValueError(
                    f'{name}: found {fields[name]!r}; allowed: kind = "calibrated" alone, as the '
                    "RTL decides all else"
                )
        return fields


class ForeignNoc(Table):
    """The mesh network of a foreign chip; multicasts stream through it without a gap.

    ``reduce_cycles``: from the meeting of operands in a router to their result; None if the network
    combines nothing. ``channel`` "output" or "receiver": a message goes by request, acknowledge and
    data, and locks its way (`tlm.interconnect.zero_load.NocTiming`), with the cycles of the three
    at its ends; then there are no multicasts and reductions, and levels are `at` and `perf`, which
    knows no waits for locks. Levels `at` and `lt` know ``buffer_flits``, what a router holds at an
    input. Level `at` alone knows ``packet_flits``, the longest packet of a multicast or a
    reduction; ``cut_through``, whether these wait for room for all of a packet; and ``arbiter``,
    who gets an output. What a profile does not say of them is assumed.
    """

    kind: Literal["foreign"]
    flit_bytes: Count
    hop_cycles: Count
    ejection_cycles: Count
    reduce_cycles: Count | None = None
    buffer_flits: Count = 32
    packet_flits: Count = 16
    cut_through: bool = True
    arbiter: Literal["round-robin", "fixed", "tree"] = "round-robin"
    channel: Literal["none", "output", "receiver"] = "none"
    request_cycles: Count = 1
    acknowledge_cycles: Count = 1
    data_cycles: Count = 1

    @model_validator(mode="after")
    def _locks_without_reductions(self) -> Self:
        if self.channel != "none" and self.reduce_cycles is not None:
            raise ValueError(
                f"channel: found {self.channel} with reduce_cycles; allowed: none, as locked "
                "channels carry messages from one tile to another alone"
            )
        return self


class ChipSoftware(Table):
    """Cycles of a core's software at the ends of transfers, where the network does nothing itself.

    ``stage_cycles``: of a routing stage, in which a core adds its own word to one that comes and
    passes it on, beside the links; None if cores do not stream sums. ``step_cycles``: fixed, of a
    step of a matrix product by blocks; ``element_cycles``: of an element that a core sends or
    receives in one, which are not hidden by its products. ``all_reduce_cycles``: fixed, of an
    all-reduction.
    """

    stage_cycles: Count | None = None
    step_cycles: Duration = 0.0
    element_cycles: Duration = 0.0
    all_reduce_cycles: Natural = 0


class ChipResidency(Table):
    """What tiles keep of a model beside buffers, as NpuSim has it (section 4.2), in this order.

    ``buffer_kib`` of a tile are for blocks of operands and messages on their way, and
    ``activation_kib`` for activations; keys and values have what running requests need of the rest,
    and weights have what is left, layer by layer. ``experts`` says which experts have what then is
    left, and ``prefetch`` which one of a layer is loaded while its attention and gate are computed.
    """

    buffer_kib: Figure
    activation_kib: Figure
    experts: Literal["none", "hottest", "random"] = "none"
    prefetch: Literal["none", "hottest", "random"] = "none"


class ChipArea(Table):
    """Area of a core in square millimetres, at some elements of its array and memory bandwidths.

    ``core_mm2`` has a row for each of ``array_elements`` and in it a figure for each of
    ``memory_bytes_per_s``, of a core; both rise. Between them area is linear in each.
    """

    array_elements: tuple[Count, ...] = Field(min_length=2)
    memory_bytes_per_s: tuple[Figure, ...] = Field(min_length=2)
    core_mm2: tuple[tuple[Figure, ...], ...]

    @model_validator(mode="after")
    def _has_all_points(self) -> Self:
        for name in ("array_elements", "memory_bytes_per_s"):
            values = getattr(self, name)
            if sorted(set(values)) != list(values):
                raise ValueError(f"{name}: found {list(values)}; allowed: values that rise")
        wanted = [len(self.memory_bytes_per_s)] * len(self.array_elements)
        if (found := [len(row) for row in self.core_mm2]) != wanted:
            raise ValueError(f"core_mm2: found rows of {found} figures; allowed: {wanted}")
        return self


class ChipMemory(Table):
    """Off-chip memory of the whole chip; ``per_tile``: each tile has an equal part of its own."""

    device: Literal["hbm2", "hbm3", "hbm4"]
    stacks: Count
    channels: Count
    bandwidth_bytes_per_s: Figure
    capacity_bytes: Size
    latency_cycles: Count
    per_tile: bool = False


class Dies(Table):
    """A wafer of dies, each as the rest of the profile says, and the links between them."""

    rows: Count
    cols: Count
    link_bytes_per_s: Figure
    link_latency_s: Figure
    port_bytes_per_s: Figure
    packet_bytes: Size
    buffer_bytes: Size


class TileEnergy(Table):
    """Energies of operations on tiles in picojoules, and power in watts.

    ``flop_pj`` is of the engines, reading operands from local memory apart; ``hop_byte_pj`` of a
    byte from one router to the next; ``idle_w`` is drawn by the whole chip, always. Where that is
    all that is known, energies are 0.
    """

    flop_pj: Picojoules
    sram_byte_pj: Picojoules
    memory_byte_pj: Picojoules
    hop_byte_pj: Picojoules
    idle_w: Figure


class ChipLimits(Table):
    """What a program has to keep within, beside the tile's memory."""

    routing_paths: Count | None = None


class Chip(Table):
    """A chip profile.

    ``calibration`` names the measurements of the RTL that the chip is exactly: its tiles and its
    network are then those of ``rtl.toml``, and have no other figures. ``sources`` maps each foreign
    figure (dotted name) to where it stands in print.
    """

    name: str = Field(min_length=1)
    title: str
    grid: ChipGrid
    clock_hz: Figure
    tile: ChipTile
    noc: CalibratedNoc | ForeignNoc = Field(discriminator="kind")
    memory: ChipMemory | None = None
    software: ChipSoftware = ChipSoftware()
    limits: ChipLimits = ChipLimits()
    dies: Dies | None = None
    energy: TileEnergy | None = None
    residency: ChipResidency | None = None
    area: ChipArea | None = None
    calibration: Literal["rtl"] | None = None
    sources: dict[str, str] = {}

    @model_validator(mode="after")
    def _keeps_what_memory_has(self) -> Self:
        if self.residency is None:
            return self
        if self.memory is None or self.dies is not None:
            raise ValueError(
                "residency: found on a chip of dies or without memory; allowed: with [memory] and "
                "without [dies]"
            )
        kept = self.residency.buffer_kib + self.residency.activation_kib
        if kept > self.tile.sram_kib:
            raise ValueError(
                f"residency: buffer_kib and activation_kib: found {kept:g} together; allowed: at "
                f"most tile.sram_kib, {self.tile.sram_kib:g}"
            )
        return self

    @model_validator(mode="after")
    def _says_nothing_that_rtl_decides(self) -> Self:
        if self.calibration is None:
            if isinstance(self.tile.matrix, SystolicEngine):
                raise ValueError(
                    f'tile.matrix.kind: found systolic; allowed with calibration = "{_RTL}" alone: '
                    "it is the project's own tile, which is measured"
                )
            return self
        if not isinstance(self.noc, CalibratedNoc):
            raise ValueError(_decided("noc.kind", self.noc.kind, "calibrated"))
        if self.memory is not None:
            raise ValueError(_decided("memory", "a table", "none"))
        own = ChipTile.made(toml_fields(_FOLDER / f"{_RTL}.toml", _RTL)["tile"], _RTL)
        if other := _first_other(self.tile.model_dump(), own.model_dump(), "tile"):
            raise ValueError(_decided(*other))
        return self

    @model_serializer(mode="wrap")
    def _without_what_few_have(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """So that the hash of another chip is the same as before there were such tables."""
        fields: dict[str, Any] = handler(self)
        few = ("residency", "area")
        return {name: each for name, each in fields.items() if name not in few or each is not None}

    def for_dtype(self, dtype: str) -> "Chip":
        """The chip with the matrix engine that it has for elements of a type."""
        engine = self.tile.matrix_of.get(dtype, self.tile.matrix)
        return self.model_copy(update={"tile": self.tile.model_copy(update={"matrix": engine})})


def _decided(field: str, found: Any, allowed: Any) -> str:
    return (
        f"{field}: found {found}; allowed: {allowed}, as the RTL decides it "
        f'(calibration = "{_RTL}")'
    )


def _first_other(found: Any, wanted: Any, field: str) -> tuple[str, Any, Any] | None:
    """The first field, by its dotted name, of which something else was found, and both."""
    if found == wanted:
        return None
    if not (isinstance(found, dict) and isinstance(wanted, dict)):
        return field, found, wanted
    names = dict.fromkeys((*wanted, *found))
    others = (_first_other(found.get(n), wanted.get(n), f"{field}.{n}") for n in names)
    return next(other for other in others if other is not None)


@cache
def chip_names() -> tuple[str, ...]:
    """Names of the shipped profiles, and the form of the family that is exactly the RTL."""
    return (*sorted(path.stem for path in _FOLDER.glob("*.toml") if path.stem != _RTL), "rtl-RxC")


def is_chip(name: str) -> bool:
    """Whether a profile of that name is shipped."""
    return name in chip_names()[:-1] or _RTL_NAME.fullmatch(name) is not None


def chip_text(name: str) -> str:
    """The shipped file of a name that is known; of the RTL with its grid."""
    own = _RTL_NAME.fullmatch(name)
    text = (_FOLDER / f"{_RTL if own else name}.toml").read_text(encoding="utf-8")
    return f"{text}\n[grid]\nrows = {own[1]}\ncols = {own[2]}\n" if own else text


def chip_fields(name: str) -> dict[str, Any]:
    """What the shipped file of a name that is known says, and the name."""
    return {"name": name} | tomllib.loads(chip_text(name))


@cache
def load_chip(name: str) -> Chip:
    """Load a profile by name; ``rtl-4x4`` is the project's own RTL on 4 rows and 4 columns.

    Raises:
        InputError: for an unknown name, or naming the file and the field that does not fit.
    """
    if not is_chip(name):
        raise InputError(f"unknown chip '{name}'; known: {', '.join(chip_names())}")
    file = _RTL if _RTL_NAME.fullmatch(name) else name
    return Chip.made(chip_fields(name), f"{file}.toml")
