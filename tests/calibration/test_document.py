"""The experiment in the document of experiments runs as it stands, and prints what it says."""

import re

import pytest

from calibration.experiment import Experiment
from tlm.calibrated import REPOSITORY

TEXT = (REPOSITORY / "docs" / "experiments.md").read_text()


@pytest.mark.rtl
def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    ((code, shown),) = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)*)", TEXT)
    assert len(code.splitlines()) < 60
    found: dict[str, object] = {}
    exec(compile(code, "docs/experiments.md", "exec"), found)
    assert capsys.readouterr().out == "".join(line[4:] + "\n" for line in shown.splitlines())


def test_every_part_of_an_experiment_is_told() -> None:
    parts = {name for name in (*vars(Experiment), *Experiment.__annotations__) if name[0] != "_"}
    table = TEXT[TEXT.index("| name |") : TEXT.index("Cases of packets")]
    told = set(re.findall(r"`(\w+)`", table))
    assert parts <= told
