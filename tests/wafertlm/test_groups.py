"""``wafertlm iteration`` and ``serve`` on tensor-parallel groups, pipelines and pools of tiles."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wafertlm
from tlm.calibrated import stale_allowed
from tlm.chips import load_chip
from wafertlm.iteration import IterationOptions, run_iteration
from wafertlm.serving import ServeOptions, serve_result
from workloads.machine.groups import Parallel, groups_on
from workloads.models import find_model
from workloads.serving.price.group_price import GroupsPrice

_MODEL, _CHIP = "qwen3-4b", "npusim-large"
_LOAD: dict[str, Any] = {
    "model": _MODEL, "chip": _CHIP, "workload": "fixed:100:20", "rate_rps": float("inf"),
    "requests": 40,
}  # fmt: skip


def served(**options: Any) -> dict[str, Any]:
    with stale_allowed():
        return serve_result(ServeOptions(**_LOAD | options))


@pytest.mark.parametrize(
    "groups",
    [
        {"tp": 4, "pp": 4},
        {"tp": 4, "pp": 2, "partition": "mn", "placement": "ring"},
        {"tp": 1, "pp": 7, "micro_batch": 3},
        {"tp": 4, "pp": 4, "stage_rows": 2},
    ],
)
def test_serving_pays_what_an_iterations_kernels_take(groups: dict[str, Any]) -> None:
    options = IterationOptions(
        model=_MODEL, chip=_CHIP, prefill=("100", "60@200"), decode="9@300", **groups,
        allow_stale=True,
    )  # fmt: skip
    ran = run_iteration(options)
    names = {"tp": "tensor", "pp": "pipeline"}
    parallel = Parallel(**{names.get(name, name): each for name, each in groups.items()})
    batch = options.batch
    cached = sum(map(sum, batch.prefills)) + batch.decode_context_tokens + batch.decode_tokens
    # An iteration by itself has as much room for keys and values as it needs, if there is any.
    groups_there = groups_on(load_chip(_CHIP), parallel)
    price = GroupsPrice(find_model(_MODEL), groups_there, parallel, kv_wanted_tokens=cached)
    kept = min(batch.decode_context_tokens, price.kv_sram_tokens or 0)
    cost = price.cost(batch._replace(decode_sram_tokens=kept))
    assert ran.cycles == round(cost.seconds * 5e8)
    assert price.static_power_w is not None and cost.energy_j is not None
    idle_j = price.static_power_w * ran.seconds
    assert ran.energy_j == pytest.approx(cost.energy_j + idle_j)
    found = ran.record({})
    assert found["groups"]["tp"] == groups.get("tp", 1)
    assert found["groups"]["idle_tiles"] == price.idle_tiles
    assert sum(found["groups"]["layers"]) == 36
    weights = sum(
        each["count"] * each["memory_bytes"]["read"]
        for each in found["kernels"]
        if each["operator"] in ("qkv", "down")
    )
    least = 36 * 2 * 2560 * (4096 + 2048 + 9728)
    assert weights >= least * found["groups"]["micro_batches"]


def test_levels_are_near_each_other() -> None:
    options = {"model": _MODEL, "chip": _CHIP, "decode": "4@200", "tp": 4, "pp": 12}
    perf, lt = (
        run_iteration(IterationOptions(**options, level=level, allow_stale=True)).cycles
        for level in ("perf", "lt")
    )
    assert perf == pytest.approx(lt, rel=0.02)


@pytest.mark.parametrize(
    ("asked", "groups"),
    [
        # Stages have as many tiles as heads go with; what is left over is for more pipelines.
        ({"pp": 7}, {"tp": 8, "pp": 7, "dp": 1, "idle_tiles": 8}),
        ({"pp": 16}, {"tp": 4, "pp": 16, "dp": 1, "idle_tiles": 0}),
        ({"pp": 4, "dp": 4}, {"tp": 4, "pp": 4, "dp": 4, "idle_tiles": 0}),
        ({"dp": 3}, {"tp": 16, "pp": 1, "dp": 3, "idle_tiles": 16}),
        ({"placement": "ring"}, {"tp": 16, "pp": 1, "dp": 4, "idle_tiles": 0}),
        ({"tp": 1, "pp": 7}, {"tp": 1, "pp": 7, "dp": 9, "idle_tiles": 1}),
    ],
)
def test_groups_share_the_tiles_of_a_chip(asked: dict[str, Any], groups: dict[str, int]) -> None:
    options = IterationOptions(model=_MODEL, chip=_CHIP, decode="2@50", **asked, allow_stale=True)
    found = run_iteration(options).record({})["groups"]
    assert {name: found[name] for name in groups} == groups


def test_groups_share_the_tiles_of_a_pool() -> None:
    split = {"prefill_units": 42, "decode_units": 21, "pp": 7, "requests": 4}
    groups = served(scheduler="pd-disaggregation", **split)["groups"]
    assert [(groups[pool]["tp"], groups[pool]["dp"]) for pool in ("prefill", "decode")] == [
        (4, 1), (2, 1)
    ]  # fmt: skip


def test_replicas_serve_requests_apart() -> None:
    """Twice the replicas halve what each has to do; the others' power counts all the same."""
    one, two = (served(scheduler="chunked", tp=4, pp=4, dp=number) for number in (1, 2))
    assert one["completed"] == two["completed"] == 40
    assert two["e2e_s"]["mean"] < 0.9 * one["e2e_s"]["mean"]
    room = one["kv"]["capacity_tokens"]  # that in SRAM is by what a replica is to hold
    assert two["kv"]["capacity_tokens"] == pytest.approx(2 * room, rel=0.01)
    assert one["options"]["tp"] == 4 and "partition" not in one["options"]
    all_of_them = served(scheduler="chunked", tp=4, pp=4)
    assert all_of_them["kv"]["capacity_tokens"] == pytest.approx(4 * room, rel=0.01)


def test_pools_of_any_number_of_tiles() -> None:
    split = {"prefill_units": 45, "decode_units": 16, "prefill_tp": 1, "prefill_pp": 15}
    split |= {"decode_tp": 4, "pp": 4}
    found = served(scheduler="pd-disaggregation", **split)
    pools = found["pools"]
    assert (pools["prefill"]["replicas"], pools["prefill"]["share"]) == (3, 45 / 64)
    assert pools["decode"]["share"] == 16 / 64
    groups = found["groups"]
    assert [groups[pool]["idle_tiles"] for pool in ("prefill", "decode")] == [3, 3]
    assert (groups["prefill"]["pp"], groups["decode"]["group"]) == (15, "1x4")
    assert pools["link"]["carried_bytes"] == 40 * 100 * 147456
    assert found["completed"] == 40


def test_placements_of_pools_change_the_ways_alone() -> None:
    split = {"prefill_units": 32, "decode_units": 32, "tp": 1, "pp": 8}
    found = {
        placement: served(scheduler="pd-disaggregation", pd_placement=placement, **split)
        for placement in ("pp-first", "dp-first", "sides")
    }
    energies = {each["pools"]["link"]["energy_j"] for each in found.values()}
    assert len(energies) > 1
    times = [each["e2e_s"]["mean"] for each in found.values()]
    assert max(times) == pytest.approx(min(times), rel=0.02)


def test_other_cores_decode(tmp_path: Path) -> None:
    split = {"prefill_units": 32, "decode_units": 32, "tp": 1, "pp": 8}
    whole = served(scheduler="pd-disaggregation", **split)
    file = tmp_path / "slow.toml"
    text = (Path(__file__).parents[2] / "tlm" / "chips" / "npusim-large.toml").read_text()
    file.write_text(text.replace("7.68e12", "1.92e12"))
    other = served(scheduler="pd-disaggregation", **split, decode_chip=str(file))
    assert other["ttft_s"]["mean"] == pytest.approx(whole["ttft_s"]["mean"])
    assert other["tbt_ms"]["mean"] > 2 * whole["tbt_ms"]["mean"]
    # Its file is kept by its content, as others are.
    assert (other["options"]["decode_chip"], "contents" in whole) == ("slow", False)
    kept = other["contents"]["decode_chip"]
    file.write_text(text.replace("7.68e12", "3.84e12"))
    again = served(scheduler="pd-disaggregation", **split, decode_chip=str(file))
    assert again["contents"]["decode_chip"] != kept


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tp", "3"), "--tp: found 3; allowed for the 32 heads of queries and 8 of keys"),
        (("--tp", "65"), "--tp, --pp, --dp: found 65 x 1 x 1 = 65 tiles; allowed on"),
        (("--partition", "rows"), "unknown partition 'rows'; known: 2d, auto, input, k, mn"),
        (("--tp", "4", "--kv-sram-tokens", "8"), "--kv-sram-tokens: found 8 with groups of tiles"),
        (("--decode-tp", "4"), "--decode-tp: found 4; only pd-disaggregation has pools"),
    ],
)
def test_what_serve_refuses(wafertlm: Wafertlm, options: tuple[str, ...], message: str) -> None:
    fixed = ("--model", _MODEL, "--chip", _CHIP, "--scheduler", "chunked")
    load = ("--workload", "fixed:10:2", "--rate", "inf", "--requests", "2")
    ran = wafertlm("serve", *fixed, *load, *options)
    assert (ran.status, message in ran.stderr) == (2, True), ran.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prefill-units", "60"), "--decode-tp, --decode-pp, --decode-dp: found 8 x 1 x 1 = 8"),
        (
            ("--prefill-units", "70"),
            "--prefill-units, --decode-units: found 70 and -6 tiles; allowed",
        ),
        (("--pd-placement", "here"), "unknown pd-placement 'here'; known: dp-first, pp-first, s"),
        (("--decode-chip", "npusim-small"), "--decode-chip: found 'npusim-small' with grid"),
        (("--decode-chip", "h100x2"), "--decode-chip: found 'h100x2'; allowed: chips of tiles"),
    ],
)
def test_what_pools_refuse(wafertlm: Wafertlm, options: tuple[str, ...], message: str) -> None:
    fixed = ("--model", _MODEL, "--chip", _CHIP, "--scheduler", "pd-disaggregation")
    load = ("--workload", "fixed:10:2", "--rate", "inf", "--requests", "2")
    ran = wafertlm("serve", *fixed, *load, "--prefill-pp", "8", "--decode-tp", "8", *options)
    assert (ran.status, message in ran.stderr) == (2, True), ran.stderr


@pytest.mark.parametrize("chip", ["wse2", "flat32-wafer", "h100x2"])
def test_other_chips_have_no_groups(wafertlm: Wafertlm, chip: str) -> None:
    fixed = ("--model", "qwen3-8b", "--chip", chip, "--scheduler", "chunked")
    load = ("--workload", "fixed:10:2", "--rate", "inf", "--requests", "2")
    ran = wafertlm("serve", *fixed, *load, "--tp", "2")
    assert ran.status == 2
    assert "--tp" in ran.stderr
    assert f"found with '{chip}'" in ran.stderr


def test_the_result_is_json(wafertlm: Wafertlm) -> None:
    ran = wafertlm(
        "iteration", "--model", _MODEL, "--chip", _CHIP, "--decode", "2@50", "--tp", "4", "--pp",
        "12", "--allow-stale", "--json",
    )  # fmt: skip
    found = json.loads(ran.stdout)
    assert found["options"]["tp"] == 4
    assert "dp" not in found["options"]


def test_shares_of_stages_that_work_side_by_side_add_up_to_all(wafertlm: Wafertlm) -> None:
    ran = wafertlm(
        "iteration", "--model", _MODEL, "--chip", _CHIP, "--decode", "8@512", "--tp", "4", "--pp",
        "5", "--allow-stale",
    )  # fmt: skip
    assert ran.status == 0
    shares = [float(each) for each in re.findall(r"([0-9.]+)% │", ran.stdout)]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    assert "if one kernel ran at a time: shares are of these" in ran.stdout
    assert "4 tiles of the chip stand still" in ran.stdout


@pytest.mark.parametrize(
    ("options", "idle"),
    [
        ({"scheduler": "chunked", "tp": 4, "pp": 5}, "4"),
        ({"scheduler": "pd-disaggregation", "tp": 1, "pp": 7, "decode_units": 21}, "1"),
        ({"scheduler": "chunked", "tp": 4, "pp": 4}, None),
    ],
)
def test_tiles_without_a_group_are_told(options: dict[str, Any], idle: str | None) -> None:
    notes = [note for note in served(**options)["notes"] if note.startswith("tiles: ")]
    told = f"tiles: {idle} of the chip's 64 have no group and stand still"
    assert notes == ([] if idle is None else [told])


def test_what_tiles_keep_is_told() -> None:
    found = served(scheduler="pd-disaggregation", tp=4, pp=4, decode_units=16, requests=4)
    notes = [note for note in found["notes"] if note.startswith("residency: ")]
    assert len(notes) == 2
    for note, (pool, kept) in zip(notes, found["residency"].items(), strict=True):
        shares = [100 * each["weight_share"] for each in kept["stages"]]
        told = f"{min(shares):.3g} to {max(shares):.3g} % of a stage's weights"
        assert note.startswith(f"residency: tiles of the {pool} pool keep {told}, and keys and")


def test_stages_keep_the_experts_that_a_profile_asks_for() -> None:
    found = served(
        model="qwen3-30b-a3b", set=("residency.experts=hottest", "tile.sram_kib=262144"),
        scheduler="chunked", requests=2, tp=4, pp=16,
    )  # fmt: skip
    assert all(stage["experts_per_layer"] > 0 for stage in found["residency"]["stages"])


def test_notes_are_printed_whole(wafertlm: Wafertlm) -> None:
    """A profile's table is named in brackets, which are no markup."""
    ran = wafertlm(
        "serve", "--model", _MODEL, "--chip", _CHIP, "--scheduler", "chunked", "--workload",
        "fixed:100:20", "--rate", "inf", "--requests", "4", "--tp", "4", "--pp", "4",
    )  # fmt: skip
    assert "beyond the points of its profile's [area]" in " ".join(ran.stdout.split())
