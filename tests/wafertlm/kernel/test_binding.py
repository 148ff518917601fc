"""What binds a kernel, in words that a table ends with."""

from typing import Any

import pytest

from wafertlm.kernel.binding import PART_NAMES, binding

_WAFER = ("kernel", "mesh-gemm", "--chip", "wse2", "--grid", "8x8", "--dtype", "fp16")


def run(**parts: int) -> dict[str, Any]:
    """A kernel's result in which so many cycles went into these parts."""
    return {
        "cycles": sum(parts.values()),
        "breakdown_cycles": dict.fromkeys(PART_NAMES, 0) | parts,
        "plan": {"engine_utilization": 0.25, "slice": {"m": 6, "n": 6, "k": 1200}},
        "memory_utilization": 0.8,
    }


@pytest.mark.parametrize("part", PART_NAMES)
def test_the_largest_part_binds_and_has_a_next_step(part: str) -> None:
    others = dict.fromkeys(PART_NAMES, 10) | {part: 70}
    found = binding(run(**others))
    assert (found.part, found.share_pct) == (part, 70)
    start = f"bound by {PART_NAMES[part]}, 70 % of the cycles. "
    assert found.told.startswith(start)
    assert found.told.endswith(f"Next: {found.next}")


def test_an_engine_below_its_peak_tells_its_slices() -> None:
    assert "Slices of m 6, n 6, k 1,200 let a busy engine reach 25% of its peak." in (
        binding(run(overhead=5)).why
    )
    assert "80% of its bandwidth" in binding(run(memory=5)).why
    bare = {"cycles": 5, "breakdown_cycles": {"overhead": 5}}
    assert binding(bare).why.endswith("longer than it multiplies.")


def test_the_table_names_the_part_and_ends_with_what_binds(wafertlm: Any) -> None:
    shown = wafertlm(*_WAFER, "--shape", "48,48,48", "--level", "perf").stdout
    assert "cycles: engine below peak" in shown
    assert "overhead" not in shown
    assert "bound by " in shown
    assert "Next: " in shown
