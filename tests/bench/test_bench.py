"""The tool that measures speed: its rows, its traffic, its opponent. Speed itself is not tested."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cosim.errors import SimulationError
from tests.bench import __main__ as bench
from tests.bench import loosely, verilated
from tests.bench.command import process_seconds
from tests.bench.measure import Row, ratios, short
from tests.bench.network import race_rows, simulate_seconds, timing
from tests.bench.serving import like_conversations
from tests.bench.traffic import neighbours_and_rows, packet_hops, uniform
from tests.bench.verilated import DrivenMesh, Race
from tests.bench.wafer import link_crossings
from tlm.dies.messages import MessagePlan
from tlm.errors import InputError
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.handshake.records import Output
from tlm.interconnect.handshake.state import output_column
from tlm.interconnect.packets import PacketKind, Packets, TileSet
from tlm.interconnect.traffic import Traffic
from tlm.program import Send

TINY = bench.Sizes(
    runs=2,
    first_runs=1,
    packets=200,
    race_side=2,
    race_cycles=200,
    sides=(4, 8, 16),
    hops=500,
    grids=(4, 8),
    check_sides=(4, 8),
    die_bytes=9000,
    requests=100,
    conversations=20,
    commands=(),
    kernel_runs=1,
)


@pytest.mark.parametrize(
    ("unit", "runs", "target", "met"),
    [
        ("packets/CPU-s", (1.0, 3.0, 9.0), 3.0, True),
        ("packets/CPU-s", (1.0, 3.0, 9.0), 3.1, False),
        ("x the Verilog", (7.0, 7.0), 8.0, False),
        ("CPU-s", (0.1, 0.3, 0.9), 0.3, True),
        ("CPU-s", (0.1, 0.3, 0.9), 0.2, False),
        ("of 8x8", (5.0,), 4.0, False),
        ("cycles/CPU-s", (5.0,), None, None),
    ],
)
def test_median_is_held_to_the_target(
    unit: str, runs: tuple[float, ...], target: float | None, met: bool | None
) -> None:
    assert Row("work", unit, runs, target).met is met


def test_ratio_is_taken_run_by_run() -> None:
    assert ratios([2, 9], [1, 3]) == (2, 3)


def test_figures_are_short() -> None:
    assert [short(value) for value in (1234567, 12345.6, 0.123456)] == ["1.23 M", "12,346", "0.123"]


def test_packet_hops_of_hand_counted_packets() -> None:
    items = [
        (0, 0, TileSet.tile(2, 3), 5),  # 3 right, 2 down, 1 out
        (0, 0, TileSet(range(0, 1), range(1, 4)), 5),  # 3 right, 3 out
        (0, 5, TileSet(range(0, 3, 2), range(0, 4, 3)), 2),  # 3 across, 2 columns by 2, 4 out
    ]
    assert packet_hops(Packets.of(items), 4).tolist() == [6, 6, 11]


@pytest.mark.parametrize("seed", range(4))
def test_packet_hops_are_ejections_and_what_crosses_the_links(seed: int) -> None:
    packets = Traffic(5, 6, "uniform", 0.2, 4, 100, seed, 0.3, 3).packets()
    mesh = HandshakeMesh(5, 6, timing())
    mesh.simulate(packets)
    crossed = int(output_column(mesh._mesh, Output.THROUGH).sum())
    links = packet_hops(packets, 6) - packets.destination_counts()
    assert crossed == (packets.flits * links).sum()


def test_rows_are_multicast_by_their_first_tile() -> None:
    packets = neighbours_and_rows(4, 8, 2000, seed=3)
    spread = packets.kind == PacketKind.MULTICAST
    assert (np.diff(packets.cycle) >= 0).all()
    assert (packets.source[spread] == packets.row_first[spread] * 8).all()
    assert (packets.destination_counts()[spread] == 7).all()
    assert 0.007 < spread.sum() / (2000 * 4) < 0.013
    again = neighbours_and_rows(4, 8, 2000, seed=3)
    assert all((a == b).all() for a, b in zip(packets.columns(), again.columns(), strict=True))


def test_driver_gets_a_flit_as_the_verilog_reads_it() -> None:
    driven = DrivenMesh(4, 8, 4)
    words = driven.words(Packets.of([(9, 2, TileSet.tile(1, 1), 1), (7, 3, TileSet.tile(3, 5), 6)]))
    assert driven.flit_bits == 64 + 3 + 2 + 8 + 4 + 3 + 4
    assert words.tolist() == [[9, 2, 1, 0, 0, 1 | 1 << 3], [7, 3, 6, 1, 0, 5 | 3 << 3]]


def test_driver_refuses_what_it_cannot_drive() -> None:
    with pytest.raises(InputError, match="9x9 mesh; allowed: 2 to 64 nodes"):
        DrivenMesh(9, 9, 4)
    packets = Packets.of([(0, 0, TileSet(range(1), range(2)), 1)])
    with pytest.raises(InputError, match="not a unicast"):
        DrivenMesh(2, 2, 4).words(packets)


@pytest.mark.rtl
def test_verilog_and_model_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # At -O3 it would be quick, but slow to compile.
    options = [each.replace("-O3", "-Og") if "OPT" in each else each for each in verilated._OPTIONS]
    monkeypatch.setattr(verilated, "_OPTIONS", options)
    runs: list[None] = []
    rows = race_rows(2, 2000, 2, lambda: runs.append(None))
    assert len(runs) == 4  # two lengths of packets, two runs each
    assert [row.unit for row in rows if row.target] == ["x the Verilog"] * 2
    assert all(value > 0 for row in rows for value in row.runs)
    driven = DrivenMesh(2, 2, 8)
    packets = uniform(2, 2, 500, 5, seed=2)
    _, deliveries = simulate_seconds(2, packets)
    whole = driven.run(packets, 100_000)
    assert whole.deliveries == len(packets)
    assert whole.last_ejection_cycle == deliveries.tail_ejected.max()
    half = driven.run(packets, whole.last_ejection_cycle // 2)
    by_then = deliveries.tail_ejected[deliveries.tail_ejected <= whole.last_ejection_cycle // 2]
    assert (half.deliveries, half.last_ejection_cycle) == (len(by_then), by_then.max())


def test_parts_measure_and_tell_their_progress() -> None:
    told: list[str] = []
    parts = ["mesh", "curve", "lt", "check", "dies", "memory"]
    found = bench.measure(parts, TINY, told.append)
    assert [told.count(part) for part in parts] == [3, 7, 11, 5, 3, 13]
    assert [point.side for point in found.curve] == [4, 8, 16]
    assert {len(row.runs) for row in found.rows if not row.unit.startswith("GB")} == {2}
    work = [(point.packets, point.packet_hops) for point in found.curve]
    again = bench.measure(["curve"], TINY, told.append)
    assert work == [(point.packets, point.packet_hops) for point in again.curve]
    json.dumps(found.to_json())


def test_kernels_run_each_for_itself() -> None:
    rows = bench.measure(["kernels"], TINY, lambda part: None).rows
    assert [row.target for row in rows] == [0.5, 2.0, 60.0]
    assert all("18 kernels" in row.work and min(row.runs) > 0 for row in rows)


def test_crossings_are_packets_times_links() -> None:
    plan = MessagePlan()
    plan.send(0, 5, 10)  # a row and a column on, three packets of at most 4
    plan.send(7, 4, 4)  # three columns back, one packet
    assert link_crossings(plan.messages(), 4, 4) == 3 * 2 + 3


def test_serving_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "two.csv"
    file.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0,10,5\n1,20,3\n")
    for sizes, name in ((TINY, "20 conversations"), (replace(TINY, trace=file), "two.csv")):
        rows = bench.measure(["serving"], sizes, lambda part: None).rows
        units = [*["requests/CPU-s"] * 4, "iterations/CPU-s"]
        assert [row.unit for row in rows] == units
        assert rows[0].work.endswith(name)
        more = (", once priced", ", with its interval", ", with its interval, once priced")
        assert [row.work for row in rows[1:4]] == [rows[0].work + each for each in more]
        assert [row.target for row in rows] == [*[5000] * 4, 50_000]
        assert all(rate > 0 for row in rows for rate in row.runs)


def test_many_requests_are_generated_and_served() -> None:
    rate, memory = bench.measure(["many"], replace(TINY, many=50), lambda part: None).rows
    assert (rate.unit, rate.target, memory.unit, memory.target) == ("requests/CPU-s", 5000, "GB", 1)
    assert rate.runs[0] > 0 and 0 < memory.runs[0] < 2


def test_conversations_are_as_long_and_as_many_as_those_of_the_public_trace() -> None:
    trace = like_conversations(19_366)
    assert trace.prompt_tokens.mean() == pytest.approx(1155, rel=0.02)
    assert trace.output_tokens.mean() == pytest.approx(211, rel=0.02)
    assert len(trace) / trace.arrival_ps[-1] * 1e12 == pytest.approx(5.53, rel=0.02)


def test_process_time_is_that_of_the_command() -> None:
    assert 0.01 < process_seconds("--help", {}) < 60
    with pytest.raises(RuntimeError, match="no-such-command: status 2"):
        process_seconds("no-such-command", {})


def _one_row(runs: tuple[float, ...]) -> object:
    def part(sizes: bench.Sizes, findings: bench.Findings, done: object) -> None:
        findings.rows.append(Row("work", "CPU-s", runs, 1.0))

    return part


@pytest.mark.parametrize(("seconds", "status", "met"), [(0.5, 0, True), (2.0, 1, False)])
def test_missed_target_is_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, seconds: float, status: int, met: bool
) -> None:
    monkeypatch.setitem(bench.PARTS, "mesh", _one_row((seconds,)))
    told = CliRunner().invoke(bench.main, ["--part", "mesh", "--json"])
    assert told.exit_code == status
    assert json.loads(told.stdout)["rows"][0]["met"] is met
    table = CliRunner().invoke(bench.main, ["--part", "mesh"]).stdout
    assert ("NO" in table) is not met


def test_unequal_work_is_told_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(DrivenMesh):
        def run(self, packets: Packets, limit_cycles: int) -> Race:
            return Race(len(packets), limit_cycles, 1.0)

    monkeypatch.setattr("tests.bench.network.DrivenMesh", Other)
    monkeypatch.setattr(DrivenMesh, "build", lambda self: None)
    with pytest.raises(SimulationError, match="5-flit packets: the model made"):
        race_rows(2, 200, 1, lambda: None)

    def part(sizes: bench.Sizes, findings: bench.Findings, done: object) -> None:
        raise SimulationError("not alike")

    monkeypatch.setitem(bench.PARTS, "race", part)
    told = CliRunner().invoke(bench.main, ["--part", "race"])
    assert (told.exit_code, told.stdout) == (1, "")
    assert "error: not alike" in told.stderr


@pytest.mark.parametrize("side", [4, 9, 31])
@pytest.mark.parametrize("along", ["row", "column"])
def test_all_reduce_sends_once_from_every_tile_but_the_root(side: int, along: str) -> None:
    sends = [op for op in loosely.two_level(side, along, 4) if isinstance(op, Send)]
    sources = [
        tile for op in sends for tile in (op.tiles.cols if along == "row" else op.tiles.rows)
    ]
    assert len(sources) == len(set(sources)) == side - 1


def test_unknown_part_is_refused() -> None:
    told = CliRunner().invoke(bench.main, ["--part", "none"])
    assert told.exit_code == 2
    assert "none" in told.stderr
