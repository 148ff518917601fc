"""Stored figures with a digest of their content, which tells what was changed by hand."""

import hashlib
import json
from typing import Any, TypeVar

from pydantic import BaseModel

_FIELD = "digest"
_Model = TypeVar("_Model", bound=BaseModel)


class BrokenSealError(ValueError):
    """A digest that is not that of the content, or is not there."""


def sealed(content: BaseModel) -> str:
    """The content as JSON text, its digest the last field."""
    return _with_digest(content.model_dump_json(indent=1))


def unsealed(text: str, kind: type[_Model]) -> _Model:
    """What `sealed` made text of.

    Raises:
        ValueError: if it is no JSON text, the digest is not that of the content, or not there.
        ValidationError: for fields that are not those of the kind.
    """
    untouched = _content(text)
    if untouched is not None:
        return kind.model_validate_json(untouched)
    try:
        fields: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Invalid JSON: {error}") from error
    digest = fields.pop(_FIELD, None) if isinstance(fields, dict) else None
    content = kind.model_validate_json(json.dumps(fields))
    wanted = _digest(content.model_dump_json(indent=1))
    if digest != wanted:
        found = "none" if digest is None else f"'{digest}'"
        raise BrokenSealError(
            f"{_FIELD}: found {found}, but the content has '{wanted}': it is not what was stored"
        )
    return content


def _content(text: str) -> str | None:
    """The content's text of what `sealed` made; None if a character is not as it was made."""
    content = text[: max(0, text.rfind(f',\n "{_FIELD}": '))] + "\n}"
    return content if text == _with_digest(content) else None


def _with_digest(content: str) -> str:
    return f'{content.removesuffix("}").rstrip()},\n "{_FIELD}": "{_digest(content)}"\n}}\n'


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
