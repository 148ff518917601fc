"""What several commands read alike."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from tlm.errors import InputError
from tlm.files import names_file
from wafertlm.output import config_hash

if TYPE_CHECKING:  # slow to import, which help need not wait for
    from tlm.tables import Table

_GRID = re.compile(r"([1-9][0-9]{0,8})x([1-9][0-9]{0,8})")


def parse_grid(option: str, text: str) -> tuple[int, int]:
    """Rows and columns from ``ROWSxCOLS``.

    Raises:
        InputError: naming the option, if it has another form.
    """
    found = _GRID.fullmatch(text)
    if found is None:
        raise InputError(f"{option}: found '{text}'; write ROWSxCOLS, such as 8x8")
    return int(found[1]), int(found[2])


def parse_group(text: str | None) -> tuple[int, int] | None:
    """Rows and columns of ``--group``; None if a kernel finds them.

    Raises:
        InputError: if it has another form.
    """
    return None if text in (None, "auto") else parse_grid("--group", text)


def dashed(field: str) -> str:
    """An option as the command line calls it, by its field, where no `Flag` gives another name."""
    return "--" + field.replace("_", "-")


def joined_values(values: Iterable[str]) -> str:
    """Values that an option takes in turn, as ``--vary`` has them: `separate_values` of it."""
    texts = list(values)
    return (";" if any("," in text for text in texts) else ",").join(texts)


def separate_values(text: str) -> list[str]:
    """Each of some values; those that have commas of their own are told apart by semicolons."""
    return text.split(";" if ";" in text else ",")


class Flag(NamedTuple):
    """How a command calls a field of its options.

    Attributes:
        name: If it is not that of the field.
        metavar: What its value is called.
    """

    name: str | None = None
    metavar: str | None = None


NAME_OR_FILE = Flag(metavar="NAME|FILE")


def chip_told(options: Mapping[str, Any]) -> str:
    """A chip in words, from the options of a result: its name, and what was changed."""
    changes = options.get("set")
    return f"{options['chip']}{' with ' + ', '.join(changes) if changes else ''}"


def recorded(options: Any, **found: Any) -> dict[str, Any]:
    """Options as a result keeps them: chips and models by name, changes only if there are any.

    Args:
        options: A record of options, a dataclass.
        found: What its fields name: a chip, a model.
    """
    kept = asdict(options) | {field: item.name for field, item in found.items()}
    if not kept["set"]:
        del kept["set"]
    return kept


def contents(options: Any, **found: "Table") -> dict[str, str]:
    """Hashes of what files hold, by the fields that name them; else as `recorded`."""
    return {
        field: config_hash(item.model_dump())
        for field, item in found.items()
        if names_file(getattr(options, field))
    }
