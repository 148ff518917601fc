"""``python -m tests.hostile.kill``: end commands at random moments, and see what is left.

Each runs in a copy of the sources, once undisturbed. Then it is ended by SIGKILL or SIGTERM,
every other time while a program of its own runs or a file is being written, and begun again. It
has to leave the same bytes as the undisturbed one, no process, and nothing in temporary folders.

Whole campaigns would take days so. Those of the copies make two experiments and compare the levels
on a few cases, on tiles in Verilog too. They store what whole ones do, but for streams of blocks.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path

import click

_REPOSITORY = Path(__file__).parents[2]
_SOURCES = ("wafertlm", "tlm", "cosim", "calibration", "workloads", "rtl", "verification", "docs")
_MARK = "WAFERTLM_KILLED"
#: So long a process may take to be gone: the simulator of a killed campaign ends its run.
_GONE_S = 180.0
_LONGEST_S = 1800.0
#: How often a command begins until it is ended as it runs; and as it is at work, if it is to be.
_MOST_TRIES, _TRIES_AT_WORK = 10, 3
_SERVE = (
    *("serve", "--model", "llama3-8b", "--chip", "h100x2", "--scheduler", "chunked"),
    *("--workload", "sharegpt", "--rate", "4", "--requests", "2000", "--out", "out/s.json"),
    *("--requests-csv", "out/s.csv", "--checkpoint", "out/state", "--checkpoint-every", "0.05"),
)
_MESH = "docs/custom_rtl/mask_mesh/mask_mesh.toml"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A command that is killed.

    Attributes:
        commands: What runs, side by side.
        left: Files and folders of which every byte counts.
        weight: Which part of all ends are its own: those that take long have few.
        removed: Files that are missing at the beginning.
        is_cold: No Verilog is built yet.
    """

    commands: tuple[tuple[str, ...], ...]
    left: tuple[str, ...]
    weight: int
    removed: tuple[str, ...] = ()
    is_cold: bool = False


_STORED = ("calibration", "docs", "README.md")
_MADE, _IDENTIFIED = ("systolic", "memory-bandwidth"), ("buffering", "unicast")
_FILES = tuple(f"calibration/results/{name}.json" for name in _MADE)
_QUICK, _TWO = ("calibrate", "--quick"), ("--workers", "2")
_STUDY = ("study", "waferllm", "--quick", "--resume", "kept", "--out", "out/f.json")
_RTL = ("calibrate", "--rtl", _MESH, "--store-quick")
SCENARIOS = {
    "serve": Scenario((_SERVE,), ("out",), 22),
    "report": Scenario((("report", "--out", "out/page.html"),), ("out",), 14),
    "study": Scenario((_STUDY,), ("out",), 12),
    "quick": Scenario((_QUICK,), _STORED, 10),
    "quick-two-workers": Scenario(((*_QUICK, *_TWO),), _STORED, 10),
    "store": Scenario((("calibrate",),), _STORED, 10, _FILES),
    "store-two-workers": Scenario((("calibrate", *_TWO),), _STORED, 10, _FILES),
    "two-on-a-cold-cache": Scenario((("calibrate",),) * 2, _STORED, 4, _FILES, is_cold=True),
    "rtl": Scenario((_RTL,), (str(Path(_MESH).parent),), 8),
}
#: What is added to sources of the copies.
_SHORTER = {
    "calibration/memory/experiments.py": """
_DEPTHS, PATTERNS = _DEPTHS[:1], dict([*PATTERNS.items()][:2])
""",
    "calibration/campaign.py": f"""
EXPERIMENTS = tuple(each for each in EXPERIMENTS if each.name in {_MADE})
""",
    "calibration/routers/custom.py": f"""
_all_experiments = experiments


def experiments(subject: Subject) -> list[Experiment[Any]]:
    return [each for each in _all_experiments(subject) if each.name in {_IDENTIFIED}]
""",
    "calibration/levels/tiles.py": """
COMPARED, _all_cases = COMPARED[:1], cases


def cases(tiles: Tiles) -> Iterator[TileCase]:
    return islice(_all_cases(tiles), 2)
""",
    "calibration/levels/models.py": """
KERNELS = {"softmax": KERNELS["softmax"]}
""",
    "calibration/levels/chips.py": """
CHIPS, GRIDS, _all_points = {"flat32": CHIPS["flat32"]}, GRIDS[:1], chip_points


def chip_points(
    seed: int, chips: Sequence[str] = tuple(CHIPS), grids: Sequence[Grid] = GRIDS
) -> Iterator[ChipPoint]:
    for _, point in zip(range(3), _all_points(seed, chips, grids)):
        yield point
""",
}


class Place:
    """A copy of the sources, in which commands run and are ended.

    Args:
        folder: Where it is made.
        scenario: What runs there.
        kept: Sources as they were at first, of which this one is a copy: others may change them.
    """

    def __init__(self, folder: Path, scenario: Scenario, kept: Path) -> None:
        self.folder, self.scenario = folder, scenario
        self.sources, self.temporary = folder / "sources", folder / "temporary"
        self.mark = f"{os.getpid()}-{folder.name}"
        shutil.copytree(kept, self.sources)
        for name in scenario.removed:
            (self.sources / name).unlink()
        self.temporary.mkdir()
        cache = folder / "cache" if scenario.is_cold else _REPOSITORY / "build"
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(self.sources),
            "TMPDIR": str(self.temporary),
            "WAFERTLM_CACHE": str(cache),
            _MARK: self.mark,
        }

    def start(self) -> list[subprocess.Popen[bytes]]:
        """Begin the commands."""
        return [
            subprocess.Popen(
                [sys.executable, "-m", "wafertlm.cli", *command],
                cwd=self.sources,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=(self.folder / "stderr").open("wb"),
                start_new_session=True,
            )
            for command in self.scenario.commands
        ]

    def finish(self) -> float:
        """Run the commands to their end; the seconds that they took."""
        begin = time.monotonic()
        for child in self.start():
            assert child.wait(_LONGEST_S) == 0, (self.folder / "stderr").read_text()[-2000:]
        return time.monotonic() - begin

    def end(self, how: signal.Signals, after_s: float, *, at_work: bool) -> bool:
        """Begin, and end after a time; or from then on when something is stored or a tool runs.

        Returns:
            Whether they ran still.
        """
        children = self.start()
        time.sleep(after_s)
        while at_work and any(c.poll() is None for c in children) and not self._at_work(children):
            time.sleep(0.002)
        ended = [child.poll() is None for child in children]
        for child in children:
            child.send_signal(how)
        for child in children:
            status = child.wait(_GONE_S)
            # Before the command has its handler, SIGTERM ends Python as it ends any program.
            assert how == signal.SIGKILL or status in (0, 130, -how), f"status {status}"
        return any(ended)

    def _at_work(self, children: Sequence[subprocess.Popen[bytes]]) -> bool:
        """Whether a program of the command's runs, or a file is begun."""
        for child in children:
            tasks = Path(f"/proc/{child.pid}/task").glob("*/children")
            if any(_text(task).strip() for task in tasks):
                return True
        begun = (self.sources / folder for folder in ("out", "kept", *self.scenario.left))
        return any(folder.is_dir() and any(folder.glob(".*.*")) for folder in begun)

    def hold_gone(self) -> None:
        """Hold that no process is left.

        Raises:
            AssertionError: naming those that are.
        """
        until = time.monotonic() + _GONE_S
        while left := self._processes():
            assert time.monotonic() < until, f"left running: {left}"
            time.sleep(0.1)

    def _processes(self) -> list[str]:
        mark = f"{_MARK}={self.mark}"
        found = (
            path.parent for path in Path("/proc").glob("[0-9]*/environ") if mark in _text(path)
        )
        return [_text(process / "cmdline").replace("\0", " ") for process in found]

    def bytes_left(self) -> dict[str, str]:
        """Hash of every file that counts, and what lies in the temporary folder."""
        found = {}
        for name in self.scenario.left:
            place = self.sources / name
            for path in [place] if place.is_file() else sorted(place.rglob("*")):
                if path.is_file() and path.parent.name != "__pycache__":
                    digest = hashlib.sha256(path.read_bytes()).hexdigest()
                    found[str(path.relative_to(self.sources))] = digest
        return found | {path.name: "temporary" for path in self.temporary.iterdir()}


def keep_sources(folder: Path) -> None:
    """Copy the sources, with what is compiled of them and shorter campaigns.

    A comparison whose sources are others is stale: of each that stands on these there is a shorter
    one, else it would be made in full.
    """
    for name in _SOURCES:
        shutil.copytree(_REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy2(_REPOSITORY / "README.md", folder)
    for name, shorter in _SHORTER.items():
        with (folder / name).open("a") as file:
            file.write(shorter)
    for name in ("out", "results"):
        (folder / name).mkdir()


def _keep_compiled(sources: Path, kept: Path) -> None:
    """Copy what a run has compiled to the sources from which later ones are copied."""
    for folder in sources.rglob("__pycache__"):
        shutil.copytree(folder, kept / folder.relative_to(sources), dirs_exist_ok=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def killed(name: str, count: int, seed: int, kept: Path) -> Mapping[str, int]:
    """End a scenario's commands so often; how often they ran still, and while at work.

    Raises:
        AssertionError: if anything is left, or other bytes than by an undisturbed run.
    """
    scenario, drawn = SCENARIOS[name], random.Random(f"{name} {seed}")
    met = {"ended": 0, "at work": 0, "SIGKILL": 0, "SIGTERM": 0}
    with tempfile.TemporaryDirectory() as folder:
        first = Place(Path(folder) / "first", replace(scenario, is_cold=False), kept)
        first.finish()
        _keep_compiled(first.sources, kept)
        undisturbed = Place(Path(folder) / "undisturbed", scenario, kept)
        took_s = undisturbed.finish()
        wanted = undisturbed.bytes_left()
        click.echo(f"{name}: {took_s:.0f} s undisturbed", err=True)
        for number in range(count):
            how = (signal.SIGKILL, signal.SIGTERM)[number // 2 % 2]
            for again in range(_MOST_TRIES):  # those that have come to their end are ended sooner
                place = Place(Path(folder) / str(number), scenario, kept)
                at_work = number % 2 == 1 and again < _TRIES_AT_WORK
                if place.end(how, drawn.uniform(0, took_s / 2**again), at_work=at_work):
                    met["ended"] += 1
                    met["at work"] += at_work
                    met[how.name] += 1
                    break
                shutil.rmtree(place.folder)
            else:
                raise AssertionError(f"{name}, number {number}: it always was at its end")
            place.hold_gone()
            place.finish()
            found = place.bytes_left()
            click.echo(f"{name}, number {number}: {how.name}", err=True)
            changed = {name for name in wanted | found if wanted.get(name) != found.get(name)}
            assert not changed, f"{name}, number {number}, {how.name}: {sorted(changed)}"
            shutil.rmtree(place.folder)
    return met


@click.command
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="Of all.")
@click.option("--scenario", "names", multiple=True, type=click.Choice(list(SCENARIOS)))
@click.option("--seed", type=int, default=0, show_default=True, help="Of the moments.")
def main(count: int, names: tuple[str, ...], seed: int) -> None:
    """End commands at random moments, begin them again, and compare what is left."""
    names = names or tuple(SCENARIOS)
    ends = [0, *accumulate(SCENARIOS[name].weight for name in names)]
    with tempfile.TemporaryDirectory() as folder:
        keep_sources(kept := Path(folder) / "kept")
        for name, (first, last) in zip(names, pairwise(ends), strict=True):
            share = count * last // ends[-1] - count * first // ends[-1]
            if share:
                met = killed(name, share, seed, kept)
                click.echo(json.dumps({"scenario": name, "runs": share, **met}))


if __name__ == "__main__":
    main()
