"""Stored comparisons, and the table that the largest is stored as."""

import json
from typing import Any

import pytest

from tlm.comparisons import ChipComparison, ChipPoint
from tlm.sealed import sealed, unsealed

_POINTS = [
    ChipPoint(chip="wse2", kernel="summa", variant="serial", memory=False, case='2x2: "8,8],[8"',
              balance=1.5, at=None, lt=90, perf=92),
    ChipPoint(chip="flat32", kernel="gate", variant="", memory=True, case="4x4: 64,64",
              balance=0.1, at=88, lt=90, perf=91),
]  # fmt: skip


def test_points_on_chips_are_stored_a_line_each_and_read_whatever_its_form() -> None:
    stored = ChipComparison(sources={"a.py": "0"}, points=_POINTS)
    text = sealed(stored)
    assert '   ["flat32", "gate", "", true, "4x4: 64,64", 0.1, 88, 90, 91]\n' in text
    assert unsealed(text, ChipComparison) == stored
    assert unsealed(json.dumps(json.loads(text)), ChipComparison) == stored


@pytest.mark.parametrize(
    "table", [{"columns": ["chip", "at"], "rows": [["wse2"]]}, {"columns": [], "rows": 3}, {}, None]
)
def test_another_table_is_refused(table: Any) -> None:
    with pytest.raises(ValueError, match="allowed: columns, and rows of a value for each"):
        unsealed(json.dumps({"sources": {}, "points": table}), ChipComparison)
