"""Checks of the kernels of a layer, and of the methods of a product side by side."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tlm.check import Finding, Report, Verdict, check_program, chip_limits, verdicts
from wafertlm.kernel import Setup
from wafertlm.output import Progress

GEMM_METHODS = ("allgather-gemm", "summa", "cannon", "mesh-gemm")
GEMV_METHODS = ("pipeline-gemv", "ring-gemv", "mesh-gemv")
_LETTERS = "PLMR"


@dataclass(frozen=True, slots=True)
class ToCheck:
    """A kernel that is checked.

    Attributes:
        operator: What it computes.
        count: How often it runs.
        setup: The kernel on its tiles.
        alike: Programs with the same differ in lengths alone, and are walked over once.
    """

    operator: str
    count: int
    setup: Setup
    alike: Hashable


@dataclass(frozen=True, slots=True)
class CheckedKernel:
    """A kernel and what was found.

    Attributes:
        what: The kernel.
        report: Of its program, or of one that is alike.
        verdicts: On P, L, M and R, M by all of its own buffers. P is not judged of a pass by each
            tile for itself: a short vector has elements for a few tiles alone.
    """

    what: ToCheck
    report: Report
    verdicts: tuple[Verdict, ...]

    def record(self) -> dict[str, Any]:
        """Its line in the result."""
        options = self.what.setup.options
        return {
            "operator": self.what.operator,
            "kernel": options.kernel,
            "shape": options.shape,
            "place": f"{self.what.setup.place.rows}x{self.what.setup.place.cols}",
            "count": self.what.count,
            "holds": not self.findings,
            "verdicts": [verdict_record(each) for each in self.verdicts],
            "findings": [asdict(finding) for finding in self.findings],
        }

    @property
    def findings(self) -> list[Finding]:
        """What does not hold: that of the report, but memory by the kernel's own buffers."""
        found = [each for each in self.report.findings if each.rule != "memory"]
        memory = self.verdicts[_LETTERS.index("M")]
        if not memory.holds:
            message = f"buffers take {memory.found} bytes; a tile has {memory.bound}"
            found.append(Finding("memory", message))
        return found


def check_kernels(kernels: Sequence[ToCheck], progress: Progress | None) -> list[CheckedKernel]:
    """Check some kernels, those that are alike once.

    Raises:
        InputError: if an operation does not fit its program, or a check the machine's memory.
    """
    reports: dict[Hashable, Report] = {}
    checked = []
    for done, each in enumerate(kernels):
        if progress is not None:
            progress(done, len(kernels))
        setup, place = each.setup, each.setup.place
        if each.alike not in reports:
            reports[each.alike] = check_program(setup.program, chip_limits(setup.chip))
        report = reports[each.alike]
        p, latency, m, r = verdicts(report, (place.rows, place.cols))
        if not report.latency.transfers:
            p = replace(p, holds=True, bound=None)
        taken = setup.program.tile_bytes
        fits = m.bound is None or taken <= m.bound
        own = replace(m, measure="bytes of a tile's buffers", found=taken, holds=fits)
        checked.append(CheckedKernel(each, report, (p, latency, own, r)))
    return checked


def of_layer(
    checked: Sequence[CheckedKernel], weights: Iterable[Verdict] = ()
) -> list[dict[str, Any]]:
    """The verdicts on all kernels together: of each letter the one nearest to its bound, or past.

    Args:
        checked: The kernels.
        weights: Verdicts on what a tile keeps beside them.
    """
    of = [(each.what.operator, verdict) for each in checked for verdict in each.verdicts]
    of += [("weights", verdict) for verdict in weights]
    found = []
    for letter in _LETTERS:
        own = [(name, verdict) for name, verdict in of if verdict.letter == letter]
        name, worst = max(own, key=lambda pair: _past(pair[1]))
        found.append(verdict_record(worst) | {"operator": name})
    return found


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """A verdict as results hold it."""
    fields = asdict(verdict)
    return {"property": fields.pop("letter")} | fields


def _past(verdict: Verdict) -> tuple[bool, float]:
    """Whether it misses, and how much of its bound it takes."""
    if verdict.letter == "P":
        return not verdict.holds, -verdict.found if verdict.bound else -2.0
    return not verdict.holds, verdict.found / (verdict.bound or 1)
