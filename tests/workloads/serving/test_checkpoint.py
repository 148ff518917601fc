"""A run that is stopped anywhere goes on to the same figures and rows."""

import hashlib
import json
import pickle
import signal
import subprocess
import sys
import time
import tracemalloc
from array import array
from collections import deque
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.serving.served import LoggedModel, trace_of
from tlm.errors import InputError
from workloads.serving.engine import run as running
from workloads.serving.engine.checkpoint import Checkpoint
from workloads.serving.engine.run import Limits, Pools, Watch, run, run_disaggregated
from workloads.serving.load.traces import Trace
from workloads.serving.price.cost import Batch
from workloads.serving.result.metrics import Slo
from workloads.serving.result.rows import row_file
from workloads.serving.schedulers import Chunked, Layered, Scheduler, Static


class StoppedError(Exception):
    """The run has been stopped."""


class Stopping(Checkpoint):
    """Keeps the first state and stops the run, if there was none to go on from."""

    def load(self) -> dict[str, Any] | None:
        self.stops = not self.path.exists()
        return super().load()

    def save(self, state: dict[str, Any]) -> None:
        if self.stops:
            super().save(state)
            raise StoppedError


def _uneven(batch: Batch) -> float:
    return 0.01 * batch.new_tokens + 0.001 * (batch.prefill_pairs + batch.decode_pairs)


def _serve(trace: Trace, scheduler: Scheduler, pools: bool, watch: Watch) -> dict[str, Any]:
    model = LoggedModel(_uneven, layers=5, kv_sram_tokens=100)
    limits = Limits(300, 4, kv_sram_tokens=100)
    if not pools:
        return run(trace, scheduler, model, slo=Slo(2.0, 300.0), limits=limits, watch=watch)
    halves = Pools(model, model, 0.5, 0.5, 8, 800.0, 0.25)
    return run_disaggregated(
        trace, scheduler, halves, slo=Slo(2.0, 300.0), limits=limits, watch=watch
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.integers(1, 60), st.integers(1, 40)), min_size=2, max_size=12
    ).map(lambda requests: trace_of(*sorted(requests))),
    st.one_of(
        st.builds(Static), st.builds(Chunked, st.integers(1, 40)), st.builds(Layered, st.just(3))
    ),
    st.booleans(),
    st.integers(1, 150),
)
def test_a_stopped_run_goes_on_to_the_same_figures_and_rows(
    tmp_path_factory: pytest.TempPathFactory,
    trace: Trace,
    scheduler: Scheduler,
    pools: bool,
    steps: int,
) -> None:
    folder = tmp_path_factory.mktemp("run")
    whole, table = folder / "whole.csv", folder / "table.csv"
    with row_file(whole, resumable=False) as rows:
        expected = _serve(trace, deepcopy(scheduler), pools, Watch(rows=rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "_STEPS_BETWEEN", steps)
        checkpoint = folder / "state"
        try:
            with row_file(table, resumable=True) as rows:
                watch = Watch(rows=rows, checkpoint=Stopping(checkpoint, "run", 0.0))
                found = _serve(trace, deepcopy(scheduler), pools, watch)
        except StoppedError:
            assert not table.exists()
            with (folder / "table.csv.part").open("a") as part:
                part.write("what was written after the copy")
            with row_file(table, resumable=True) as rows:
                watch = Watch(rows=rows, checkpoint=Stopping(checkpoint, "run", 0.0))
                found = _serve(trace, deepcopy(scheduler), pools, watch)
    assert found == expected
    assert table.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["table.csv", "whole.csv"]


def _damage(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(change(path.read_bytes()))


class _Made:
    """Is stored as a call, as a range or an array is."""

    def __init__(self, kind: Any, *parts: Any) -> None:
        self._call = kind, parts

    def __reduce__(self) -> Any:
        return self._call


#: States of a few bytes that stand for gigabytes, or for code.
_BOMBS = {
    "a deque of a range": pickle.dumps(_Made(deque, range(3 * 10**9)), 5),
    "a set of a range": pickle.dumps(_Made(set, range(3 * 10**9)), 5),
    "numbers of a range": pickle.dumps(_Made(array, "q", range(3 * 10**9)), 5),
    "an array of a size": pickle.dumps(_Made(np.ndarray, (3 * 10**9,)), 5),
    "an empty array": pickle.dumps(
        _Made(np._core.multiarray._reconstruct, np.ndarray, (3 * 10**9,), b"b"), 5
    ),
    "a place far away": b"\x80\x05Nr\xff\xff\xff\x7f.",
    "a number of digits": b"\x80\x05L" + b"9" * 5000 + b"L\n.",
    "lists in lists": b"\x80\x05" + b"]" * 10**5 + b"a" * (10**5 - 1) + b".",
    "no state": b"\x80\x05.",
    "no number": pickle.dumps({"now_ps": "x"}, 5),
    "a program": pickle.dumps({"now_ps": subprocess.Popen}, 5),
}


@pytest.mark.parametrize("name", _BOMBS)
def test_a_state_takes_no_more_room_than_its_file(tmp_path: Path, name: str) -> None:
    path, digest = tmp_path / "state", hashlib.sha256(_BOMBS[name]).hexdigest().encode()
    Checkpoint(path, "run").save({"now_ps": 1})
    head = path.read_bytes().split(b"\n")[0]
    path.write_bytes(head + b"\nrun\n" + digest + b"\n" + _BOMBS[name])
    tracemalloc.start()
    with pytest.raises(InputError, match="state: (holds what|is no whole)"):
        _serve(trace_of((0, 4, 4)), Chunked(4), False, Watch(checkpoint=Checkpoint(path, "run")))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100 << 20


def _hostile(path: Path) -> None:
    content = pickle.dumps({"now_ps": subprocess.Popen})
    digest = hashlib.sha256(content).hexdigest().encode()
    head = path.read_bytes().split(b"\n")[0]
    path.write_bytes(head + b"\nrun\n" + digest + b"\n" + content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_damage(lambda content: b""), "state: is no checkpoint of a serving run"),
        (_damage(lambda content: content[:-1]), "state: is a damaged checkpoint"),
        (_damage(lambda content: content[:31]), "state: is the checkpoint of another run"),
        (_damage(lambda c: c.replace(b"\nrun\n", b"\nyours\n")), "state: is the checkpoint of an"),
        (_hostile, "state: holds what is no part of a run: found subprocess.Popen"),
        (lambda path: (path.unlink(), path.mkdir()), "state: cannot be read"),
    ],
)
def test_an_unusable_checkpoint_is_refused(
    tmp_path: Path, change: Callable[[Path], Any], message: str
) -> None:
    path = tmp_path / "state"
    Checkpoint(path, "run").save({"now_ps": 1})
    assert Checkpoint(path, "run").load() == {"now_ps": 1}
    change(path)
    with pytest.raises(InputError) as refused:
        Checkpoint(path, "run").load()
    assert message in str(refused.value)


def _without(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda state: {key: value for key, value in state.items() if key != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without("now_ps"), "KeyError: 'now_ps'"),
        (_without("recorder"), "KeyError: 'recorder'"),
        (_without("link"), "KeyError: 'link'"),
        (lambda state: state | {"engines": {}}, "KeyError: 'all'"),
        (lambda state: state | {"recorder": None}, "AttributeError: 'NoneType' object has no"),
        (lambda state: [state], "TypeError: list indices must be integers or slices, not str"),
    ],
)
def test_a_state_of_which_a_part_is_missing_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    path = tmp_path / "state"
    trace = trace_of((0, 10, 20), (1, 10, 20))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(running, "_STEPS_BETWEEN", 1)
        _serve(trace, Chunked(), False, Watch(checkpoint=Stopping(path, "run", 0.0)))
    state = Checkpoint(path, "run").load()
    assert state is not None
    Checkpoint(path, "run").save(change(state))
    with pytest.raises(InputError, match="state: is no whole state of a run: " + message):
        _serve(trace, Chunked(), False, Watch(checkpoint=Checkpoint(path, "run")))


def test_rows_that_were_lost_are_noticed(tmp_path: Path) -> None:
    with row_file(tmp_path / "rows.csv", resumable=True) as rows:
        rows.add(0, {"a": 1})
        state = rows.state()
    (tmp_path / "rows.csv").unlink()
    with (
        pytest.raises(InputError, match="found 0 bytes; the checkpoint is of 6"),
        row_file(tmp_path / "rows.csv", resumable=True) as rows,
    ):
        rows.resume(state)


@pytest.mark.parametrize("resumable", [False, True])
def test_rows_without_a_name_are_refused(resumable: bool) -> None:
    with (
        pytest.raises(InputError, match=r"^'\.' is no name of a file$"),
        row_file(Path(""), resumable=resumable),
    ):
        raise AssertionError


@pytest.mark.slow
def test_a_killed_command_leaves_nothing_half_written_and_goes_on(tmp_path: Path) -> None:
    load = ("--workload", "sharegpt", "--rate", "8", "--requests", "6000", "--seed", "3")
    options = ("serve", "--model", "llama3-8b", "--chip", "flat32", "--scheduler", "layered", *load)

    def start(name: str, *more: str) -> "subprocess.Popen[str]":
        files = ("--out", f"{name}.json", "--requests-csv", f"{name}.csv")
        line = [sys.executable, "-m", "wafertlm.cli", *options, *files, *more]
        return subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.DEVNULL)

    assert start("whole").wait(300) == 0
    keep = ("--checkpoint", "state", "--checkpoint-every", "0.1")
    state = tmp_path / "state"
    for _ in range(2):
        before = state.stat().st_mtime_ns if state.exists() else 0
        process = start("resumed", *keep)
        while not state.exists() or state.stat().st_mtime_ns == before:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "resumed.json").exists()
        assert not (tmp_path / "resumed.csv").exists()
    assert start("resumed", *keep).wait(300) == 0
    assert (tmp_path / "resumed.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    found, expected = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("resumed", "whole")
    )
    assert found == expected
    assert not state.exists()
