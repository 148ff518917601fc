"""Every file that the program reads, as nobody writes it."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.formats import changed
from tests.hostile.readers import OTHERS, SEEDS, calibration, file_options, readers, results
from tests.hostile.rules import Judge
from tlm import calibrated

_FEW, _MANY = 25, 400
_READERS = readers()
_TIMES = [pytest.param(_FEW), pytest.param(_MANY, marks=pytest.mark.slow)]


def test_every_option_that_reads_files_is_attacked() -> None:
    found = {(name, str(each.name)) for name, each in file_options()}
    assert found == {tuple(reader.split()) for reader in _READERS} | OTHERS
    assert all(SEEDS[field] for name, field in found - OTHERS)


def attack(judge: Judge, content: bytes, path: Path, line: list[str], cases: int) -> None:
    """Hold a command to the rules with so many changes of a file."""
    path.write_bytes(content)

    @settings(max_examples=cases, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(new=changed(content, path.suffix.removeprefix(".")))
    def hold(new: bytes) -> None:
        path.write_bytes(new)
        calibrated.forget()
        judge.hold(line)

    try:
        hold()
    finally:
        path.write_bytes(content)
        calibrated.forget()


@pytest.mark.parametrize("cases", _TIMES)
@pytest.mark.parametrize("name", _READERS)
def test_files_of_options(judge: Judge, name: str, cases: int) -> None:
    line, option, seeds = _READERS[name]
    for seed, text in seeds.items():
        path = judge.folder / seed
        attack(judge, text.encode(), path, [*line, *option, str(path)], cases // len(seeds))


@pytest.mark.parametrize("cases", _TIMES)
def test_results(judge: Judge, cases: int) -> None:
    folder = judge.folder / "results"
    folder.mkdir()
    for file in map(Path, results(folder).values()):
        attack(
            judge, file.read_bytes(), file, ["report", "--results", str(folder), "--list"], cases
        )


@pytest.mark.parametrize("cases", _TIMES)
def test_calibrations(judge: Judge, monkeypatch: pytest.MonkeyPatch, cases: int) -> None:
    monkeypatch.setattr("tlm.calibrated.RESULTS_FOLDER", judge.folder)
    for name in ("unicast", "buffering"):
        line = [
            "noc",
            "--mesh",
            "4x4",
            "--traffic",
            "uniform",
            "--rate",
            "0.1",
            "--cycles",
            "50",
            "--level",
            "perf",
        ]
        attack(judge, calibration(name), judge.folder / f"{name}.json", line, cases // 2)


@pytest.mark.parametrize("cases", _TIMES)
def test_checkpoints(judge: Judge, cases: int) -> None:
    path = judge.folder / "state"
    line = "serve --model llama3-8b --chip h100x2 --scheduler chunked --workload sharegpt"
    more = ["--rate", "4", "--requests", "3", "--checkpoint", str(path)]

    @settings(max_examples=cases, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(content=st.binary(max_size=200))
    def hold(content: bytes) -> None:
        path.write_bytes(b"wafertlm serving checkpoint 1\n" + content)
        judge.hold([*line.split(), *more])

    hold()
