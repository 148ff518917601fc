"""The options of a stored result, as a configuration that repeats it."""

from collections.abc import Mapping
from typing import Any

from tlm.errors import InputError
from wafertlm.options import joined_values

_ALLOWED = "allowed: a result of --json or --out"


def options_of_result(result: Any, told: str) -> dict[str, Any]:
    """What a result was asked for.

    What was not given is left out. A file of which a result keeps the content alone has to be named
    once more.

    Raises:
        InputError: beginning with ``told``, if it is no result, or names such a file.
    """
    try:
        command, options, _ = result["command"], result["options"], config_hash_of(result)
        given = _of_comparison(options) if command == "compare" else _given(options)
    except (LookupError, TypeError, AttributeError, ValueError):
        raise InputError(f"{told}: found no result of a command; {_ALLOWED}") from None
    for name, value in given.items():
        if isinstance(value, Mapping) and "hash" in value:
            raise InputError(
                f"{told}: {name}: a result keeps the content of a file, not where it is; name the "
                "file in a TOML file of --print-config"
            )
    return {"command": command} | given


def config_hash_of(result: Mapping[str, Any]) -> str:
    """Hash of a result's configuration.

    Raises:
        LookupError, TypeError: if it is no result.
    """
    return str(result["provenance"]["config_hash"])


def is_of_other_files(result: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether a result of the same options rests on files of another content."""
    if result.get("options") != stored["options"]:
        return False
    return config_hash_of(result) != config_hash_of(stored)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in options.items() if each not in (None, False, [])}


def _of_comparison(options: Mapping[str, Any]) -> dict[str, Any]:
    """What varies is written as on the command line, and is no option of the first run."""
    varied = {str(each["option"]): [*map(str, each["values"])] for each in options["vary"]}
    figures = [name.removeprefix("set:") for name in varied if name.startswith("set:")]
    first = {
        name: each
        for name, each in _given(options["options"]).items()
        if name.replace("_", "-") not in varied and name.removesuffix("_rps") not in varied
    }
    if "set" in first:
        first["set"] = [each for each in first["set"] if each.partition("=")[0] not in figures]
    return {
        "compared": options["command"],
        "vary": [f"{name}={joined_values(values)}" for name, values in varied.items()],
        "options": _given(first),
    }
