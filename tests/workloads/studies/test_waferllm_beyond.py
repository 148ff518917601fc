"""What the WaferLLM study says beyond the paper: routers that combine, and schedulers."""

import json

import pytest

from tlm.calibrated import stale_allowed
from workloads.studies.waferllm import beyond
from workloads.studies.waferllm.beyond import RouterCase, ServeCase, router_gates, served
from workloads.studies.waferllm.beyond_facts import beyond_facts
from workloads.studies.waferllm.cases import COMBINES, KEPT, LayerCase, simulate


@pytest.mark.parametrize("side", [420, 660])
def test_routers_that_combine_save_stages_and_calls(side: int) -> None:
    """With the calls kept each of the ten all-reductions takes its 360 cycles more."""
    case = LayerCase("llama3-8b", "decode", side, 4096)
    cores, calls, routers = (
        simulate(case._replace(network=network), 0)["layer_cycles"]
        for network in ("", KEPT, COMBINES)
    )
    assert cores is not None and calls is not None and routers is not None
    assert routers < calls < cores
    assert calls - routers == 10 * 360


def test_gates_are_the_difference_of_the_counted_routers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs = json.loads(beyond._GATES.read_text(encoding="utf-8"))["costs"]
    more = (
        costs["both, 32 bits of payload"]["nand2"] - costs["multicast, 32 bits of payload"]["nand2"]
    )
    found = router_gates(RouterCase("wse2"))
    assert (found["router_nand2"], found["chip_nand2"]) == (more, 921 * 921 * more)
    monkeypatch.setattr(beyond, "_is", lambda *_: False)  # the Verilog has changed since
    beyond._stored.cache_clear()
    assert set(router_gates(RouterCase("wse2")).values()) == {None}
    beyond._stored.cache_clear()


def test_schedulers_serve_the_same_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beyond, "REQUESTS", 40)
    monkeypatch.setattr(beyond, "RATE_RPS", 2.0)
    with stale_allowed(True):
        continuous, layered = (
            served(ServeCase("llama3-8b", name)) for name in ("continuous", "layered")
        )
    for figures in (continuous, layered):
        assert figures["overloaded"] == figures["overloaded_high"] == 0
        low, value, high = (figures[f"tbt_ms{end}"] for end in ("_low", "", "_high"))
        assert low is not None and value is not None and high is not None
        assert low <= value <= high
    assert continuous["ttft_s"] != layered["ttft_s"]


def test_rows_have_no_published_value_and_are_not_scored() -> None:
    rows = beyond_facts()
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.paper is None and row.fit == "not scored" for row in rows)
    assert all(len(row.name.split("/")) == 4 for row in rows)
