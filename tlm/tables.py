"""Tables of files: nothing unknown is in them, and a field that does not fit is named."""

import tomllib
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from tlm.errors import InputError


class Table(BaseModel):
    """A table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def read(cls, path: Path, **given: Any) -> Self:
        """A TOML file's table, with fields that are ``given`` in place of its own.

        Raises:
            InputError: naming the file and the field that does not fit.
        """
        try:
            return cls.model_validate(tomllib.loads(path.read_text(encoding="utf-8")) | given)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            fault = f"{first['msg']} (found {first['input']!r})"
            if first["type"] == "value_error":
                fault = str(first["ctx"]["error"])
            raise InputError(": ".join(filter(None, (path.name, field, fault)))) from error
