"""Tables of files: nothing unknown is in them, and a field that does not fit is named."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from tlm.errors import InputError
from tlm.files import read_text

# What files may say: so much that no sum of it overflows, and more than anything that is built.
Count = Annotated[int, Field(gt=0, le=10**6)]
Natural = Annotated[int, Field(ge=0, le=10**6)]
Size = Annotated[int, Field(gt=0, le=2**50)]
Figure = Annotated[float, Field(gt=0, le=1e30, allow_inf_nan=False)]
Duration = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]

_LONGEST_SHOWN = 60
_DEEPEST = 50
_TAG = "kind"
_NO_FIGURES = {"name", "title", "source", "sources"}


class Table(BaseModel):
    """A table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def made(cls, fields: Mapping[str, Any], told: str) -> Self:
        """The table of some fields, each of which has to be of its own type.

        Args:
            fields: As TOML or JSON reads them.
            told: Where they stand: the file, or the option.

        Raises:
            InputError: naming that, the field, what was found and what is allowed.
        """
        hold_flat(fields, told)
        fields = _with_tuples(fields)
        try:
            return cls.model_validate(fields, strict=True)
        except ValidationError as error:
            fault = _fault(cls, fields, _most_telling(error.errors()))
            raise InputError(f"{told}: {fault}") from error

    def same_figures(self, other: "Table") -> bool:
        """Whether another table is of the same kind, and alike but for names and sources."""
        return type(self) is type(other) and self._figures() == other._figures()

    def _figures(self) -> dict[str, Any]:
        return self.model_dump(exclude=_NO_FIGURES)


def toml_fields(path: Path, told: str) -> dict[str, Any]:
    """What stands in a TOML file.

    Raises:
        InputError: naming the file, if it cannot be read or is no TOML.
    """
    try:
        fields = tomllib.loads(read_text(path, told))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{told}: not TOML: {error}") from error
    hold_flat(fields, told)
    return fields


def json_value(path: Path, told: str) -> Any:
    """What stands in a JSON file.

    Raises:
        InputError: naming the file, if it cannot be read or is no JSON.
    """
    try:
        value = json.loads(read_text(path, told))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{told}: not JSON: {error}") from error
    hold_flat(value, told)
    return value


def hold_flat(value: Any, told: str) -> None:
    """Hold that tables and lists are not within each other without end: what reads them recurs.

    Raises:
        InputError: beginning with ``told``, if they are.
    """
    level = [value] if isinstance(value, Mapping | list) else []
    for _ in range(_DEEPEST):
        inner = (each.values() if isinstance(each, Mapping) else each for each in level)
        level = [one for each in inner for one in each if isinstance(one, Mapping | list)]
        if not level:
            return
    raise InputError(f"{told}: found more than {_DEEPEST} tables or lists within each other")


def _with_tuples(value: Any) -> Any:
    """Lists as tuples: a table does not change."""
    if isinstance(value, Mapping):
        return {name: _with_tuples(item) for name, item in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _most_telling(faults: list[ErrorDetails]) -> ErrorDetails:
    """The first, or what is written in the place of a field that is missing."""
    first = faults[0]
    beside = (
        each
        for each in faults
        if each["type"] == "extra_forbidden" and each["loc"][:-1] == first["loc"][:-1]
    )
    return next(beside, first) if first["type"] == "missing" else first


def _fault(table: type[Table], fields: Mapping[str, Any], error: ErrorDetails) -> str:
    """A fault in words: field, what was found, what is allowed."""
    field, around = _place(table, fields, error)
    found, known = _shown(error["input"]), ", ".join(_known(around))
    match error["type"]:
        case "value_error":
            fault = str(error["ctx"]["error"])
        case "missing":
            needed = ", ".join(_known(around, needed=True))
            fault = f"found nothing; needed beside what may be left out: {needed}"
        case "extra_forbidden":
            fault = f"{error['msg']} (found {found}); allowed: {known}"
        case "union_tag_not_found" if isinstance(error["input"], Mapping):
            field, fault = f"{field}.{_TAG}", f"found nothing; allowed: {_tags(around)}"
        case "union_tag_invalid":
            tag = error["input"][_TAG]
            field, fault = f"{field}.{_TAG}", f"found {tag!r}; allowed: {_tags(around)}"
        case "model_type" | "model_attributes_type" | "dict_type" | "union_tag_not_found":
            fault = f"found {found}; allowed: a table with {known or 'fields'}"
        case _:
            told = error["msg"].replace("tuple", "array").replace("Tuple", "Array")
            fault = f"{told} (found {found})"
    return ": ".join(filter(None, (field, fault)))


def _place(table: type[Table], fields: Any, error: ErrorDetails) -> tuple[str, list[type[Table]]]:
    """The dotted name of a field as it stands in the file, and the tables that it may be or be in.

    A discriminated union puts its tag into the location, which is no field.
    """
    parts, around, loc = [], [table], error["loc"]
    for number, part in enumerate(loc):
        missing = error["type"] == "missing" and number == len(loc) - 1
        if isinstance(fields, Mapping) and part not in fields and not missing:
            continue  # a tag
        parts.append(str(part))
        around = _fitting(around, fields)
        if missing:
            break
        known = [each.model_fields[str(part)] for each in around if part in each.model_fields]
        around = [found for field in known for found in _tables(field.annotation)] or around
        fields = fields[part]
    return ".".join(parts), _fitting(around, fields)


def _tables(annotation: Any) -> list[type[Table]]:
    """The tables that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return [annotation]
    if get_origin(annotation) is Literal:
        return []
    return [found for part in get_args(annotation) for found in _tables(part)]


def _fitting(tables: list[type[Table]], fields: Any) -> list[type[Table]]:
    """Those of some tables that carry the tag of what was given."""
    tag = fields.get(_TAG) if isinstance(fields, Mapping) else None
    fit = [each for each in tables if tag in _tag_of(each)]
    return fit or tables


def _tag_of(table: type[Table]) -> tuple[Any, ...]:
    field = table.model_fields.get(_TAG)
    return () if field is None else get_args(field.annotation)


def _tags(tables: list[type[Table]]) -> str:
    return ", ".join(str(tag) for each in tables for tag in _tag_of(each))


def _known(tables: list[type[Table]], *, needed: bool = False) -> list[str]:
    fields = [field for each in tables for field in each.model_fields.items()]
    known = [name for name, field in fields if field.is_required() or not needed]
    return list(dict.fromkeys(known))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
