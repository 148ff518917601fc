"""Static checks of programs: tokens, orders, and the four properties of PLMR (docs/check.md)."""

from tlm.check.check import check_program
from tlm.check.plmr import Verdict, of_transfers, verdicts
from tlm.check.report import Finding, Report, TileLimits, chip_limits

__all__ = [
    "Finding",
    "Report",
    "TileLimits",
    "Verdict",
    "check_program",
    "chip_limits",
    "of_transfers",
    "verdicts",
]
