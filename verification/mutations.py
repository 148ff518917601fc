"""``python -m verification.mutations``: would the tests notice?

Small faults are put into the Verilog, one at a time, and the tests are run. `faults.toml` lists the
faults: a place in a file, what stands there, what is put in its stead, and the tests that ought to
fail. A fault that does not build, or at which a test fails for another reason than what the
hardware did, counts as an error of the list.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from queue import SimpleQueue

import click
from pydantic import ValidationError
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tlm.calibrated import REPOSITORY, combined_hash, file_hash, source_hashes
from tlm.errors import InputError
from verification import stored
from verification.stored import StoredRecord

FAULTS = Path(__file__).with_name("faults.toml")
RECORD = Path(__file__).with_name("mutations.json")
_COPIED = (
    "calibration", "cosim", "rtl", "tests", "tlm", "verification", "workloads", "pyproject.toml",
)  # fmt: skip
_LONGEST_S = 900
# What a file may name of others: an instance's module, or a package.
_NAMED = re.compile(r"^\s*(\w+)\s*(?:#\(|\w+\s*\()|\b(\w+)::", re.MULTILINE)
# What a test says that fails by what the hardware did; and what it may say besides if it did not.
_NOTICED = ("AssertionError", "HangError", "SimulationError", "StandstillError")
_BESIDE_THE_POINT = ("SimulationError: building ", "is stale: ", "ImportError: ")


class Fault(StoredRecord):
    """A fault: in ``file``, the only occurrence of ``old`` becomes ``new``."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


class Caught(StoredRecord):
    """What became of a fault: the first test that failed, or None if none did.

    ``content`` is the hash of the fault and of the Verilog that it is in (`content_of`).
    """

    name: str
    content: str
    caught_by: str | None


class Record(StoredRecord):
    """The last run of each fault."""

    faults: list[Caught]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A fault's result and what it took."""

    caught: Caught
    seconds: float


def read_faults(path: Path = FAULTS) -> list[Fault]:
    """The faults of the list, each checked against the sources.

    Raises:
        InputError: for a malformed entry, two of one name, or text that is not in the file once.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
        faults = [Fault.model_validate(entry) for entry in entries]
    except (KeyError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise InputError(f"{path}: {error}") from error
    names = [fault.name for fault in faults]
    for fault in faults:
        if names.count(fault.name) > 1:
            raise InputError(f"{path}: {names.count(fault.name)} faults named '{fault.name}'")
        found = (REPOSITORY / fault.file).read_text(encoding="utf-8").count(fault.old)
        if found != 1:
            raise InputError(
                f"{path}: fault '{fault.name}': its text occurs {found} times in {fault.file}, "
                "must occur once"
            )
    return faults


def content_of(fault: Fault) -> str:
    """Content hash of a fault, of the module that it is in, and of those it is made of."""
    verilog = sorted(made_of(REPOSITORY / fault.file))
    return combined_hash({**source_hashes(verilog), "fault": fault.model_dump_json()})


def made_of(module: Path) -> set[Path]:
    """A module's file and those of all modules and packages in it; each is named like its file."""
    files = {path.stem: path for path in (REPOSITORY / "rtl").rglob("*.sv")}
    found, unread = {module}, [module]
    while unread:
        named = chain(*_NAMED.findall(unread.pop().read_text()))
        new = {files[name] for name in named if name in files} - found
        found |= new
        unread += new
    return found


def to_be_run(faults: list[Fault], record: Record) -> list[Fault]:
    """The faults that have changed since they were run, or whose Verilog has."""
    known = {(caught.name, caught.content) for caught in record.faults}
    return [fault for fault in faults if (fault.name, content_of(fault)) not in known]


def run(faults: list[Fault], *, workers: int = 2) -> Iterator[Outcome]:
    """Put in one fault after the other and run its tests; outcomes as they come.

    Raises:
        InputError: if a test fails without a fault, or fails for a reason beside the point.
    """
    if not faults:  # pytest without a test's name would run all
        return
    with tempfile.TemporaryDirectory(prefix="wafertlm-mutations-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for worker in range(workers):
            copy = Path(folder) / str(worker)
            _copy_sources(copy)
            copies.put(copy)
        cache = Path(folder) / "cache"

        def attempt(fault: Fault) -> Outcome:
            copy = copies.get()
            try:
                return _attempt(fault, copy, cache)
            finally:
                copies.put(copy)

        healthy = copies.get()
        tests = tuple(dict.fromkeys(test for fault in faults for test in fault.tests))
        failed = _first_failure(tests, healthy, cache)
        copies.put(healthy)
        if failed:
            raise InputError(f"{failed} fails without a fault: there is nothing to be learnt")
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(attempt, faults)


def _copy_sources(copy: Path) -> None:
    copy.mkdir()
    for name in _COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)


def _attempt(fault: Fault, copy: Path, cache: Path) -> Outcome:
    begin = time.monotonic()
    own_cache = cache.with_name(f"{cache.name}-{fault.name}")
    with _put_in(fault, copy):
        failed = _first_failure(fault.tests, copy, own_cache)
    shutil.rmtree(own_cache, ignore_errors=True)
    caught = Caught(name=fault.name, content=content_of(fault), caught_by=failed)
    return Outcome(caught, time.monotonic() - begin)


@contextmanager
def _put_in(fault: Fault, copy: Path) -> Iterator[None]:
    """The copy with the fault; its stored calibrations stay those of the healthy hardware."""
    path = copy / fault.file
    text = path.read_text(encoding="utf-8")
    healthy = file_hash(path)
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    faulty = file_hash(path)
    results = list((copy / "calibration" / "results").glob("*.json"))
    _replace(results, healthy, faulty)
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")
        _replace(results, faulty, healthy)


def _replace(paths: list[Path], old: str, new: str) -> None:
    for path in paths:
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def _first_failure(tests: tuple[str, ...], copy: Path, cache: Path) -> str | None:
    """The first of the tests that fails in the copy, or None.

    Raises:
        InputError: if pytest cannot run them, or a test fails for a reason beside the point.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "", "-p", "no:cacheprovider"]
    environment = {"WAFERTLM_CACHE": str(cache), "WAFERTLM_EXPECT_FAILURES": "1"}
    # A group of its own, so that simulators of a test without an end can be stopped with it.
    running = subprocess.Popen(
        [*command, *tests], cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | environment, start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = running.communicate(timeout=_LONGEST_S)
    except subprocess.TimeoutExpired as error:
        os.killpg(running.pid, signal.SIGKILL)
        raise InputError(f"{', '.join(tests)}: no end within {_LONGEST_S} s") from error
    if running.returncode == 0:
        return None
    summary = re.findall(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", output, re.MULTILINE)
    if running.returncode != 1 or not summary:
        raise InputError(f"pytest cannot run {', '.join(tests)}:\n{output[-2000:]}")
    noticed = any(error in output for error in _NOTICED)
    for reason in _BESIDE_THE_POINT:
        if reason in output or not noticed:
            raise InputError(f"{summary[0]}: fails beside the point:\n{output[-2000:]}")
    return str(summary[0])


def save(outcomes: list[Outcome]) -> None:
    """Keep what became of the faults, beside what is known of the others of the list."""
    known = {caught.name: caught for caught in load().faults}
    known |= {outcome.caught.name: outcome.caught for outcome in outcomes}
    record = Record(faults=[known[fault.name] for fault in read_faults() if fault.name in known])
    stored.store({RECORD: record.model_dump_json(indent=1) + "\n"})


def load() -> Record:
    """The stored record.

    Raises:
        InputError: if it is missing or cannot be read.
    """
    return stored.load(Record, RECORD, "mutations")


@click.command(help=__doc__)
@click.option("--only", multiple=True, help="Name of a fault; again for more.")
@click.option("--all", "everything", is_flag=True, help="Also what has been run on this Verilog.")
@click.option("--workers", default=2, show_default=True, help="Faults tried at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(only: tuple[str, ...], everything: bool, workers: int, as_json: bool) -> None:
    """Try the faults, print what caught each, and record it."""
    console = Console(stderr=True)
    try:
        faults = [fault for fault in read_faults() if not only or fault.name in only]
        if unknown := set(only) - {fault.name for fault in faults}:
            raise InputError(f"no fault named {', '.join(sorted(unknown))} in {FAULTS}")
        if not (only or everything):
            faults = to_be_run(faults, load())
        tries = track(run(faults, workers=workers), "faults", len(faults), console=console)
        outcomes = list(tries)
    except InputError as error:
        console.print(f"error: {error}", style="red", markup=False)
        sys.exit(2)
    caught = sum(outcome.caught.caught_by is not None for outcome in outcomes)
    if as_json:
        found = [outcome.caught.model_dump() for outcome in outcomes]
        print(json.dumps({"faults": found, "tried": len(faults), "caught": caught}))
    else:
        Console(width=None if sys.stdout.isatty() else 140).print(_table(outcomes))
        print(f"caught {caught} of {len(faults)} faults; the others hold as recorded")
    save(outcomes)
    sys.exit(0 if caught == len(faults) else 1)


def _table(outcomes: list[Outcome]) -> Table:
    table = Table("fault", "caught by", "s")
    for outcome in outcomes:
        found = outcome.caught.caught_by or "[red]nothing[/red]"
        table.add_row(outcome.caught.name, found, f"{outcome.seconds:.0f}")
    return table


if __name__ == "__main__":
    main()
