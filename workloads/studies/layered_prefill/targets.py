"""What the study set itself on rows that nothing was fitted to, and what was met."""

from collections.abc import Mapping, Sequence
from typing import Any

_TTFT_RATIO_PCT, _TBT_RATIO_PCT, _GROUPS_PCT, _LOADS_POINTS = 30.0, 15.0, 25.0, 10.0


def judge(
    rows: Sequence[Mapping[str, Any]], orderings: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Every target with what was found and whether it is met.

    A ratio of two schedulers is off by (model ratio / paper ratio - 1), a row's ``error_pct``.
    """
    changes = [row for row in rows if row["unit"] == "% change" and row["paper"] is not None]
    found = [_order(each) for each in orderings if not each["doubt"]]
    for row in changes:
        table, figure = row["id"].split("/")[0], row["id"].split("/")[-1]
        if table == "S5.13":
            found.append(_sign(row))
        elif table == "T7":
            found.append(_within(row, row["error_points"], _LOADS_POINTS, "points"))
        elif table == "T11":
            found.append(_within(row, row["error_pct"], _GROUPS_PCT, "% of ratio"))
        elif figure.startswith("TTFT_"):
            found.append(_within(row, row["error_pct"], _TTFT_RATIO_PCT, "% of ratio"))
        elif figure.startswith("TBT_"):
            found.append(_within(row, row["error_pct"], _TBT_RATIO_PCT, "% of ratio"))
    return found


def _within(row: Mapping[str, Any], off: float, bound: float, unit: str) -> dict[str, Any]:
    return {
        "target": f"{row['id']} within {bound:g} {unit}",
        "found": off,
        "met": abs(off) <= bound,
    }


def _sign(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "target": f"{row['id']} of the paper's sign",
        "found": row["model"],
        "met": row["model"] * row["paper"] > 0,
    }


def _order(ordering: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "target": f"order of {ordering['id']}",
        "found": ordering["seeds_kept"] / ordering["seeds"],
        "met": ordering["kept"],
    }
