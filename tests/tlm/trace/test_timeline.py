"""Timelines: what is shown of a run, and that the file is one that Perfetto can read."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tlm.programs import TIMING, program_of, send, tile
from tlm.engines.at import run_at
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Operation, Program, Reduce, Work
from tlm.trace import Timeline, TransferSpan

EVERYWHERE = TileSet(range(1), range(8))


def pipeline() -> Program:
    """Two blocks from tile 0 to tile 2, which works on each; a slot's credit comes back."""
    operations: list[Operation] = []
    for _ in range(2):
        operations.append(send(0, 2, 8, slots=("free",), arrivals=("block",)))
        work = Work(Engine.MATRIX, tile(2), 20, takes=("block",), gives=("free",), label="C")
        operations.append(work)
    return program_of(1, 3, operations, free=(1, 1), block=(0, 1))


def recorded(program: Program, timeline: Timeline, path: Path) -> list[dict[str, Any]]:
    network = HandshakeMesh(program.rows, program.cols, TIMING, reductions=True)
    run_at(program, TIMING, network, timeline)
    timeline.write(path)
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


def slices(events: list[dict[str, Any]]) -> list[tuple[int, int, str, int, int]]:
    """Process, thread, name, start and end."""
    return [
        (event["pid"], event["tid"], event["name"], event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["ph"] == "X"
    ]


def test_a_whole_timeline(tmp_path: Path) -> None:
    events = recorded(pipeline(), Timeline(EVERYWHERE, 3), tmp_path / "run.json.gz")
    transfer, receive, matrix = int(Engine.TRANSFER), len(Engine), int(Engine.MATRIX)
    assert slices(events) == [
        (0, transfer, "transfer", 0, 8),
        (2, receive, "receive", 3, 11),
        (2, matrix, "C", 11, 31),
        (0, transfer, "transfer", 35, 43),
        (2, receive, "receive", 38, 46),
        (2, matrix, "C", 46, 66),
    ]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {(0, 2): "transfer", (2, 0): "matrix", (2, 4): "receive"}
    arrows = [(e["ph"], e["id"], e["pid"], e["ts"]) for e in events if e["ph"] in "sf"]
    assert arrows == [("s", 0, 0, 0), ("f", 0, 2, 3), ("s", 1, 0, 35), ("f", 1, 2, 38)]


def test_counters_hold_the_flits_of_each_link(tmp_path: Path) -> None:
    """46 cycles are less than the bins, so that a bin is a cycle."""
    events = recorded(pipeline(), Timeline(EVERYWHERE, 3), tmp_path / "run.json.gz")
    for process in (0, 1):
        loads = [
            event["args"]["flits a cycle"]
            for event in events
            if event["ph"] == "C" and event["pid"] == process and event["name"] == "link east"
        ]
        assert sum(loads) == pytest.approx(16, rel=0.01)
        assert loads[-1] == 0


def test_only_the_region_is_shown(tmp_path: Path) -> None:
    events = recorded(pipeline(), Timeline(tile(2), 3), tmp_path / "run.json.gz")
    assert {event["pid"] for event in events} == {2}
    assert not [event for event in events if event["ph"] in "sf"]


def test_every_other_operation_is_shown(tmp_path: Path) -> None:
    events = recorded(pipeline(), Timeline(EVERYWHERE, 3, every=2), tmp_path / "run.json.gz")
    assert {name for _, _, name, *_ in slices(events)} == {"transfer", "receive"}
    with pytest.raises(InputError, match="--every: found 0; allowed: 1 or more"):
        Timeline(EVERYWHERE, 3, every=0)


def test_the_size_is_bounded(tmp_path: Path) -> None:
    timeline = Timeline(EVERYWHERE, 3, most_spans=4)
    assert len(slices(recorded(pipeline(), timeline, tmp_path / "run.json.gz"))) == 4
    assert timeline.dropped == 2


def test_a_reduction_is_shown_at_its_contributors_and_its_root(tmp_path: Path) -> None:
    operations: list[Operation] = [
        Reduce(tile(2), "row", range(3), 4, arrivals=("sum",), label="S")
    ]
    program = program_of(1, 3, operations, sum=(0, 1))
    events = recorded(program, Timeline(EVERYWHERE, 3), tmp_path / "run.json.gz")
    assert sorted(each[:3] for each in slices(events)) == [
        (0, 2, "S"), (1, 2, "S"), (2, 2, "S"), (2, 4, "S")
    ]  # fmt: skip


def test_equal_runs_give_equal_bytes_and_recording_changes_nothing(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.json.gz", "b.json.gz")]
    for path in paths:
        recorded(pipeline(), Timeline(EVERYWHERE, 3), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    plain = run_at(pipeline(), TIMING, HandshakeMesh(1, 3, TIMING))
    watched = run_at(pipeline(), TIMING, HandshakeMesh(1, 3, TIMING), Timeline(EVERYWHERE, 3))
    assert np.array_equal(plain.engine_end_cycle, watched.engine_end_cycle)


def test_counters_know_what_passes_through_and_which_way(tmp_path: Path) -> None:
    """From (0, 0) to (1, 2), of which one tile on the way is shown."""
    for y_first, passed, link in ((False, (0, 1), "east"), (True, (1, 1), "east")):
        timeline = Timeline(TileSet.tile(*passed), 3, most_spans=1, every=1, y_first=y_first)
        for number in range(2):
            timeline.transfer(TransferSpan(number, "", (0, 0), (1, 2), 6, 0, 9))
        timeline.write(tmp_path / "run.json.gz")
        events = json.loads(gzip.decompress((tmp_path / "run.json.gz").read_bytes()))["traceEvents"]
        counters = [event for event in events if event["ph"] == "C"]
        assert {event["name"] for event in counters} == {f"link {link}"}
        total = sum(event["args"]["flits a cycle"] for event in counters)
        assert total == pytest.approx(6, rel=0.01)
        assert (timeline.dropped, timeline.dropped_transfers) == (0, 1)


def test_counters_outlast_the_room_for_spans_and_name_a_sample(tmp_path: Path) -> None:
    timeline = Timeline(EVERYWHERE, 3, most_spans=2, every=2)
    events = recorded(pipeline(), timeline, tmp_path / "run.json.gz")
    counters = [event for event in events if event["ph"] == "C"]
    assert {event["name"] for event in counters} == {"link east, 1 of 2 operations"}
    assert timeline.dropped == 2
    east = sum(event["args"]["flits a cycle"] for event in counters if event["pid"] == 1)
    assert east == pytest.approx(16, rel=0.01)
