"""What a campaign on a custom mesh has found so far: one that was stopped goes on from there."""

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from calibration.routers.stored import Finding, model_hash
from calibration.routers.subject import Subject
from cosim.verilated.toolchain import tool_versions
from tlm.calibrated import CalibrationResult, source_hashes
from tlm.files import whole_file
from tlm.sealed import sealed, unsealed
from tlm.tables import Table

#: What a mesh shows before the first experiment; of it there are findings alone.
PROBING = "probing"


class Made(Table):
    """What an experiment, or the probing before them, has come to.

    Attributes:
        experiment: Its name.
        result: Its result; None if it has none.
        why: Why it has none, or of which of its scenes some were left out; empty: it is whole.
        not_represented: What the model cannot be, a line each.
        findings: Scenes that went wrong.
    """

    experiment: str
    result: CalibrationResult | None = None
    why: str = ""
    not_represented: list[str] = []
    findings: list[Finding] = []


class Part(BaseModel):
    """What has been found.

    Attributes:
        sources: Hash of each file that it rests on, by name beside the specification.
        tools: Versions of the tools.
        model: Hash of the model and the experiments.
        quick: It is of a quick campaign.
        made: Experiments that have ended.
    """

    model_config = ConfigDict(extra="forbid")

    sources: dict[str, str]
    tools: dict[str, str]
    model: str
    quick: bool
    made: list[Made] = []

    @classmethod
    def begin(cls, subject: Subject, *, quick: bool) -> "Part":
        """Nothing, of the files and tools that there are."""
        sources = source_hashes(subject.sources(), subject.spec.folder)
        return cls(sources=sources, tools=tool_versions(), model=model_hash(), quick=quick)

    def kept(self, file: Path) -> "Part | None":
        """What a file holds, if that is of the same files and tools and has results.

        What the probing found stays with them: they say what else it would.
        """
        try:
            part = unsealed(file.read_text(encoding="utf-8"), Part)
        except (OSError, ValueError):
            return None
        results = {each.experiment for each in part.made if each.result is not None}
        part.made = [each for each in part.made if each.experiment in {PROBING, *results}]
        same = part.model_copy(update={"made": []}) == self
        return part if same and results else None

    def store(self, file: Path) -> None:
        """Write it, whole or not at all."""
        with whole_file(file) as scratch:
            scratch.write_text(sealed(self), encoding="utf-8")


def resumed(part: Part, file: Path, progress: Callable[[str], None]) -> Part:
    """What a stopped campaign has left, if it is of the same files and tools; says so.

    Args:
        part: Nothing, of the files and tools that there are.
        file: Where a campaign keeps what it has found.
        progress: Told what holds.
    """
    kept = part.kept(file)
    if kept is not None:
        names = ", ".join(each.experiment for each in kept.made if each.result)
        progress(f"resuming the campaign that was stopped: {names} stored in {file.name}")
        return kept
    if file.is_file():
        progress(f"{file.name}: of other sources, tools or options; starting anew")
    return part
