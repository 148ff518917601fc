"""``wafertlm compare``: runs that differ in an option, and how sure their differences are."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.routers.stored import CustomCalibration, calibration_file
from cosim.spec.mesh import load_spec
from tests.conftest import Wafertlm
from tlm.calibrated import REPOSITORY, load_result, source_hashes
from tlm.chips import find_tiles
from tlm.chips.parts import noc_timing
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.zero_load import NocTiming
from tlm.level_errors import EXACT, Between
from tlm.sealed import sealed
from wafertlm.compare import cases
from wafertlm.compare.change import Ran, Source, change
from wafertlm.kernel import KernelOptions, run_kernel
from workloads.studies.profiles import ProfileError

MESH = REPOSITORY / "docs" / "custom_rtl" / "mesh.toml"
SUMMA = ("kernel", "summa", "--chip", "rtl-4x4", "--grid", "4x4", "--shape", "64,64,64", "--dtype",
         "int8")  # fmt: skip
MULTICAST = ("noc", "--mesh", "4x4", "--collective", "multicast", "--group", "row", "--source",
             "1,0", "--flits", "16")  # fmt: skip
SERVE = ("serve", "--model", "qwen3-1.7b", "--chip", "flat32", "--scheduler", "chunked",
         "--workload", "fixed:200:20", "--rate", "8", "--requests", "20")  # fmt: skip
ITERATION = ("iteration", "--model", "qwen3-1.7b", "--chip", "flat32", "--decode", "4@200")


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases of the errors of changes are short ones."""
    monkeypatch.setattr(cases, "MOST_COST", 300)


def calibrated(
    folder: Path,
    name: str,
    timing: NocTiming,
    bound: int | None = None,
    changes: Sequence[tuple[str, str]] = (),
    off_pct: float = 0.0,
) -> Path:
    """The project's mesh under a name, with a calibration that found a timing, so far off."""
    text = MESH.read_text()
    named = ("custom-mesh", name), ("../../rtl", str(REPOSITORY / "rtl"))
    for old, new in (*named, *changes):
        assert old in text
        text = text.replace(old, new)
    (folder / f"{name}.toml").write_text(text)
    spec = load_spec(folder / f"{name}.toml")
    unicast = load_result("unicast").model_copy(update={"max_abs_error_pct": off_pct})
    found = CustomCalibration(
        sources=source_hashes([spec.file, *spec.source_files()], spec.folder), tools={},
        network={each.name: getattr(timing, each.name) for each in fields(NocTiming)},
        packet_flits=64, multicast_flits=bound, reduction_flits=bound,
        not_represented=[], results=[unicast],
    )  # fmt: skip
    calibration_file(spec).write_text(sealed(found))
    return spec.file


@pytest.fixture
def meshes(tmp_path: Path) -> str:
    """Two meshes of equal behaviour, and one with a cycle more at each hop."""
    own = rtl_timing()
    slow = replace(own, hop_cycles=own.hop_cycles + 1)
    timings = {"first": own, "second": own, "slow": slow}
    return ",".join(str(calibrated(tmp_path, *each, bound=4)) for each in timings.items())


def compared(wafertlm: Wafertlm, *arguments: object) -> dict[str, Any]:
    ran = wafertlm("compare", *arguments, "--json")
    assert ran.status == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def changes_to(found: dict[str, Any], variant: int) -> dict[str, dict[str, Any]]:
    values = found["variants"][variant]["values"]
    return {each["metric"]: each for each in found["changes"] if each["values"] == values}


def assert_nothing_changes(changes: dict[str, dict[str, Any]]) -> None:
    """No figure does, and each that is known is sure not to."""
    assert changes
    for each in changes.values():
        known = each["from"] is not None
        assert (each["change_pct"], each["significant"]) == ((0, False) if known else (None, None))
        assert (each["low_pct"], each["high_pct"]) == ((0, 0) if known else (None, None))


# Those of `serve` and `iteration`: tests/wafertlm/test_compare_pairs.py.
@pytest.mark.parametrize("command", [SUMMA, (*SUMMA, "--level", "at"), MULTICAST], ids=" ".join)
def test_routers_of_equal_behaviour_change_nothing_and_are_sure_of_it(
    wafertlm: Wafertlm, meshes: str, command: tuple[str, ...]
) -> None:
    found = compared(wafertlm, *command, "--vary", f"rtl={meshes}", "--no-gates")
    assert_nothing_changes(changes_to(found, 1))
    assert changes_to(found, 2)["cycles"]["change_pct"] > 0
    assert found["gates"] is None


@pytest.mark.parametrize(("links", "sure"), [("perf", False), ("lt", True)])
def test_links_between_dies_have_an_error_of_their_own(
    wafertlm: Wafertlm, links: str, sure: bool
) -> None:
    """Kernels of both variants are the same, and their errors cancel."""
    command = ("iteration", "--model", "deepseek-v3-671b", "--chip", "flat32-wafer")
    rates = "set:dies.link_bytes_per_s=1e12,2.5e11"
    found = compared(wafertlm, *command, "--decode", "64@100", "--links", links, "--vary", rates)
    slower = changes_to(found, 1)["cycles"]
    assert slower["change_pct"] > 0
    assert (slower["high_pct"] == slower["low_pct"] == slower["change_pct"]) is sure
    # In per cent of the level below, as of kernels: docs/dies.md.
    lines = found["variants"][0]["result"]["kernels"]
    errors = {each["operator"]: each["level_pct"] for each in lines}
    assert errors["dispatch"] == errors["combine"] == (0 if sure else 11.0)


@pytest.mark.rtl
@pytest.mark.slow
def test_routers_without_a_calibration_get_one(wafertlm: Wafertlm, tmp_path: Path) -> None:
    locked = REPOSITORY / "docs" / "custom_rtl" / "locked_mesh"
    shutil.copytree(locked, tmp_path / "locked", ignore=shutil.ignore_patterns("*.json"))
    spec = tmp_path / "locked" / "locked_mesh.toml"
    traffic = ("noc", "--mesh", "4x4", "--traffic", "uniform", "--rate", "0.02")
    found = compared(wafertlm, *traffic, "--no-gates", "--vary", f"rtl={spec},{spec}")
    assert calibration_file(load_spec(spec)).is_file()
    latency = {each["metric"]: each for each in found["changes"]}["latency_cycles.mean"]
    assert (latency["low_pct"], latency["high_pct"], latency["significant"]) == (0, 0, False)


def test_a_slower_hop_is_significant_where_the_model_is_exact(
    wafertlm: Wafertlm, meshes: str
) -> None:
    found = compared(wafertlm, *MULTICAST, "--vary", f"rtl={meshes}", "--no-gates")
    slower = changes_to(found, 2)
    assert slower["cycles"]["low_pct"] == slower["cycles"]["high_pct"] > 0
    assert slower["cycles"]["significant"]
    assert not slower["flit_hops"]["significant"]


def test_deeper_buffers_carry_more(wafertlm: Wafertlm) -> None:
    traffic = ("noc", "--mesh", "8x8", "--traffic", "uniform", "--rate", "0.3")
    saturation = changes_to(compared(wafertlm, *traffic, "--vary", "fifo-depth=4,8"), 1)[
        "saturation"
    ]
    assert saturation["from"] == pytest.approx(0.30, abs=0.01)
    assert saturation["to"] == pytest.approx(0.34, abs=0.01)
    assert saturation["significant"]


def test_figures_of_one_variant_alone_are_told(wafertlm: Wafertlm) -> None:
    vary = ("--vary", "collective=multicast,tree-reduce")
    alone = changes_to(compared(wafertlm, *MULTICAST, *vary), 1)["addition_cycles"]
    assert (alone["from"], alone["change_pct"], alone["significant"]) == (None, None, None)
    assert alone["to"] > 0


def test_a_table_has_each_change_once(wafertlm: Wafertlm) -> None:
    ran = wafertlm("compare", *MULTICAST, "--vary", "fifo-depth=4,8,8")
    assert ran.stdout.count("cycles") == 2


@pytest.mark.parametrize("command", [SUMMA, MULTICAST, SERVE, ITERATION], ids=" ".join)
def test_variants_are_runs_of_the_command(wafertlm: Wafertlm, command: tuple[str, ...]) -> None:
    vary = {
        "noc": ("fifo-depth=4,8", ("--fifo-depth",)),
        "kernel": ("level=perf,lt", ("--level",)),
    }.get(command[0], ("set:noc.hop_cycles=1,3", ("--set",)))
    found = compared(wafertlm, *command, "--vary", vary[0])
    for variant in found["variants"]:
        (name, value), *_ = variant["values"].items()
        written = f"{name.removeprefix('set:')}={value}" if name.startswith("set:") else value
        alone = json.loads(wafertlm(*command, *vary[1], written, "--json").stdout)
        shown = {
            name: part
            for name, part in alone.items()
            if name not in ("cpu_s", "wall_s", "compile_s")
        }
        assert variant["result"] == shown


def test_all_combinations_of_what_varies_run_in_order(wafertlm: Wafertlm) -> None:
    found = compared(
        wafertlm, "kernel", *SUMMA[2:-4], "--dtype", "int8", "--vary", "kernel=cannon,summa",
        "--vary", "shape=64,64,64;32,32,32",
    )  # fmt: skip
    values = [tuple(each["values"].values()) for each in found["variants"]]
    assert values == [
        ("cannon", "64,64,64"),
        ("cannon", "32,32,32"),
        ("summa", "64,64,64"),
        ("summa", "32,32,32"),
    ]
    assert {each["result"]["options"]["kernel"] for each in found["variants"]} == {
        "cannon",
        "summa",
    }


def test_a_flag_is_on_or_off(wafertlm: Wafertlm) -> None:
    found = compared(wafertlm, *MULTICAST, "--vary", "unprotected=off,on")
    assert [each["result"]["options"]["unprotected"] for each in found["variants"]] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "compare: no command given; known: noc, kernel, iteration, serve"),
        (("memory", "--vary", "a=1,2"), "unknown command 'memory'; known: iteration, kernel, noc"),
        (MULTICAST, "--vary: not given; write OPTION=V1,V2, such as rtl=A.toml,B.toml"),
        ((*MULTICAST, "--vary", "level=at"), "--vary: found 'level=at'; write OPTION=V1,V2"),
        ((*MULTICAST, "--vary", "speed=1,2"), "--vary: found 'speed'; allowed for noc: mesh"),
        ((*SERVE, "--vary", "rate=1,2", "--vary", "rate=3,4"), "--vary: found 'rate' twice; write"),
        ((*MULTICAST, "--vary", "set:noc.hop_cycles=1,2"), "--vary: found 'set:noc.hop_cycles'"),
        ((*MULTICAST, "--vary", "unprotected=0,1"), "unprotected: found '0'; allowed: on, off"),
        ((*ITERATION, "--vary", "plot=1,2"), "--vary: found 'plot'; allowed for iteration: model"),
        ((*SERVE, "--plot", "a.png", "--vary", "rate=1,2"), "--plot: found with compare; allowed"),
        (("serve", "--vary", "rate=1,2"), "serve: model not given"),
        ((*SERVE, "--vary", "requests=1,x"), "'x' is not a valid integer"),
        ((*SERVE, "--vary", "requests=1,x"), "see 'wafertlm serve --help'"),
        ((*SERVE, "--slo-ttft", "1", "--find-rate", "--vary", "chip=flat32,wse2"),
         "--find-rate: found with compare; allowed: a --rate"),
        ((*SERVE, "--fast", "--vary", "rate=1,2"), "No such option"),
        (("noc", "--vary", "rtl=no.toml,nor.toml", "--mesh", "4x4"), "no.toml: cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared(
    wafertlm: Wafertlm, arguments: tuple[str, ...], message: str
) -> None:
    ran = wafertlm("compare", *arguments)
    assert ran.status == 2
    assert message in ran.stderr


def test_the_example_of_the_document(wafertlm: Wafertlm) -> None:
    text = (REPOSITORY / "docs" / "compare.md").read_text()
    command, shown = re.findall(r"```text\nwafertlm (.*?)\n```\n\n((?:    .*\n)+)", text)[0]
    ran = wafertlm(*command.split())
    lines = [line.rstrip() for line in ran.stdout.splitlines()[:-1]]
    assert [line[4:].rstrip() for line in shown.splitlines()] == lines


percents = st.floats(0, 50)
cycles = st.floats(1, 1e9)


def off(pct: float | None) -> Between | None:
    """A time that may be so much less, or more."""
    return None if pct is None else Between(1 - pct / 100, 1 + pct / 100)


@given(cycles, cycles, percents, percents)
def test_errors_of_what_differs_add_up(before: float, after: float, one: float, two: float) -> None:
    mine = Ran({"cycles": before}, [Source(1.0, off(one), "a")])
    its = Ran({"cycles": after}, [Source(1.0, off(two), "b")])
    found = change("cycles", mine, its)
    lowest = after * (1 - two / 100) - before * (1 + one / 100)
    highest = after * (1 + two / 100) - before * (1 - one / 100)
    assert found["low_pct"] == pytest.approx(100 * lowest / before, rel=1e-9, abs=1e-6)
    assert found["high_pct"] == pytest.approx(100 * highest / before, rel=1e-9, abs=1e-6)
    assert found["significant"] == (found["low_pct"] > 0 or found["high_pct"] < 0)


@given(cycles, cycles, percents, st.floats(0, 1))
def test_errors_of_what_is_equal_cancel(
    before: float, after: float, error: float, share: float
) -> None:
    equal = Source(share, None, "equal")
    mine = Ran({"cycles": before}, [equal, Source(1 - share, off(error), "a")])
    its = Ran({"cycles": after}, [equal, Source(1 - share, off(error), "b")])
    found = change("cycles", mine, its)
    width = 2 * (1 - share) * error * (1 + after / before)
    assert found["high_pct"] - found["low_pct"] == pytest.approx(width, abs=1e-6 * (1 + width))


@pytest.mark.parametrize(
    ("metric", "error", "known"),
    [
        ("cycles", None, False),
        ("messages", None, True),
        ("energy_j", 1.0, False),
        ("cycles", 1.0, True),
    ],
)
def test_what_no_error_is_known_of_has_no_bounds(
    metric: str, error: float | None, known: bool
) -> None:
    mine, its = (Ran({metric: value}, [Source(1.0, off(error), value)]) for value in (1.0, 2.0))
    found = change(metric, mine, its)
    assert found["change_pct"] == 100
    assert (found["significant"] is not None) == known


def test_bounds_of_a_change_cover_what_the_levels_below_may_say() -> None:
    """A level that says 20 % less than the one below it lets a time be 25 % more."""
    mine = Ran({"cycles": 100, "accepted": 0.1}, [Source(1.0, EXACT, "a")])
    its = Ran({"cycles": 100, "accepted": 0.1}, [Source(1.0, Between(1.0, 1.25), "b")])
    found = change("cycles", mine, its)
    assert (found["low_pct"], found["high_pct"]) == pytest.approx((0, 25))
    found = change("accepted", mine, its)
    assert (found["low_pct"], found["high_pct"]) == pytest.approx((-20, 0))


def test_a_figure_that_is_equal_by_chance_may_change_at_the_ends() -> None:
    """Prices are the same, schedulers are not: each may be the faster one at an end."""
    same = [Source(1.0, None, "prices")]
    mine = Ran({"ttft": 1.0, "queue": 0.0, "left": 1.0}, same, {"ttft": (0.9, 1.2)})
    its = Ran({"ttft": 1.0, "queue": 0.0, "left": 2.0}, same, {"ttft": (0.9, 1.3)})
    found = change("ttft", mine, its)
    assert (found["low_pct"], found["high_pct"]) == pytest.approx((0, 100 / 12))
    assert change("queue", mine, its)["significant"] is None
    assert change("queue", mine, mine)["significant"] is False


def test_routers_of_one_timing_that_one_is_farther_from_are_not_alike(
    wafertlm: Wafertlm, tmp_path: Path
) -> None:
    """What the model is like in both may lie in the Verilog of the other that it is not like."""
    exact = calibrated(tmp_path, "exact", rtl_timing(), bound=4)
    other = calibrated(tmp_path, "other", rtl_timing(), bound=4, off_pct=10.0)
    for command in (MULTICAST, (*SUMMA, "--level", "at")):
        found = compared(wafertlm, *command, "--vary", f"rtl={exact},{other}", "--no-gates")
        cycles = changes_to(found, 1)["cycles"]
        assert cycles["change_pct"] == 0
        assert cycles["low_pct"] < -9 < 11 < cycles["high_pct"]


def test_figures_that_no_calibration_checks_have_no_bounds_where_the_model_is_not_exact(
    wafertlm: Wafertlm, tmp_path: Path
) -> None:
    """A fixed order may starve a packet: its latency is no mean one, give or take an error."""
    one, two, far = (
        calibrated(tmp_path, name, rtl_timing(), bound=4, off_pct=pct)
        for name, pct in (("one", 0.0), ("two", 0.0), ("far", 10.0))
    )
    traffic = ("noc", "--mesh", "4x4", "--traffic", "uniform", "--rate", "0.2", "--cycles", "500")
    found = compared(wafertlm, *traffic, "--vary", f"rtl={one},{two},{far}", "--no-gates")
    assert_nothing_changes(changes_to(found, 1))
    changes = changes_to(found, 2)
    mean = changes.pop("latency_cycles.mean")
    assert mean["low_pct"] < -9 < 11 < mean["high_pct"]
    known = {name for name, each in changes.items() if each["significant"] is not None}
    assert known == {"offered", "packets"}
    assert [each["result"]["error"]["level_pct"] for each in found["variants"]] == [0, 0, 10]


def test_a_network_like_the_chips_own_changes_no_figure(wafertlm: Wafertlm, tmp_path: Path) -> None:
    own = noc_timing(find_tiles("flat32"))
    spec = calibrated(tmp_path, "like-flat32", own)
    for command in (SERVE, ITERATION):
        plain, custom = (
            json.loads(wafertlm(*command, *more, "--json").stdout) for more in ((), ("--rtl", spec))
        )
        assert custom["provenance"]["calibration"] == "like-flat32"
        assert custom["provenance"]["rtl_hash"] is not None
        for result in (plain, custom):
            # Errors are of the chip's own constants, or of all chips'.
            for name in ("options", "provenance", "error", "interval", "seconds_low",
                         "seconds_high", "cpu_s", "wall_s", "compile_s"):  # fmt: skip
                result.pop(name, None)
            for each in result.get("kernels", ()):
                del each["level_pct"]
        assert custom == plain


def test_a_chip_with_other_routers_is_not_the_one_that_was_measured(
    wafertlm: Wafertlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known(chip: str, model: str) -> ProfileError:
        return ProfileError(20.0 if chip == "flat32" else None, "by a test")

    monkeypatch.setattr("wafertlm.serving.run.profile_error", known)
    spec = calibrated(tmp_path, "like-flat32", noc_timing(find_tiles("flat32")))
    own, other = (
        json.loads(wafertlm(*SERVE, *more, "--json").stdout)["error"]["profile_pct"]
        for more in ((), ("--rtl", spec))
    )
    assert (own, other) == (20.0, None)


def test_own_tiles_with_other_routers_have_the_cases_of_own_tiles(tmp_path: Path) -> None:
    """Engines and messages share banks there, as on no other chip."""
    spec = calibrated(tmp_path, "like-own", rtl_timing(), bound=4)
    asked = {"kernel": "stream-gemm", "chip": "rtl-4x4", "grid": "4x4", "shape": "64,64,64",
             "dtype": "int8", "level": "lt", "memory": "perf"}  # fmt: skip
    own, other = (run_kernel(KernelOptions(**asked, rtl=rtl)) for rtl in (None, str(spec)))
    assert own.cycles == other.cycles
    assert own.between is not None
    assert own.between == other.between


def test_variants_of_files_are_known_by_their_content(wafertlm: Wafertlm, tmp_path: Path) -> None:
    """A comparison of the same names had the same hash, whatever the files held."""
    text, hashes = (REPOSITORY / "tlm/chips/flat32.toml").read_text(), set()
    asked = ("kernel", "softmax", "--grid", "2x2", "--shape", "8,8", "--dtype", "fp16", "--level")
    for flops in ("64", "256"):
        file = tmp_path / "mine.toml"
        file.write_text(text.replace("flop_per_cycle = 128", f"flop_per_cycle = {flops}"))
        found = compared(wafertlm, *asked, "perf", "--vary", f"chip=flat32,{file}")
        hashes.add(found["provenance"]["config_hash"])
    assert len(hashes) == 2


def test_routers_that_nothing_is_known_of_bound_nothing(wafertlm: Wafertlm, tmp_path: Path) -> None:
    own = noc_timing(find_tiles("flat32"))
    exact, wild = (
        calibrated(tmp_path, name, own, off_pct=pct) for name, pct in (("exact", 0), ("wild", 150))
    )
    alone = json.loads(wafertlm(*ITERATION, "--rtl", wild, "--json").stdout)
    assert alone["seconds_high"] is alone["error"]["level_pct"] is None
    assert 0 < alone["seconds_low"] < alone["seconds"] / 2
    assert alone["options"]["rtl"] == "wild.toml"  # a path is of no other machine
    found = compared(wafertlm, *SERVE, "--vary", f"rtl={exact},{wild}", "--no-gates")
    served = found["variants"][1]["result"]
    assert served["interval"] is served["error"]["level_pct"] is None
    assert any("wild.toml is 150 % off at worst" in note for note in served["notes"])
    assert changes_to(found, 1)["tbt_ms.mean"]["significant"] is None


def test_flits_are_as_wide_as_the_chips(wafertlm: Wafertlm, tmp_path: Path) -> None:
    own = noc_timing(find_tiles("flat32"))
    spec = calibrated(tmp_path, "narrow", replace(own, flit_bytes=8))
    plain, custom = (
        json.loads(wafertlm(*ITERATION, *more, "--json").stdout) for more in ((), ("--rtl", spec))
    )
    assert custom["cycles"] == plain["cycles"]


def test_serving_asks_what_the_network_can_carry(wafertlm: Wafertlm, tmp_path: Path) -> None:
    spec = calibrated(tmp_path, "one-way", replace(rtl_timing(), operand_limit=1), bound=4)
    ran = wafertlm(*SERVE, "--rtl", spec)
    assert (ran.status, ran.stdout) == (2, "")
    assert "operands meet in a router; allowed: 1" in ran.stderr
    ran = wafertlm(*SERVE[:3], "--chip", "h100x1", *SERVE[5:], "--rtl", spec)
    assert (ran.status, ran.stdout) == (2, "")
    assert "--rtl: found with 'h100x1'; allowed: with chips of tiles" in ran.stderr
    spec = calibrated(tmp_path, "locked", replace(rtl_timing(), channel="output"), bound=4)
    ran = wafertlm(*ITERATION, "--rtl", spec)
    assert (ran.status, ran.stdout) == (2, "")
    assert (
        "found the network at level perf with locked.toml; allowed: of routers without locked"
        in ran.stderr
    )


def test_errors_of_the_same_prices_do_not_add_up(wafertlm: Wafertlm) -> None:
    vary, serve = "scheduler=chunked,continuous", (*SERVE, "--workload", "sharegpt")
    changes = changes_to(compared(wafertlm, *serve, "--vary", vary), 1)
    alone = [json.loads(wafertlm(*serve, "--scheduler", name, "--json").stdout) for name in
             ("chunked", "continuous")]  # fmt: skip
    for metric in ("ttft_s.mean", "e2e_s.mean"):
        first, other = (result["interval"][metric.split(".")[0]] for result in alone)
        apart = (other["low"] - first["high"], other["high"] - first["low"])
        each, before = changes[metric], changes[metric]["from"]
        assert each["low_pct"] <= each["change_pct"] <= each["high_pct"]
        assert each["high_pct"] - each["low_pct"] < 100 * (apart[1] - apart[0]) / before
    assert changes["queue_s.mean"]["significant"] is None


def test_other_prices_are_told_apart_by_their_intervals(wafertlm: Wafertlm) -> None:
    changes = changes_to(compared(wafertlm, *SERVE, "--vary", "chip=flat32,npusim-large"), 1)
    each = changes["tbt_ms.mean"]
    assert each["low_pct"] < each["change_pct"] < each["high_pct"]
    assert each["significant"] == (each["low_pct"] > 0 or each["high_pct"] < 0)
