"""``wafertlm kernel --level at`` on chips whose routers are figures of a profile."""

import json
from typing import Any

import pytest

from tests.conftest import Wafertlm

_FLAT = ("flat-attention", "--chip", "flat32", "--grid", "8x8", "--shape", "1,8,8,512,512,64,64")
_SUMMA = ("summa", "--chip", "flat32", "--grid", "4x4", "--shape", "350,395,468")


def ran(wafertlm: Wafertlm, *options: str) -> dict[str, Any]:
    ran = wafertlm("kernel", *options, "--dtype", "fp16", "--allow-stale", "--json")
    assert ran.status == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found | {"stderr": ran.stderr}


def test_levels_agree_and_at_says_its_cost(wafertlm: Wafertlm) -> None:
    at, lt = (ran(wafertlm, *_FLAT, "--level", level) for level in ("at", "lt"))
    assert at["cycles"] == lt["cycles"] == 9536
    assert at["stderr"] == "level at: 4,224 steps and packets, about 1 CPU-s\n"
    assert lt["stderr"] == ""
    # Nothing was held against our RTL with these constants.
    assert at["error"]["level_pct"] is at["error"]["profile_pct"] is None
    rests_on = at["error"]["rests_on"]
    assert [part["rtl_hash"] for part in rests_on.values()] == ["profile only"] * 3
    assert sum(part["share"] for part in rests_on.values()) == pytest.approx(1)
    assert at["provenance"]["rtl_hash"] is None


def test_what_the_profile_says_of_the_router_counts(wafertlm: Wafertlm) -> None:
    changes = ("buffer_flits=20", "packet_flits=8", "cut_through=false", "arbiter=fixed")
    cycles = [
        ran(wafertlm, *_SUMMA, "--level", "at", "--set", f"noc.{change}")["cycles"]
        for change in ("buffer_flits=32", *changes)
    ]
    assert cycles == [13684, 13754, 13679, 13679, 14174]
    # At lt multicasts are cut where they meet, and wait for room in buffers there alone.
    assert (
        ran(wafertlm, *_SUMMA, "--level", "lt", "--set", "noc.buffer_flits=20")["cycles"] == 13732
    )


@pytest.mark.parametrize("chip", ["flat32", "npusim-large"])
def test_off_chip_memory(wafertlm: Wafertlm, chip: str) -> None:
    options = ("stream-gemm", "--chip", chip, "--grid", "4x4", "--shape", "145,122,143")
    at, lt = (ran(wafertlm, *options, "--memory", "perf", "--level", of) for of in ("at", "lt"))
    assert at["cycles"] == pytest.approx(lt["cycles"], rel=0.03)
    # A stored case claims its own error at least; level `at` was held against nothing.
    if chip == "flat32":  # for which this one is stored
        error_pct = 100 * abs(lt["cycles"] - at["cycles"]) / at["cycles"]
        assert lt["error"]["nearest_pct"] == pytest.approx(error_pct)
    assert lt["error"]["nearest_pct"] <= lt["error"]["level_pct"] <= lt["error"]["worst_pct"]
    assert at["error"]["level_pct"] is None
    assert at["memory_bytes"] == lt["memory_bytes"]
    assert at["memory"]["read_bytes"] >= at["memory"]["loaded_bytes"] > 0
    assert at["breakdown_cycles"]["memory"] > 0


def test_a_run_that_costs_too_much_is_refused(
    wafertlm: Wafertlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tlm.engines.at.cost.BOUND", 4_000)
    refused = wafertlm("kernel", *_FLAT, "--dtype", "fp16", "--allow-stale", "--level", "at")
    assert refused.status == 2
    assert refused.stderr == (
        "error: --level: at takes 4,224 steps and packets, about 1 CPU-s; allowed: 4,000; take "
        "--level lt, or a smaller --grid or --shape\n"
    )
