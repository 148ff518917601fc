"""Compiles one model by pyverilator, in a process of its own: its tools print where they like.

Called as ``python -m cosim.verilated.compile_model FOLDER``; ``arguments.json`` in the folder says
how.
"""

import json
import sys
from pathlib import Path

from cosim.verilated.pyverilator_fit import PyVerilator


def main(folder: Path) -> None:
    """Build the model of a folder there, and load it once."""
    arguments = json.loads((folder / "arguments.json").read_text())
    PyVerilator.build(build_dir=str(folder), **arguments)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
