"""Names in a specification that stand for numbers, so that what a parameter says is said once."""

from typing import Any

#: The width that counts the flits of the longest packet of `_COUNTED`.
FLIT_COUNT = "flit_count"
_COUNTED = ("multicast_flits", "reduction_flits")
#: Limits that a parameter may name.
_NAMED = ("packet_flits", *_COUNTED)


def with_numbers(table: dict[str, Any]) -> dict[str, Any]:
    """A specification with numbers for limits that a parameter names, and for the width of a count.

    Raises:
        ValueError: saying what was found and what is allowed.
    """
    limits = _inner(table, "limits")
    limits = {**limits, **_numbers_of_flits(limits, _inner(_inner(table, "rtl"), "parameters"))}
    changed = {**table, "limits": limits} if limits else {**table}
    if isinstance(flit := table.get("flit"), list | tuple):
        changed["flit"] = [_counted(field, limits) for field in flit]
    return changed


def _inner(table: dict[str, Any], name: str) -> dict[str, Any]:
    """A table in a table; empty for what is none, which is told when it is read."""
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _numbers_of_flits(limits: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Limits that are named by a parameter, as its values."""
    names = {key: limits[key] for key in _NAMED if isinstance(limits.get(key), str)}
    for key, name in names.items():
        if name not in parameters:
            allowed = ", ".join(parameters) or "none is there"
            raise ValueError(
                f"limits.{key}: found '{name}'; "
                f"allowed: 1 and more, or of rtl.parameters: {allowed}"
            )
        value = parameters[name]
        if isinstance(value, int) and value < 1:
            raise ValueError(f"limits.{key}: found {name} = {value}; allowed: 1 and more")
    return {key: parameters[name] for key, name in names.items()}


def _counted(field: object, limits: dict[str, Any]) -> object:
    """A field of the flit; one that counts flits has the bits for the longest packet."""
    if not isinstance(field, dict) or field.get("bits") != FLIT_COUNT:
        return field
    longest = max((n for n in map(limits.get, _COUNTED) if isinstance(n, int)), default=0)
    if longest < 1:
        raise ValueError(
            f"flit: found bits = '{FLIT_COUNT}'; allowed with one of limits: {', '.join(_COUNTED)}"
        )
    return {**field, "bits": longest.bit_length()}
