"""``wafertlm explore``: what it finds, that nothing is lost or done twice, and what it refuses."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wafertlm
from tlm.calibrated import REPOSITORY
from wafertlm.cli import run
from wafertlm.explore import answer as answering
from wafertlm.explore.file import read_explore_file
from wafertlm.explore.question import Question
from wafertlm.explore.space import Axis, Space

SUMMA = """
command = "kernel"
trials = 14

[options]
kernel = "summa"
chip = "flat32"
grid = "4x4"
dtype = "fp16"
level = "perf"

[parameters]
shape = { choices = ["64,64,64", "128,128,128", "64,128,64"] }
"set:noc.hop_cycles" = { low = 1, high = 4 }
receive-buffers = { choices = [1, 2] }

[objectives]
cycles = "minimize"
utilization = "maximize"

[sampler]
kind = "grid"
batch = 4
"""


def written(folder: Path, text: str = SUMMA, *changes: tuple[str, str]) -> Path:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "summa.toml"
    file.write_text(text)
    return file


def explored(wafertlm: Wafertlm, file: Path, *more: object) -> dict[str, Any]:
    ran = wafertlm("explore", file, "--json", "--workers", 1, *more)
    assert ran.status == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return {
        name: each for name, each in found.items() if name not in ("cpu_s", "wall_s", "compile_s")
    }


def test_the_front_of_a_grid_is_that_of_all_runs(wafertlm: Wafertlm, tmp_path: Path) -> None:
    found = explored(wafertlm, written(tmp_path, SUMMA, ("trials = 14", "")))
    assert (found["trials"], found["failed"], found["copies"]) == (24, 0, 0)
    figures = [tuple(row["objectives"].values()) for row in found["rows"]]
    best = {
        (cycles, use)
        for cycles, use in figures
        if not any(c <= cycles and u >= use and (c, u) != (cycles, use) for c, u in figures)
    }
    assert {tuple(each["objectives"].values()) for each in found["pareto"]} == best
    first = found["pareto"][0]
    alone = wafertlm(*shlex.split(first["command_line"])[1:], "--json")
    result = json.loads(alone.stdout)
    assert result["cycles"] == first["figures"]["cycles"] == first["objectives"]["cycles"]
    assert result["breakdown_cycles"]["compute"] == first["figures"]["breakdown_cycles.compute"]
    assert result["provenance"] == first["rests_on"]
    above = wafertlm(*shlex.split(first["command_line"])[1:], "--json", "--level", "lt")
    assert first["confirmed"]["level"] == "lt"
    assert first["confirmed"]["objectives"]["cycles"] == json.loads(above.stdout)["cycles"]


@pytest.mark.parametrize("kind", ["random", "tpe", "nsga2"])
def test_workers_change_no_byte(wafertlm: Wafertlm, tmp_path: Path, kind: str) -> None:
    results = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        file = written(folder, SUMMA, ('"grid"', f'"{kind}"'))
        out = folder / "out.json"
        status = run(["explore", str(file), "--workers", str(workers), "--out", str(out)])
        assert status == 0
        results.append(out.read_text())
    assert results[0] == results[1]


def no_run(*_: object) -> None:
    raise AssertionError("a run that was done")


def test_nothing_is_run_twice(
    wafertlm: Wafertlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, SUMMA, ('"grid"', '"random"'))
    first = explored(wafertlm, file)
    kept = tmp_path / "summa.explored"
    points = {json.dumps(row["parameters"]) for row in first["rows"]}
    assert first["copies"] == 14 - len(points) > 0
    runs = len(points) + len(first["pareto"])  # which are confirmed
    assert len([*kept.glob("*.json")]) == runs
    monkeypatch.setattr(answering, "run_variant", no_run)
    assert explored(wafertlm, file) == first
    (kept / "study.db").unlink()
    assert explored(wafertlm, file) == first
    # Another study of the same runs.
    other = (("maximize", "minimize"), ("trials = 14", 'trials = 14\nconfirm = "none"'))
    assert explored(wafertlm, written(tmp_path, file.read_text(), *other))["pareto"]


@pytest.mark.parametrize("kind", ["qmc", "tpe"])
def test_a_run_that_dies_anywhere_goes_on(
    wafertlm: Wafertlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    results = {}
    for folder in (whole, torn):
        folder.mkdir()
        file = written(folder, SUMMA, ('"grid"', f'"{kind}"'), ("trials = 14", "trials = 7"))
        deaths = 0
        while folder is torn:
            died = _dying(monkeypatch, after=3 + 4 * deaths % 7)
            if wafertlm("explore", file, "--workers", 1).status == 0:
                break
            assert died
            deaths += 1
        monkeypatch.undo()
        results[folder] = explored(wafertlm, file)
    assert deaths > 3
    assert results[whole] == results[torn]


def _dying(monkeypatch: pytest.MonkeyPatch, after: int) -> list[bool]:
    """Have a run die at its so-many-th step, of whichever kind: a choice, a run, or its end."""
    left, died = [after], list[bool]()

    def dies(kind: type, name: str) -> None:
        plain = getattr(kind, name)

        def step(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                died.append(True)
                raise KeyboardInterrupt
            return plain(*given, **named)

        monkeypatch.setattr(kind, name, step)

    from optuna import Trial

    from wafertlm.explore.study import Exploration

    monkeypatch.undo()
    dies(Axis, "suggest")
    dies(Exploration, "keep")
    dies(Exploration, "finish")
    dies(Trial, "set_user_attr")
    return died


def test_what_a_cheaper_level_rules_out_does_not_run_at_the_next(
    wafertlm: Wafertlm, tmp_path: Path
) -> None:
    at_lt = (('level = "perf"', 'level = "lt"'), ('utilization = "maximize"', ""))
    bound = ("[sampler]", "[constraints]\nutilization.at_least = 0.01\n[sampler]")
    pruning = ("[sampler]", '[pruning]\nlevels = ["perf"]\nmargin_pct = 15\n[sampler]')
    all_of_them = explored(wafertlm, written(tmp_path, SUMMA, *at_lt, bound))
    pruned = explored(wafertlm, written(tmp_path, SUMMA, *at_lt, bound, pruning))
    assert 0 < pruned["pruned"] < 14
    assert pruned["best"]["parameters"] == all_of_them["best"]["parameters"]
    assert pruned["best"]["objectives"] == all_of_them["best"]["objectives"]
    for row in pruned["rows"]:
        assert (row["state"] == "pruned") == (row["why"] == "not good enough at perf")


def test_constraints_bind_and_may_leave_none(wafertlm: Wafertlm, tmp_path: Path) -> None:
    bound = ("[sampler]", '[constraints]\n"cycles" = { at_least = 1000 }\n[sampler]')
    found = explored(wafertlm, written(tmp_path, SUMMA, bound))
    states = {row["trial"]: row["state"] for row in found["rows"]}
    for row in found["rows"]:
        within = row["objectives"]["cycles"] >= 1000
        assert states[row["trial"]] == ("complete" if within else "out of bounds")
    assert all(each["objectives"]["cycles"] >= 1000 for each in found["pareto"])
    none = ("[sampler]", '[constraints]\n"cycles" = { at_least = 1e9 }\n[sampler]')
    ran = wafertlm("explore", written(tmp_path, SUMMA, none), "--workers", 1)
    assert (ran.status, ran.stdout != "") == (1, True)
    assert "none of 14 trials is within the constraints" in ran.stderr


def test_options_that_do_not_go_together_are_failed_trials(
    wafertlm: Wafertlm, tmp_path: Path
) -> None:
    change = ("receive-buffers = { choices = [1, 2] }", 'grid = { choices = ["4x4", "64x64"] }')
    file = written(tmp_path, SUMMA, change, ('grid = "4x4"\n', ""))
    found = explored(wafertlm, file, "--trials", 12)
    failed = [row for row in found["rows"] if row["parameters"]["grid"] == "64x64"]
    assert found["failed"] == len(failed) > 0
    assert all("--grid: chip 'flat32' has 32x32 tiles" in row["why"] for row in failed)


def test_fields_of_a_model_vary(wafertlm: Wafertlm, tmp_path: Path) -> None:
    file = tmp_path / "layers.toml"
    file.write_text(
        'command = "iteration"\nconfirm = "none"\n'
        '[options]\nmodel = "qwen3-1.7b"\nchip = "flat32"\ndecode = "1@64"\n'
        '[parameters]\n"model:layers" = { choices = [14, 28] }\n'
        '[objectives]\nseconds = "minimize"\n[sampler]\nkind = "grid"\n'
    )
    found = explored(wafertlm, file)
    by_layers = {row["parameters"]["model:layers"]: row["objectives"] for row in found["rows"]}
    assert by_layers[14]["seconds"] < by_layers[28]["seconds"]
    assert found["best"]["parameters"] == {"model:layers": 14}
    assert "qwen3-1-7b-layers-14.toml" in found["best"]["command_line"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trials = 14", "trails = 14", "trails: Extra inputs .* allowed: command, trials"),
        ('"kernel"\n', '"kernal"\n', "command: found 'kernal'; allowed: noc, kernel"),
        ("dtype =", "dtyp =", "options: found 'dtyp'; allowed for kernel: kernel, chip"),
        ('chip = "flat32"\n', "", "options: kernel: chip not given"),
        ('grid = "4x4"', "grid = { a = 1 }", "options: grid: found .*; allowed: one value"),
        ("low = 1", "low = 5", "parameters.set:noc.hop_cycles: found low = 5, high = 4"),
        ("low = 1, ", "", "parameters.set:noc.hop_cycles: found no choices, nor low"),
        ("low = 1, high = 4", "choices = []", "parameters.set:noc.hop_cycles: found no choices; a"),
        ("low = 1, high = 4", "choices = [1, 2, 1]", "parameters.set:noc.hop_cycles: found the ch"),
        ("low = 1", 'low = "a"', "parameters.set:noc.hop_cycles.low: found 'a'; allowed: a num"),
        ("low = 1", "low = 0", "parameters.set:noc.hop_cycles: --set: .*greater than 0"),
        ("hop_cycles", "hop_cyles", "parameters.set:noc.hop_cyles: --set: .*data_cycles"),
        ("[1, 2]", '[1, "x"]', "parameters.receive-buffers: .*'x' is not a valid integer"),
        ("[1, 2]", "[1, [2]]", "parameters.receive-buffers.choices.1: found"),
        ("receive-buffers", '"model:layers"', "parameters.model:layers: found without options.mod"),
        ("receive-buffers", '"rtl:FifoDepth"', "parameters.rtl:FifoDepth: found without options.r"),
        ("receive-buffers", "grid", "parameters.grid: found in options, too"),
        ('"maximize"', '"max"', "objectives.utilization: Input should be .* .found 'max'"),
        ("cycles = ", "cycls = ", "objectives: found 'cycls'; allowed: cycles"),
        ('"grid"\n', '"gird"\n', "sampler.kind: Input should be 'grid'"),
        ("[sampler]", '[pruning]\nlevels = ["lt"]\n[sampler]', "pruning.levels: found lt; allowed"),
        ("trials = 14", 'confirm = "x"', "confirm: found 'x'; allowed: perf, lt, at, rtl, none"),
        ('"fp16"', '"fp17"', "all 14 trials failed: unknown dtype 'fp17'"),
        ("[objectives]", "[constraints]\ncycles.most = 1\n[objectives]", "constraints.cycles.mo"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_one_line(
    wafertlm: Wafertlm, tmp_path: Path, old: str, new: str, message: str
) -> None:
    file = written(tmp_path, SUMMA, (old, new))
    ran = wafertlm("explore", file, "--workers", 1)
    assert (ran.status, ran.stdout) == (2, "")
    told = ran.stderr.splitlines()[-1]
    assert told.startswith(f"error: {str(file)[:40]}")
    assert re.search(message, told), told


def test_what_is_no_database_leaves_nothing(wafertlm: Wafertlm, tmp_path: Path) -> None:
    (tmp_path / "study.db").write_text("none")
    file, before = written(tmp_path), sorted(tmp_path.iterdir())
    for storage, message in (
        (tmp_path / "study.db", f"sqlite:///{tmp_path}/study.db: file is not a database"),
        (Path("/dev/full"), "/dev/full: found a device or a pipe; allowed: a file"),
    ):
        ran = wafertlm("explore", file, "--workers", 1, "--storage", f"sqlite:///{storage}")
        assert (ran.status, ran.stderr) == (2, f"error: --storage: {message}\n")
        assert not storage.with_name(f"{storage.name}.lock").exists()
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("mysql://host/x", "allowed: sqlite:///FILE or postgresql://"),
        ("nothing", "allowed: sqlite:///FILE or postgresql://"),
        ("postgresql://me:secret@localhost:1/x", "me:\\*\\*\\*@localhost:1/x: connection failed"),
    ],
)
def test_storages_are_known_kinds(
    wafertlm: Wafertlm, tmp_path: Path, storage: str, message: str
) -> None:
    ran = wafertlm("explore", written(tmp_path), "--workers", 1, "--storage", storage)
    assert (ran.status, "secret" in ran.stderr) == (2, False)
    assert re.search(message, ran.stderr), ran.stderr


def test_a_file_is_for_one_run_at_a_time(wafertlm: Wafertlm, tmp_path: Path) -> None:
    database = tmp_path / "study.db"
    held = (
        "import fcntl, os, sys\n"
        f"lock = os.open({str(database) + '.lock'!r}, os.O_RDWR | os.O_CREAT)\n"
        "fcntl.lockf(lock, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\nsys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    storage = ("--storage", f"sqlite:///{database}")
    ran = wafertlm("explore", written(tmp_path), "--workers", 1, *storage)
    other.communicate(b"")
    assert (ran.status, "another run at work on it" in ran.stderr) == (2, True)
    assert wafertlm("explore", written(tmp_path), "--workers", 1, *storage).status == 0


def test_pictures_of_equal_results_are_equal(wafertlm: Wafertlm, tmp_path: Path) -> None:
    file, plots = written(tmp_path), [tmp_path / "a.svg", tmp_path / "b.svg"]
    for plot in plots:
        assert wafertlm("explore", file, "--workers", 1, "--plot", plot).status == 0
    assert plots[0].read_bytes() == plots[1].read_bytes()
    ran = wafertlm("explore", file, "--workers", 1, "--plot", tmp_path / "a.txt")
    assert (ran.status, "allowed: an ending of" in ran.stderr) == (2, True)


def test_files_of_the_document_are_read(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "explore.md").read_text()
    shown = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    whole = [each for each in shown if "command =" in each]
    pruning = [each for each in shown if "[pruning]" in each]
    assert (len(whole), len(pruning)) == (2, 1)
    mesh = (REPOSITORY / "docs" / "custom_rtl" / "mesh.toml").read_text()
    (tmp_path / "mesh.toml").write_text(mesh.replace("../../rtl", str(REPOSITORY / "rtl")))
    added = pruning[0].replace('[options]\nlevel = "lt"', "")
    for text in [*whole, whole[0].replace("[options]", '[options]\nlevel = "lt"') + added]:
        file = tmp_path / "file.toml"
        file.write_text(text)
        asked = read_explore_file(file, None, None)
        space = Space.of(asked.parameters, asked.sampler.kind, 0, "file.toml")
        Question(asked, file, tmp_path).hold(space)


def test_other_commands_run_without_optuna() -> None:
    code = "import sys, wafertlm.api\nassert not {'optuna', 'sqlalchemy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
