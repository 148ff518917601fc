"""An experiment without RTL, and a repository of its own for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from calibration.experiment import EXACT, Parameters
from tlm.calibrated import Parameter, forget


@dataclass(frozen=True)
class FakeModel:
    name: str
    built: list[str] = field(compare=False)

    def build(self) -> None:
        self.built.append(self.name)


class FakeExperiment:
    """Cases are whole numbers; the RTL doubles them and adds what its source says.

    Attributes:
        source: Its Verilog: a number.
        measured: Every batch of cases that was measured.
        built: Names of the models that were built, in order.
        offset_of_model: What the model adds to its predictions.
    """

    subject = "numbers"
    seed = 5
    targets = EXACT
    untried: Sequence[str] = ("numbers below one",)

    def __init__(self, source: Path, name: str = "fake") -> None:
        self.name = name
        self.source = source
        self.sources: Sequence[Path] = [source]
        self.measured: list[list[int]] = []
        self.built: list[str] = []
        self.offset_of_model = 0.0
        self.checked = [3, 4]

    def fit_cases(self) -> list[int]:
        return [1, 2]

    def check_cases(self, *, quick: bool) -> list[int]:
        return self.checked[:1] if quick else self.checked

    def rtl(self, case: int) -> FakeModel:
        return FakeModel("small" if case < 4 else "large", self.built)

    def measure(self, cases: Sequence[int]) -> list[float]:
        self.measured.append(list(cases))
        return [2.0 * case + float(self.source.read_text()) for case in cases]

    def identify(self, cases: Sequence[int], values: Sequence[float]) -> dict[str, Parameter]:
        return {"offset": Parameter.exact(round(values[0] - 2 * cases[0]), "cycles")}

    def predict(self, parameters: Parameters, cases: Sequence[int]) -> list[float]:
        offset = parameters["offset"].value + self.offset_of_model
        return [2 * case + offset * (case != 3) for case in cases]

    def label(self, case: int) -> str:
        return f"case {case}"

    def situation(self, case: int) -> str:
        return "odd numbers" if case % 2 else "even numbers"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that stands for the repository, with an empty folder of results."""
    results = tmp_path / "calibration" / "results"
    results.mkdir(parents=True)
    monkeypatch.setattr("tlm.calibrated.REPOSITORY", tmp_path)
    monkeypatch.setattr("tlm.calibrated.RESULTS_FOLDER", results)
    monkeypatch.setattr("calibration.store.RESULTS_FOLDER", results)
    monkeypatch.setattr("calibration.store.REPOSITORY", tmp_path)
    for module in ("tlm.comparisons", "calibration.store"):
        for file in ("levels", "tiles"):
            path = tmp_path / "calibration" / f"{file}.json"
            monkeypatch.setattr(f"{module}.{file.upper()}_FILE", path)
    forget()
    yield tmp_path
    forget()


@pytest.fixture
def fake(repository: Path) -> FakeExperiment:
    """The experiment, its one source in the repository."""
    source = repository / "rtl" / "fake.sv"
    source.parent.mkdir()
    source.write_text("0")
    return FakeExperiment(source)
