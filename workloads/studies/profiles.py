"""How far chip profiles are from published measurements of the chips, as studies found.

``wafertlm study NAME --record`` stores it in ``profiles.json`` beside this file.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tlm.files import whole_file
from workloads.studies.campaign import sources_hash

PROFILES_FILE = Path(__file__).with_name("profiles.json")
#: What decides the times of chips that were measured, by study: of layered prefill machines of
#: which no kernel is known, of WaferLLM kernels.
_SOURCES = {
    "layered-prefill": (
        "tlm/chips",
        "tlm/compute",
        "workloads/models",
        "workloads/serving",
        "workloads/studies/campaign.py",
        "workloads/studies/layered_prefill",
        "workloads/studies/rows.py",
    ),
    "waferllm": (
        "tlm/chips",
        "tlm/compute",
        "tlm/interconnect",
        "workloads/kernels",
        "workloads/machine",
        "workloads/models",
        "workloads/serving/price",
        "workloads/studies/waferllm",
    ),
}


class ProfileError(NamedTuple):
    """How far off a model on a chip is, in per cent; None if nothing is known, and the reason."""

    pct: float | None
    note: str

    @property
    def told(self) -> str:
        """The note, which begins with whether anything was checked."""
        return self.note if self.pct is not None else f"not checked: {self.note}"


def profile_error(chip: str, model: str | None = None) -> ProfileError:
    """Mean absolute error over published times and throughput that the profile was not fitted to.

    It is known as long as the sources that decide the figures are those it was recorded with. Of a
    machine of which no kernel is known it is that of the models that those rows are of.

    Args:
        chip: A shipped chip.
        model: What runs on it; None: a kernel by itself.
    """
    found = _stored().get(chip)
    if found is None:
        return ProfileError(
            None, "profile_pct is null: no published measurements of this chip are known here"
        )
    models = ", ".join(found["models"])
    of_kernels = found["study"] == "waferllm"
    if not of_kernels and model not in found["models"]:
        return ProfileError(
            None, f"profile_pct is null: the published rows of this chip are of {models}"
        )
    if found["sources"] != profile_sources(found["study"]):
        return ProfileError(
            None,
            "profile_pct is null: the sources have changed since it was recorded; "
            f"'wafertlm study {found['study']} --record' does so anew",
        )
    return ProfileError(
        float(found["mean_abs_error_pct"]),
        f"profile_pct is the mean over {found['rows']} published times of this chip that its "
        f"profile was not fitted to ({models})",
    )


def profile_sources(study: str) -> str:
    """Content of the sources that decide a profile's error, as a study found it."""
    return sources_hash(_SOURCES[study])


def record(study: str, errors_by_chip: Mapping[str, Mapping[str, Any]]) -> None:
    """Store a study's errors by chip; they take the place of those of the same chips.

    Raises:
        InputError: if the file cannot be written.
    """
    source = {"study": study, "sources": profile_sources(study)}
    new = {chip: source | dict(errors) for chip, errors in errors_by_chip.items()}
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
