"""How far chip profiles are from published measurements of the chips, as studies found.

``wafertlm study NAME --record`` stores it in ``profiles.json`` beside this file.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tlm.files import whole_file

PROFILES_FILE = Path(__file__).with_name("profiles.json")


def profile_error_pct(chip: str) -> float | None:
    """Mean absolute error over the published rows that the chip's profile was not fitted to.

    None if there are none.
    """
    found = _stored().get(chip)
    return None if found is None else float(found["mean_abs_error_pct"])


def record(study: str, errors_by_chip: Mapping[str, Mapping[str, Any]]) -> None:
    """Store a study's errors by chip; they take the place of those of the same chips.

    Raises:
        InputError: if the file cannot be written.
    """
    new = {chip: {"study": study, **errors} for chip, errors in errors_by_chip.items()}
    merged = dict(sorted((_stored() | new).items()))
    with whole_file(PROFILES_FILE) as scratch:
        scratch.write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")
    _stored.cache_clear()


@cache
def _stored() -> dict[str, dict[str, Any]]:
    if not PROFILES_FILE.is_file():
        return {}
    stored: dict[str, dict[str, Any]] = json.loads(PROFILES_FILE.read_text(encoding="utf-8"))
    return stored
