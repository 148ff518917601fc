"""The models against the Verilog: equal, and told so; and what is not equal is seen."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from calibration.memory.cases import MEMORIES
from calibration.memory.channel import RtlMemory
from calibration.memory.model import memory_model
from calibration.routers.rtl_mesh import FIT_MESH, RtlMesh
from cosim.spec.project import mesh_timing
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries
from tlm.interconnect.traffic import TrafficFigures
from tlm.memory.dram.channel import DramChannel
from verification import accuracy, accuracy_cases, accuracy_tables
from verification.accuracy import all_cases
from verification.accuracy_cases import (
    Alone,
    Case,
    Load,
    Memory,
    Mix,
    Saturation,
    Stream,
    unequal_packets,
)
from verification.accuracy_tables import Accuracy, summary
from verification.stored import with_block
from verification.stress import FEW_MESHES

SEED = 9100
STREAM = Stream(FIT_MESH, "uniform", 5)
SHORT = Stream(FIT_MESH, "uniform", 1)

Command = Callable[..., Result]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the command on chosen cases: ``command([Mix(...)], "--json")``."""

    def call(cases: Sequence[Case], *options: str) -> Result:
        monkeypatch.setattr(accuracy, "quick_cases", lambda seed: list(cases))
        return CliRunner().invoke(accuracy.main, ["--quick", *options])

    return call


@pytest.fixture(autouse=True)
def no_rate_of_another_model() -> Iterator[None]:
    """What was found on a model that a test puts in is forgotten."""
    accuracy_cases.model_saturation_rate.cache_clear()
    yield
    accuracy_cases.model_saturation_rate.cache_clear()


# ---- what is stored ----


@pytest.fixture(scope="module")
def stored() -> Accuracy:
    return Accuracy.load()


def test_stored_tables_are_of_this_verilog_and_hold_the_targets(stored: Accuracy) -> None:
    assert not stored.changed_sources()
    assert {Path(name).name for name in stored.sources} >= {"router.sv", "memory_channel.sv"}
    assert stored.misses() == []
    assert stored.seed == accuracy.SEED


def test_stored_tables_have_all_cases(stored: Accuracy) -> None:
    expected: dict[str, dict[str, int]] = {name: {} for name in accuracy_tables.TITLES}
    for case in all_cases(stored.seed):
        rows = expected[case.table]
        rows[case.row] = rows.get(case.row, 0) + 1
    found = {t: {row.name: row.cases for row in rows} for t, rows in stored.tables.items()}
    assert found == expected
    assert all(len(rows) > 1 for rows in found.values())


def test_the_document_shows_the_stored_tables(stored: Accuracy) -> None:
    text = accuracy_tables.DOCUMENT.read_text()
    block = accuracy_tables.markdown(stored)
    assert with_block(accuracy_tables.DOCUMENT, "accuracy", block) == text


def test_what_is_written_is_what_is_read(
    stored: Accuracy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy_tables, "STORED", tmp_path / "accuracy.json")
    monkeypatch.setattr(accuracy_tables, "DOCUMENT", tmp_path / "accuracy.md")
    with pytest.raises(InputError, match="accuracy.json"):
        Accuracy.load()
    accuracy_tables.DOCUMENT.write_text("no marks")
    with pytest.raises(InputError, match="accuracy: begin"):
        accuracy_tables.write(stored)
    marks = "before\n<!-- accuracy: begin -->\nold\n<!-- accuracy: end -->\nafter\n"
    accuracy_tables.DOCUMENT.write_text(marks)
    accuracy_tables.write(stored)
    assert Accuracy.load() == stored
    assert accuracy_tables.DOCUMENT.read_text() == marks.replace(
        "old\n", accuracy_tables.markdown(stored)
    )


# ---- both levels ----


@pytest.mark.rtl
def test_a_few_of_all_kinds_are_equal(command: Command) -> None:
    cases: list[Case] = [
        *(Alone(mesh, 100, SEED) for mesh in FEW_MESHES),
        Load(STREAM, 0.45, SEED),
        Load(STREAM, 1.0, SEED),
        Load(Stream(FIT_MESH, "tornado", 5), 1.2, SEED),
        Saturation(STREAM, SEED),
        *(Mix(mesh, "apart", 0.5, SEED) for mesh in FEW_MESHES),
        *(Memory(name, "random_places", 5, SEED) for name in MEMORIES),
    ]
    outcome = command(cases, "--json", "--workers", "1")
    assert outcome.exit_code == 0, outcome.output
    told = json.loads(outcome.stdout)
    assert told["misses"] == []
    rows = [row for table in told["tables"].values() for row in table]
    assert sum(row["cases"] for row in rows) == len(cases)
    assert all(row["events"] > 0 and row["unequal"] == 0 for row in rows)
    assert {error["worst_pct"] for row in rows for error in row["errors"].values()} == {0.0}


@pytest.mark.slow
@pytest.mark.rtl
def test_a_tenth_of_the_cases_gives_what_is_stored(command: Command, stored: Accuracy) -> None:
    outcome = command(all_cases(stored.seed)[3::10], "--json", "--seed", str(stored.seed))
    assert outcome.exit_code == 0, outcome.output
    told = json.loads(outcome.stdout)
    assert told.pop("misses") == []
    sample = Accuracy.model_validate(told)
    assert sample.rtl_hash == stored.rtl_hash and set(sample.tables) == set(stored.tables)
    for table, rows in sample.tables.items():
        whole = {row.name: row for row in stored.tables[table]}
        for row in rows:
            assert row.unequal <= whole[row.name].unequal
            assert row.values.items() <= whole[row.name].values.items()
            for figure, error in row.errors.items():
                assert error.worst_pct <= whole[row.name].errors[figure].worst_pct


# ---- what is wrong is seen ----


def deeper(mesh: RtlMesh) -> HandshakeMesh:
    """A model of buffers twice as deep."""
    timing = mesh_timing(mesh)
    return HandshakeMesh(mesh.rows, mesh.cols, replace(timing, fifo_depth=2 * timing.fifo_depth))


@pytest.mark.rtl
def test_a_wrong_network_model_misses_the_targets(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy_cases, "network_model", deeper)
    outcome = command(
        [Alone(FIT_MESH, 100, SEED), Load(SHORT, 1.2, SEED), Mix(FIT_MESH, "rows", 0.5, SEED)]
    )
    assert outcome.exit_code == 1
    missed = [line for line in outcome.stderr.splitlines() if line.startswith("check failed")]
    for table in ("alone: 4x4, depth 4: ", "high: 4x4, depth 4, uniform: 1 flit a packet", "mix: "):
        assert any(line.startswith(f"check failed: {table}") for line in missed), missed


@pytest.mark.rtl
def test_a_wrong_memory_model_misses_the_targets(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(memory: RtlMemory) -> DramChannel:
        channel = memory_model(memory)
        return replace(channel, device=replace(channel.device, t_rcd_rd=25))

    monkeypatch.setattr(accuracy_cases, "memory_model", slow)
    outcome = command([Memory("hbm2", "random_places", 5, SEED)])
    assert outcome.exit_code == 1
    assert "check failed: memory: hbm2, random_places: 5 outstanding" in outcome.stderr


def test_rtl_that_saturates_elsewhere_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    # In the place of the RTL stands a model of another depth.
    other = Stream(RtlMesh(4, 4, 8), "uniform", 1)

    def on_rtl(stream: Stream, rate: float, seed: int) -> TrafficFigures:
        return other.on_model(rate, seed)

    monkeypatch.setattr(Stream, "on_rtl", on_rtl)
    point = Saturation(SHORT, SEED).measure()
    accepted = other.on_model(accuracy_cases.model_saturation_rate(other, SEED), SEED).accepted
    assert point.unequal == 1
    assert point.value == f"{accepted:.3f}"
    assert point.errors_pct["throughput"] > 1
    rows = summary([Saturation(SHORT, SEED)], [point], SEED).misses()
    assert len(rows) == 1 and rows[0].startswith(
        "saturation: 4x4, depth 4, uniform: 1 flit a packet"
    )


def test_one_cycle_at_one_copy_makes_a_packet_unequal() -> None:
    packets, _ = Alone(FIT_MESH, 40, SEED).draw()
    seen = accuracy_cases.network_model(FIT_MESH).simulate(packets)
    assert unequal_packets(seen, seen) == 0
    for name in ("head_injected", "tail_injected", "head_ejected", "tail_ejected"):
        late = getattr(seen, name).copy()
        late[11] += 1
        assert unequal_packets(seen, replace(seen, **{name: late})) == 1
    # Copies of one packet count once; a copy elsewhere spoils all.
    assert unequal_packets(seen, replace(seen, head_ejected=seen.head_ejected - 1)) == len(
        np.unique(seen.packet)
    )
    lost = Deliveries(seen.head_injected, seen.tail_injected,
                      *(getattr(seen, n)[1:] for n in Deliveries.__slots__[2:]))  # fmt: skip
    assert unequal_packets(seen, lost) == len(packets)


@pytest.mark.parametrize(
    "options", [["--seed", "-1"], ["--workers", "0"], ["--quick", "--write"]], ids=" ".join
)
def test_wrong_options_are_refused(options: list[str]) -> None:
    outcome = CliRunner().invoke(accuracy.main, options)
    assert outcome.exit_code == 2
    assert "allowed: 0 or more, 1 or more, --write without --quick" in outcome.stderr
