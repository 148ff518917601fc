"""What happened in the routers of a run, and what never did.

A bin is a situation by its name (rtl/bench/router_coverage.sv), its count how often it came up: in
flits for a way through the router, for reductions in packets; in cycles for most others.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

#: Count of each bin.
Coverage = dict[str, int]


def read_coverage(folder: Path) -> Coverage:
    """Counts of all routers of the run that left its files in a folder.

    Raises:
        FileNotFoundError: if no router left any.
    """
    total: Counter[str] = Counter()
    files = sorted(folder.glob("coverage_*.txt"))
    if not files:
        raise FileNotFoundError(f"{folder}: found no coverage_*.txt")
    for path in files:
        for line in path.read_text().splitlines():
            count, name = line.split(" ", 1)
            total[name] += int(count)
    return dict(total)


def merge(parts: Iterable[Coverage]) -> Coverage:
    """Counts of several runs together; a bin that one of them knows is known."""
    total: Coverage = {}
    for part in parts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return total


def empty_bins(coverage: Coverage) -> list[str]:
    """Names of what never happened."""
    return [name for name, count in coverage.items() if count == 0]


def render(coverage: Coverage) -> Table:
    """A row a bin."""
    table = Table("situation in a router", "count")
    for name, count in coverage.items():
        table.add_row(name, f"{count:,}" if count else "never")
    return table
