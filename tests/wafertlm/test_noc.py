"""The command `noc` beyond what all commands have in common."""

import json
from pathlib import Path
from typing import Any

import pytest

from cosim.tiles.model import TileModel
from tests.conftest import Wafertlm
from tlm.calibrated import forget
from tlm.interconnect.collectives import CollectiveTraffic
from tlm.interconnect.packets import Packets, ReductionGoal, TileSet
from wafertlm.cli import run
from wafertlm.noc.run import COLLECTIVES


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["noc", *arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.mark.parametrize("level", ["at", "perf"])
def test_packets_of_a_file_count_until_the_last_has_come(
    level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "packets.csv"
    path.write_text("cycle,source,destinations,flits,kind\n0,0:0,0:3,4,unicast\n")
    result = figures(capsys, "--mesh", "4x4", "--traffic", str(path), "--level", level)
    assert result["latency_cycles"]["max"] == 1 + 3 + 4 - 1
    assert result["accepted"] == result["offered"] > 0
    assert not result["saturated"]
    assert result["provenance"]["seed"] is None


def test_a_file_is_recorded_by_its_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "packets.csv"
    hashes = set()
    for flits in (4, 5):
        path.write_text(f"cycle,source,destinations,flits,kind\n0,0:0,0:3,{flits},unicast\n")
        result = figures(capsys, "--mesh", "4x4", "--traffic", str(path))
        hashes.add(result["provenance"]["config_hash"])
    assert len(hashes) == 2


def test_closed_form_knows_when_a_link_is_full(capsys: pytest.CaptureFixture[str]) -> None:
    mesh = ("--mesh", "8x8", "--traffic", "uniform", "--level", "perf")
    light = figures(capsys, *mesh, "--rate", "0.1")
    heavy = figures(capsys, *mesh, "--rate", "0.9")
    assert not light["saturated"] and light["accepted"] == light["offered"]
    assert heavy["saturated"] and heavy["accepted"] < 0.7 * heavy["offered"]


@pytest.mark.rtl
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_collectives_take_the_same_cycles_at_all_levels(
    collective: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--mesh", "4x4", "--collective", collective, "--group", "row", "--source", "1,0")
    cycles = {
        level: figures(capsys, *options, "--flits", "22", "--level", level)["cycles"]
        for level in ("rtl", "at", "perf")
    }
    assert cycles["rtl"] == cycles["at"], cycles
    # Words of a message that come beside an addition meet its own at a bank.
    met = int(collective == "seq-reduce")
    assert cycles["at"] == cycles["perf"] + met, cycles


def test_a_tree_waits_for_its_additions(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--mesh", "4x4", "--collective", "tree-reduce", "--group", "row", "--source", "1,0")
    found = figures(capsys, *options, "--flits", "16")
    # Messages over one link and over two; between them an addition and the launch of a transfer.
    assert found["addition_cycles"] == 22
    assert found["cycles"] == (1 + 1 + 15) + 1 + 22 + 3 + (1 + 2 + 15)
    assert (found["messages"], found["flit_hops"]) == (3, (1 + 1 + 2) * 16)


def test_a_root_has_room_for_two_messages_until_it_has_added_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--mesh", "4x4", "--collective", "seq-reduce", "--group", "row", "--source", "1,0")
    found = figures(capsys, *options, "--flits", "16")
    # The first message, its addition, which the second one's words hold up for a cycle, the credit
    # of three links, a launch, and the third message.
    assert found["cycles"] == (1 + 1 + 15) + 1 + (22 + 1) + (1 + 3 + 1) + 3 + (1 + 3 + 15)


@pytest.mark.parametrize("collective", ["seq-multicast", "tree-multicast", "reduce"])
def test_where_no_tile_adds_no_addition_is_told(
    collective: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--mesh", "4x4", "--collective", collective, "--group", "row", "--source", "1,0")
    assert "addition_cycles" not in figures(capsys, *options, "--flits", "16")


@pytest.mark.slow  # a build of other tiles
def test_tiles_in_verilog_have_the_buffers_and_stages_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--mesh", "3x3", "--collective", "tree-reduce", "--group", "all", "--source", "1,2")
    form = ("--stages", "2", "--fifo-depth", "8")
    at, rtl = (
        figures(capsys, *options, *form, "--flits", "20", "--level", level)["cycles"]
        for level in ("at", "rtl")
    )
    assert at == rtl > figures(capsys, *options, "--flits", "20")["cycles"]


def test_what_a_scratchpad_does_not_hold_is_refused_before_a_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(TileModel, "build")
    options = ("--mesh", "4x4", "--collective", "tree-reduce", "--group", "row", "--source", "1,0")
    assert run(["noc", *options, "--flits", "2752", "--level", "rtl"]) == 2
    assert (
        "--flits: found 2752: buffers: found 8262 words of a tile's scratchpad; allowed"
        in capsys.readouterr().err
    )


def test_a_second_stage_costs_a_cycle_a_router(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--mesh", "4x8", "--collective", "reduce", "--group", "all", "--source", "0,0")
    one = figures(capsys, *options, "--flits", "4")["cycles"]
    two = figures(capsys, *options, "--flits", "4", "--stages", "2")["cycles"]
    assert two - one == 3 + 7 + 1


_CLASH = """cycle,source,destinations,flits,kind
0,0:0,0:1 0:4,16,multicast
3,0:3,0:1 0:4,16,multicast
"""


def test_a_hang_is_told_with_the_packets_that_wait_for_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "clash.csv"
    path.write_text(_CLASH)
    options = ["noc", "--mesh", "1x4", "--traffic", str(path), "--unprotected", "--json"]
    assert run(options) == 1
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    assert result["deadlock"]
    assert "packet 0 at tile 0,2 from the west waits for packet 0 at tile 0,3" in result["reason"]
    assert result["reason"] in shown.err


@pytest.mark.rtl
def test_a_hang_of_the_verilog_is_told_with_its_cycle(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # An operand whose partner never comes.
    pair = ReductionGoal(TileSet(range(1), range(2)), root=3)
    monkeypatch.setattr(CollectiveTraffic, "packets", lambda _: Packets.of([(0, 0, pair, 4)]))
    collective = ("--collective", "reduce", "--group", "row", "--source", "0,0", "--flits", "4")
    assert run(["noc", "--mesh", "4x4", *collective, "--level", "rtl", "--json"]) == 1
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    assert (result["cycles"], result["deadlock"]) == (None, True)
    assert result["reason"] == (
        "4x4 mesh stands still since cycle 4; by its model no flit can move after cycle 3; waiting "
        "packets: [0], for operands that have not come"
    )
    assert result["reason"] in shown.err


def test_a_collective_that_hangs_has_all_its_figures_but_the_cycles(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A collective alone in the mesh does not hang: two multicasts that do stand in for its packets.
    row = TileSet(range(1), range(4))
    clash = Packets.of([(0, 0, row, 16), (3, 3, row, 16)])
    monkeypatch.setattr(CollectiveTraffic, "packets", lambda _: clash)
    collective = ("--collective", "multicast", "--group", "row", "--source", "0,0", "--flits", "16")
    assert run(["noc", "--mesh", "1x4", *collective, "--unprotected", "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["cycles"] is None
    assert result["messages"] == 1
    assert result["flit_hops"] == 3 * 16
    assert result["deadlock"]
    assert "waits for the first one" in result["reason"]


_SUM = """cycle,source,destinations,flits,kind
0,0:1,0:0 0:1 0:3,2,sum
0,0:2,0:0 0:1 0:3,2,sum
5,0:0,0:0 0:1 0:3,2,sum
"""


def test_a_reduction_of_a_file_waits_for_its_last_operand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sum.csv"
    path.write_text(_SUM)
    result = figures(capsys, "--mesh", "1x3", "--traffic", str(path))
    assert result["packets"] == 3
    # The last operand's own way, through the unit of the root's router; the first waits for it.
    assert result["latency_cycles"]["p50"] == 5 + 2 + 1
    assert result["latency_cycles"]["max"] == 5 + 2 + 1
    path.write_text(_SUM[: _SUM.rindex("5,")])
    assert run(["noc", "--mesh", "1x3", "--traffic", str(path)]) == 2
    assert "found operands of 2 tiles; allowed: one of each of its 3" in capsys.readouterr().err


def test_unwritable_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = [
        "kernel",
        "mesh-gemm",
        "--chip",
        "rtl-2x2",
        "--grid",
        "2x2",
        "--shape",
        "16,16,16",
        "--dtype",
        "int8",
    ]
    assert run([*kernel, "--out", ""]) == 2
    assert ".: cannot be written: Is a directory" in capsys.readouterr().err


@pytest.mark.parametrize("level", ["at", "perf"])
def test_saturation_is_the_highest_load_that_traffic_can_have(
    wafertlm: Wafertlm, level: str
) -> None:
    def at(rate: float, *more: str) -> dict[str, Any]:
        arguments = ("--mesh", "4x4", "--traffic", "uniform", "--rate", rate, "--level", level)
        found: dict[str, Any] = json.loads(wafertlm("noc", *arguments, *more, "--json").stdout)
        return found

    highest = at(0.1, "--saturation")["saturation"]
    assert highest == at(0.9, "--saturation")["saturation"]
    assert not at(highest - 0.02)["saturated"]
    assert at(highest + 0.02)["saturated"]


@pytest.mark.parametrize(
    "load",
    [("--traffic", "packets.csv"), ("--collective", "multicast", "--group", "row", "--source",
     "0,0", "--flits", "4")],
    ids=" ".join,
)  # fmt: skip
def test_only_patterns_have_a_saturation(
    wafertlm: Wafertlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "packets.csv").write_text("cycle,source,destinations,flits,kind\n0,0,1,1,unicast\n")
    ran = wafertlm("noc", "--mesh", "1x2", *load, "--saturation")
    assert ran.status == 2
    assert "--saturation: found with" in ran.stderr


def test_the_table_says_units_queue_and_saturation(wafertlm: Wafertlm, tmp_path: Path) -> None:
    asked = ("noc", "--mesh", "4x4", "--traffic", "uniform", "--cycles", "2000", "--rate")
    out = tmp_path / "noc.json"
    shown = wafertlm(*asked, "0.2", "--out", out).stdout
    stored = json.loads(out.read_text())
    rows = {
        name: (value, unit)
        for name, value, unit in (
            [cell.strip() for cell in line.split("│")[1:4]]
            for line in shown.splitlines()
            if line.startswith("│")
        )
    }
    for name in ("offered", "accepted"):
        assert rows[name] == (f"{stored[name]:.6g}", "flits a node a cycle")
    mean, queue = stored["latency_cycles"]["mean"], stored["source_queue_cycles"]
    assert rows["latency in the network, mean"] == (f"{mean:.6g}", "cycles")
    assert rows["latency with the source's queue, mean"] == (f"{mean + queue:.6g}", "cycles")
    assert "not saturated: at least 98 %" in shown
    assert "\nsaturated: less than 98 %" in wafertlm(*asked, "1").stdout


_PATTERN = ("--traffic", "uniform", "--rate", "0.1")
_COLLECTIVE = ("--collective", "reduce", "--group", "row", "--source", "1,0", "--flits", "4")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((*_PATTERN, "--group", "row"), "--group: found row with --traffic uniform; allowed: with"),
        ((*_COLLECTIVE, "--rate", "0.3"), "--rate: found 0.3 with --collective; allowed: with a p"),
        (("--traffic", "a.csv", "--rate", "0.3"), "--rate: found 0.3 with --traffic a.csv; allow"),
        (("--traffic", "a.csv", "--flits", "3"), "--flits: found 3 with --traffic a.csv; allowed"),
        (("--traffic", "uniforn", "--rate", "0.3"), "--traffic: 'uniforn' is no file and none of"),
    ],
)
def test_what_has_no_meaning_is_refused(
    asked: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("cycle,source,destinations,flits,kind\n0,0:0,0:3,4,unicast\n")
    assert run(["noc", "--mesh", "4x4", *asked]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


@pytest.mark.parametrize("more", [("--level", "rtl"), ("--level", "at", "--fifo-depth", "8")])
def test_edited_routers_name_the_way_that_takes_minutes(
    wafertlm: Wafertlm, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    """Half an hour of calibration was all that the message knew."""

    def edited(sources: Any, folder: Any = None) -> list[str]:
        return ["rtl/noc/router.sv"]

    forget()
    monkeypatch.setattr("tlm.calibrated.changed_sources", edited)
    ran = wafertlm("noc", "--mesh", "4x4", "--traffic", "uniform", "--rate", "0.2", *more)
    forget()
    assert (ran.status, ran.stderr) == (
        2,
        "error: calibration 'unicast' is stale: rtl/noc/router.sv changed since it was measured; "
        "run 'wafertlm calibrate', or try it in minutes on a copy: 'wafertlm show router mesh "
        "--out FOLDER'; 'wafertlm calibrate --quick --store-quick --rtl FOLDER/mesh.toml'; "
        "noc --rtl FOLDER/mesh.toml\n",
    )
