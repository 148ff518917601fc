"""The built distribution, installed by itself in an empty home, runs what the README shows."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from cosim.verilated.cache import cache_folder
from tests.conftest import Ran
from tests.documents import commands, console_blocks, run_shown
from wafertlm.cli import COMMANDS

REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
_STUDY = "wafertlm study waferllm --quick"


class Installed(NamedTuple):
    """An installation of the wheel.

    Attributes:
        scripts: Folder of its programs.
        work: The user's working folder.
        home: The user's home.
    """

    scripts: Path
    work: Path
    home: Path

    def run(self, line: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a line as a shell would, with nothing of this checkout at hand but the settings."""
        kept = ("LANG", "NUMBA_NUM_THREADS", "TMPDIR")
        environment = {name: os.environ[name] for name in kept if name in os.environ} | settings
        environment |= {"HOME": str(self.home), "PATH": f"{self.scripts}:/usr/bin:/bin"}
        return subprocess.run(
            shlex.split(line), cwd=self.work, env=environment, capture_output=True, text=True
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in a new environment, which finds what it depends on where this one has it."""
    folder = tmp_path_factory.mktemp("wheel")
    sources, environment = folder / "sources", folder / "environment"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (REPOSITORY / name).exists():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, sources / name, follow_symlinks=False)
    _pip("wheel", "--no-deps", "--no-build-isolation", "-w", folder, sources)
    shutil.rmtree(sources)
    venv.create(environment, with_pip=False, symlinks=True)
    (site,) = environment.glob("lib/python*/site-packages")
    _pip("--python", environment, "install", "--no-deps", "--no-index", *folder.glob("*.whl"))
    (site / "dependencies.pth").write_text(f"{Path(click.__file__).parents[1]}\n")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    return Installed(environment / "bin", work, home)


def _pip(*arguments: object) -> None:
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *quiet, *map(str, arguments)], check=True)


def _readme() -> str:
    return (REPOSITORY / "README.md").read_text(encoding="utf-8")


def _commands() -> list[str]:
    lines = (line.strip().split("  #")[0].strip() for line in _readme().splitlines())
    shown = [line for line in lines if line.split(" ")[0] == "wafertlm" and _names_one(line)]
    # All that is stored holds, as the test of `doctor` shows; the campaign would compare the levels
    # once more, which takes an hour. The studies take ten minutes each: a short one runs instead.
    long = [line for line in shown if line.startswith("wafertlm study ")]
    return [line for line in shown if line not in ("wafertlm calibrate", *long)] + [_STUDY]


def _names_one(line: str) -> bool:
    """Whether it is a line for the shell, not one of prose."""
    return line.split(" ")[1] in COMMANDS


def test_every_command_of_the_readme_runs(installed: Installed) -> None:
    for name in sorted(set(re.findall(r"docs/custom_rtl/(\w+)/", "\n".join(_commands())))):
        shown = name.replace("_", "-")
        ran = installed.run(f"wafertlm show router {shown} --out docs/custom_rtl/{name}")
        assert ran.returncode == 0, ran.stderr
    example = (REPOSITORY / "docs" / "explore.md").read_text(encoding="utf-8")
    asked = re.findall(r"```toml\n(.*?)```", example, re.DOTALL)[0]
    (installed.work / "FILE.toml").write_text(
        asked.replace("trials = 16", "trials = 4\nconfirm = 'none'")
    )
    for line in _commands():
        # Models in Verilog are those of this checkout, whose content is the same; the next test
        # builds one.
        ran = installed.run(line, WAFERTLM_CACHE=str(cache_folder()))
        # A check may find what it looks for, and then says so.
        allowed = (0, 1) if line.startswith("wafertlm check ") else (0,)
        assert ran.returncode in allowed, f"{line}\n{ran.stderr[-2000:]}"
        assert ran.stdout, line


def test_the_worked_example_prints_what_the_readme_shows(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two routers are calibrated, their gates are counted, and each serves a model."""
    monkeypatch.chdir(installed.work)

    def wafertlm(*words: object) -> Ran:
        line = shlex.join(["wafertlm", *map(str, words)])
        ran = installed.run(line, WAFERTLM_CACHE=str(cache_folder()))
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    shown = [each for block in console_blocks(_readme()) for each in commands(block)]
    assert any(each.line.startswith("wafertlm compare serve") for each in shown)
    for each in shown:
        run_shown(each, wafertlm, near="compare noc" not in each.line)


def test_what_is_built_is_kept_among_the_users_caches(installed: Installed) -> None:
    ran = installed.run(
        "wafertlm noc --mesh 2x2 --traffic uniform --rate 0.1 --cycles 50 --level rtl --json"
    )
    assert ran.returncode == 0, ran.stderr
    assert [*(installed.home / ".cache" / "wafertlm").glob("*/whole")]
    (site,) = installed.scripts.parent.glob("lib/python*/site-packages")
    assert not (site / "build").exists()


def test_it_is_the_wheel_that_runs_and_it_is_well(installed: Installed) -> None:
    where = installed.run("python -c 'import wafertlm; print(wafertlm.__file__)'").stdout
    assert where.startswith(str(installed.scripts.parent))
    ran = installed.run("wafertlm doctor")
    assert ran.returncode == 0, ran.stdout
    assert "experiments, RTL and models unchanged" in " ".join(ran.stdout.split())
