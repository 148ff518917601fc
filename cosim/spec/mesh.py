"""What the user of a custom mesh says of it: one TOML file, read and checked here.

``docs/custom_rtl/mesh.toml`` is an example with every table.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    model_validator,
)

from cosim.spec.data import DataLaw
from cosim.spec.names import FLIT_COUNT, with_numbers
from tlm.errors import InputError
from tlm.files import is_file
from tlm.tables import toml_fields

#: How a header names several tiles.
Masks = Literal["bitmask", "dont-care"]
#: Operations that combine operands; of those that there are the first is timed.
Reduction = Literal["sum", "maximum", "and", "select", "collect"]
#: Names of all, by which `tlm.interconnect.packets.PacketKind` names them too.
Operation = Literal["unicast", "multicast", Reduction]
_REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)
_Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_$]*$")]
_NAMED_WIDTHS = ("rows", "cols", "row_index", "col_index")
_LARGEST_SIDE = 64
_LEAST_FIT = (3, 4)
_NARROWEST_MAXIMUM = 32
_NARROWEST_RESULT = 32
_WORD_BITS = 64
_WIDEST_FIELD = 4096
_LONGEST_RESET_CYCLES = 10_000


def _size(text: object) -> tuple[int, int]:
    """Rows and columns of a size such as ``4x4``."""
    found = re.fullmatch(r"([1-9]\d?)x([1-9]\d?)", text) if isinstance(text, str) else None
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= min(size) <= max(size) <= _LARGEST_SIDE:
        raise ValueError(f"found {text!r}; allowed: ROWSxCOLS, 1 to {_LARGEST_SIDE} each")
    return size


def _bits(found: object) -> object:
    """A width as it stands: a number, or a name for one that follows the size of the mesh."""
    number = isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= _WIDEST_FIELD
    if not number and found not in _NAMED_WIDTHS:
        names = ", ".join((*_NAMED_WIDTHS, FLIT_COUNT))
        raise ValueError(f"found {found!r}; allowed: 1 to {_WIDEST_FIELD}, or {names}")
    return found


_Size = Annotated[tuple[int, int], BeforeValidator(_size)]
_Bits = Annotated[int | str, BeforeValidator(_bits)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, table: object) -> object:
        for key in table if isinstance(table, dict) else ():
            if key not in cls.model_fields:
                raise ValueError(f"found key '{key}'; allowed: {', '.join(cls.model_fields)}")
        return table


class Rtl(_Table):
    """The Verilog; files and folders relative to the specification.

    ``payload_parameter``: the parameter, if there is one, that is the bits of a flit's payload.
    """

    top: _Identifier
    sources: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    include_folders: Annotated[tuple[str, ...], Field(strict=False)] = ()
    defines: dict[_Identifier, str | int] = {}
    parameters: dict[_Identifier, int] = {}
    payload_parameter: _Identifier | None = None
    verilator_options: Annotated[tuple[str, ...], Field(strict=False)] = ()

    def flags(self) -> list[str]:
        """What Verilator is told."""
        defines = (f"-D{name}={value}" for name, value in sorted(self.defines.items()))
        return [*self.verilator_options, *defines]


class Mesh(_Table):
    """Its sizes, (rows, columns): those of the fit and those that only blind checks see."""

    rows_parameter: _Identifier | None = None
    cols_parameter: _Identifier | None = None
    fit: _Size
    check: Annotated[tuple[_Size, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _sizes_can_be_built(self) -> Self:
        if (self.rows_parameter is None) != (self.cols_parameter is None):
            raise ValueError(
                "found one of rows_parameter and cols_parameter; allowed: both or neither"
            )
        if self.rows_parameter is None and self.check:
            raise ValueError(
                "check: found sizes; allowed: [] without rows_parameter and cols_parameter"
            )
        for name, size in (("fit", self.fit), *(("check", size) for size in self.check)):
            if size[0] < _LEAST_FIT[0] or size[1] < _LEAST_FIT[1]:
                raise ValueError(
                    f"{name}: found {_text(size)}; allowed: {_text(_LEAST_FIT)} and larger"
                )
        for size in self.check:
            # A size of the fit is no blind check; one twice would be measured twice.
            if self.check.count(size) > 1 or size == self.fit:
                raise ValueError(
                    f"check: found {_text(size)} again; allowed: a size once, and not the fit's"
                )
        return self


class Clock(_Table):
    """The clock; the mesh reacts to its rising edge."""

    port: _Identifier


class Reset(_Table):
    """The reset, and for how many cycles it is given."""

    port: _Identifier
    active: Literal["low", "high"]
    cycles: Annotated[int, Field(ge=1, le=_LONGEST_RESET_CYCLES)] = 5


class Ports(_Table):
    """Names of the tiles' ports: flat vectors, a slice a node."""

    inject_valid: _Identifier
    inject_ready: _Identifier
    inject_flit: _Identifier
    eject_valid: _Identifier
    eject_ready: _Identifier
    eject_flit: _Identifier


class FlitField(_Table):
    """A field of the flit; ``bits`` by name follow the size of the mesh."""

    field: Literal[
        "payload", "row", "col", "row_mask", "col_mask", "source_row", "source_col", "length",
        "operation", "constant", "last",
    ]  # fmt: skip
    bits: _Bits
    # Codes are handled as 64-bit numbers, however wide the field is.
    values: dict[Operation, Annotated[int, Field(ge=0, lt=2**63)]] = {}
    value: Annotated[int, Field(ge=0, lt=2**64)] | None = None

    def width(self, rows: int, cols: int) -> int:
        """Its bits on a mesh of ``rows`` x ``cols``."""
        named = (rows, cols, index_bits(rows), index_bits(cols))
        if isinstance(self.bits, str):
            return dict(zip(_NAMED_WIDTHS, named, strict=True))[self.bits]
        return self.bits

    @model_validator(mode="after")
    def _keys_belong_to_the_field(self) -> Self:
        if (self.field == "operation") != bool(self.values):
            raise ValueError(f"{self.field}: values belong to 'operation', which needs them")
        if (self.field == "constant") != (self.value is not None):
            raise ValueError(f"{self.field}: value belongs to 'constant', which needs it")
        if self.field == "payload" and (isinstance(self.bits, str) or self.bits < 64):
            raise ValueError(f"payload: found bits = {self.bits!r}; allowed: 64 and more")
        if self.field == "last" and self.bits != 1:
            raise ValueError(f"last: found bits = {self.bits!r}; allowed: 1")
        codes = list(self.values.values())
        if len(set(codes)) < len(codes):
            raise ValueError(f"operation: found values = {self.values}; allowed: a code once")
        return self


class Features(_Table):
    """What the network does beside unicasts, which flits have headers, and how these name tiles."""

    multicast: Masks | None = None
    reduction: Masks | None = None
    reduction_around: Literal["root", "source"] = "root"
    element_bits: Literal[8, 16, 32, 64] = 32
    reduced_bits: PositiveInt | None = None
    header: Literal["every-flit", "first-flit"] = "every-flit"

    @model_validator(mode="after")
    def _around_is_read(self) -> Self:
        if "reduction_around" in self.model_fields_set and self.reduction != "dont-care":
            raise ValueError(
                "reduction_around: found it; allowed: only with reduction = 'dont-care'"
            )
        return self


class Limits(_Table):
    """Bounds of the network; None: to be found by trying.

    In the file a number of flits may be the name of an RTL parameter that says it.
    """

    packet_flits: PositiveInt | None = None
    multicast_flits: PositiveInt | None = None
    reduction_flits: PositiveInt | None = None
    reduction_operands: Annotated[int, Field(ge=2)] | None = None


class MeshSpec(_Table):
    """Another mesh: where its Verilog is, how its ports and flits look, what it can do."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]
    rtl: Rtl
    mesh: Mesh
    clock: Clock
    reset: Reset
    ports: Ports
    flit: Annotated[tuple[FlitField, ...], Field(strict=False)]
    features: Features = Features()
    limits: Limits = Limits()
    _file: Path = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _names_become_numbers(cls, table: object) -> object:
        """What parameters of the Verilog say is said there alone."""
        return with_numbers(table) if isinstance(table, dict) else table

    def __hash__(self) -> int:
        """Dictionaries have no hash: that of the whole as text."""
        return hash((self._file, self.model_dump_json()))

    @property
    def file(self) -> Path:
        """The file that was read."""
        return self._file

    @property
    def folder(self) -> Path:
        """The folder to which sources are relative."""
        return self._file.parent

    def source_files(self) -> list[Path]:
        """The Verilog files in order of dependence."""
        return [self.folder / name for name in self.rtl.sources]

    def include_folders(self) -> list[Path]:
        """The folders in which included files are looked for."""
        return [self.folder / name for name in self.rtl.include_folders]

    def sizes(self) -> list[tuple[int, int]]:
        """Rows and columns of the fit's mesh, then of each mesh of the checks."""
        return [self.mesh.fit, *self.mesh.check]

    def operations(self) -> dict[Operation, int]:
        """Codes of the operations that the network knows; without any field for them, unicasts."""
        return self.field("operation").values if self.has("operation") else {"unicast": 0}

    def reductions(self) -> list[Reduction]:
        """Those of them that combine operands."""
        known = self.operations()
        return [name for name in _REDUCTIONS if name in known]

    @property
    def payload_bits(self) -> int:
        """Bits of a payload."""
        return self.field("payload").width(*self.mesh.fit)

    @property
    def reduced_bits(self) -> int:
        """So many of them a reduction combines, from the low end."""
        return self.features.reduced_bits or self.payload_bits

    @property
    def data_law(self) -> DataLaw:
        """What reductions do with the low 64 of them."""
        return DataLaw(self.features.element_bits, min(self.reduced_bits, _WORD_BITS))

    def has(self, name: str) -> bool:
        """Whether a flit has a field."""
        return any(field.field == name for field in self.flit)

    def field(self, name: str) -> FlitField:
        """A field that is there once."""
        return next(field for field in self.flit if field.field == name)

    def check_size(self, rows: int, cols: int) -> None:
        """Hold that the mesh can be built in a size.

        Raises:
            InputError: if it has one size only, or a field is too narrow for this one.
        """
        for problem in self._problems_of_size(rows, cols):
            raise InputError(f"{self.file.name}: {problem}")

    def _problems_of_size(self, rows: int, cols: int) -> Iterator[str]:
        if self.mesh.rows_parameter is None and (rows, cols) != self.mesh.fit:
            yield (
                f"mesh: found size {rows}x{cols}; allowed without rows_parameter: "
                f"{_text(self.mesh.fit)}"
            )
        bitmask = "bitmask" in (self.features.multicast, self.features.reduction)
        for side, size in (("row", rows), ("col", cols)):
            needed = {side: index_bits(size), f"source_{side}": index_bits(size)}
            needed[f"{side}_mask"] = size if bitmask else index_bits(size)
            for field in self.flit:
                bits, least = field.width(rows, cols), needed.get(field.field, 1)
                if bits < least:
                    yield (
                        f"flit: {field.field}: found {bits} bits; allowed on {rows}x{cols}: "
                        f"{least} and more"
                    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """What holds between tables."""
        problems = [*self._problems_of_fields(), *self._problems_of_operations()]
        problems += self._problems_of_reduced_bits() if not problems else []
        for rows, cols in self.sizes():
            problems += self._problems_of_size(rows, cols)
        rows_cols = {self.mesh.rows_parameter, self.mesh.cols_parameter}
        for name in sorted(rows_cols & self.rtl.parameters.keys(), key=str):
            problems.append(
                f"rtl.parameters: found '{name}'; allowed: others than rows and columns"
            )
        ports = [self.clock.port, self.reset.port, *self.ports.model_dump().values()]
        for name in {name for name in ports if ports.count(name) > 1}:
            problems.append(f"ports: found '{name}' twice; allowed: a port once")
        if problems:
            raise ValueError(problems[0])
        return self

    def _problems_of_fields(self) -> Iterator[str]:
        names = [field.field for field in self.flit]
        needed = {"payload", "row", "col", "last"}
        if self.features.multicast or self.features.reduction:
            needed |= {"row_mask", "col_mask", "operation"}
        if self.features.reduction_around == "source":
            needed |= {"source_row", "source_col"}
        for name in sorted(needed - {*names}):
            yield f"flit: found no field '{name}'; allowed: one, by [features]"
        for name in names:
            if name != "constant" and names.count(name) > 1:
                yield f"flit: found field '{name}' {names.count(name)} times; allowed: once"
        for field in self.flit:
            codes = [*field.values.values(), *([] if field.value is None else [field.value])]
            bits = field.width(*self.mesh.fit)
            if codes and max(codes) >= 1 << bits:
                yield f"flit: {field.field}: found code {max(codes)}; allowed: below {1 << bits}"

    def _problems_of_operations(self) -> Iterator[str]:
        found = {*self.operations()} if self.has("operation") else {"unicast"}
        multicast = {"multicast"} if self.features.multicast else set()
        reductions = {*_REDUCTIONS} if self.features.reduction else set()
        least = {"unicast"} | multicast
        if not least <= found <= least | reductions or bool(found & reductions) != bool(reductions):
            some = f" and some of {', '.join(sorted(reductions))}" if reductions else ""
            yield (
                f"flit: operation: found values for {', '.join(sorted(found))}; "
                f"allowed by [features]: {', '.join(sorted(least))}{some}"
            )
        if "maximum" in found and self.features.element_bits < _NARROWEST_MAXIMUM:
            yield (
                f"features: element_bits: found {self.features.element_bits}; "
                f"allowed with maximum: {_NARROWEST_MAXIMUM} and 64"
            )

    def _problems_of_reduced_bits(self) -> Iterator[str]:
        found, features = self.features.reduced_bits, self.features
        if found is None:
            return
        if features.reduction is None:
            yield "features: reduced_bits: found it; allowed: only with reduction"
        # By these bits a result is known again; elements are whole.
        step = features.element_bits if {"sum", "maximum"} & {*self.reductions()} else 1
        if not _NARROWEST_RESULT <= found <= self.payload_bits or found % step:
            whole = f", whole elements of {step}" if step > 1 else ""
            yield (
                f"features: reduced_bits: found {found}; allowed: {_NARROWEST_RESULT} to "
                f"{self.payload_bits}{whole}"
            )


def index_bits(size: int) -> int:
    """Bits of an index below ``size``, at least 1."""
    return max(1, (size - 1).bit_length())


def load_spec(path: Path, parameters: Mapping[str, int] | None = None) -> MeshSpec:
    """Read a specification; its sources must be there.

    Args:
        path: The file.
        parameters: Values that take the place of those of ``rtl.parameters``.

    Raises:
        InputError: naming the file, the field, what was found and what is allowed.
    """
    table = toml_fields(path, str(path))
    if parameters and isinstance(rtl := table.get("rtl"), dict):
        given = rtl.get("parameters")
        rtl["parameters"] = (given if isinstance(given, dict) else {}) | dict(parameters)
    try:
        spec = MeshSpec.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{path}: {_first_problem(error)}") from error
    spec._file = path.resolve()
    for key, paths, there in (
        ("sources", spec.source_files(), is_file),
        ("include_folders", spec.include_folders(), Path.is_dir),
    ):
        for missing in (place for place in paths if not there(place)):
            raise InputError(f"{path}: rtl.{key}: found no {missing}; allowed: what is there")
    return spec


def _first_problem(error: ValidationError) -> str:
    """Field, what was found and what is allowed."""
    first: Any = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "value_error":
        problem = str(first["ctx"]["error"])
    elif first["type"] == "missing":
        problem = "found nothing; this key is needed"
    else:
        problem = f"found {first['input']!r}; {first['msg']}"
    return f"{place}: {problem}" if place else problem


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
