"""``wafertlm iteration`` on a chip whose tiles hold weights, keys and values."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wafertlm
from tests.wafertlm.test_iteration import TINY
from wafertlm.iteration import IterationOptions, run_iteration
from wafertlm.kernel import KernelOptions, run_kernel
from workloads.models import load_model
from workloads.studies.waferllm.cases import LayerCase, simulate

_WAFER = {"model": "llama3-8b", "chip": "wse2", "allow_stale": True}
LAYERS = load_model("llama3-8b").layers


def found(**options: Any) -> dict[str, Any]:
    record: dict[str, Any] = run_iteration(IterationOptions(**_WAFER, **options)).record({})
    return json.loads(json.dumps(record))


@pytest.mark.parametrize(
    ("options", "phase"), [({"prefill": ("4096",)}, "prefill"), ({"decode": "1@4096"}, "decode")]
)
def test_it_adds_up_the_layers_of_the_study_and_the_head(
    options: dict[str, Any], phase: str
) -> None:
    ran = found(**options, grid="420x420")
    layer = simulate(LayerCase("llama3-8b", phase, 420, 4096), 0)["layer_cycles"]
    head = sum(
        each["cycles"] for each in ran["kernels"] if each["operator"] in ("last norm", "head")
    )
    assert layer is not None
    assert ran["cycles"] == LAYERS * layer + head
    assert ran["regions"][phase] == {
        "grid": "420x420", "count": 4, "layers_each": 8, "fits": True,
        "kv_tokens": {"concat": 293, "shift": 420 * 293}, "bubble_pct": 75.0,
    }  # fmt: skip
    assert ran["reshuffle_cycles"] == 0


@pytest.mark.parametrize("options", [{"prefill": ("40",)}, {"decode": "1@64"}])
def test_each_kernel_is_the_one_that_kernel_runs(tmp_path: Path, options: dict[str, Any]) -> None:
    model = tmp_path / "config.json"
    model.write_text(json.dumps(TINY))
    asked = {"chip": "wse2", "grid": "16x16", "level": "lt", "allow_stale": True}
    ran = run_iteration(IterationOptions(model=str(model), **asked, **options)).record({})
    for each in ran["kernels"]:
        alone = run_kernel(
            KernelOptions(
                kernel=each["kernel"], shape=each["shape"], dtype="fp16",
                skewed=each["operator"] in ("key", "value", "up"), **asked,
            )
        )  # fmt: skip
        assert alone.cycles == each["cycles"], each["operator"]


def test_requests_pass_the_regions_one_behind_another() -> None:
    one, eight = (found(decode=f"{count}@4096", grid="420x420") for count in (1, 8))
    # A quarter of the way ends every quarter of a request's time; three more drain the regions.
    assert eight["cycles"] == round(one["cycles"] * (8 + 3) / 4)
    assert eight["regions"]["decode"]["bubble_pct"] == pytest.approx(100 * 3 / 11)


def test_both_phases_are_tuned_and_reshuffled_between() -> None:
    ran = found(prefill=("2048",), decode="1@2048")
    moved = [each for each in ran["kernels"] if each["kernel"] == "exchange"]
    assert [each["place"] for each in moved] == 2 * ["1x921", "921x1"]
    sides = {each["place"] for each in ran["kernels"] if each not in moved}
    assert sides == {each["grid"] for each in ran["regions"].values()}
    assert len(sides) == 2
    assert ran["reshuffle_cycles"] == sum(each["count"] * each["cycles"] for each in moved) > 0
    one_by_one = sum(each["count"] * each["cycles"] for each in ran["kernels"])
    # Each phase has one request.
    assert ran["cycles"] == one_by_one
    assert ran["energy_j"] == pytest.approx(15e3 * ran["seconds"])


def test_a_model_that_does_not_fit_is_counted_and_says_so(wafertlm: Wafertlm) -> None:
    asked = ("--model", "qwen2-72b", "--chip", "wse2", "--decode", "1@4096", "--grid", "540x540")
    ran = wafertlm("iteration", *asked, "--allow-stale", "--json")
    assert ran.status == 0, ran.stderr
    regions = json.loads(ran.stdout)["regions"]["decode"]
    assert not regions["fits"]
    refused = wafertlm("iteration", "--model", "gpt-oss-20b", *asked[2:])
    assert refused.status == 2
    assert "'gpt-oss-20b' has experts and sliding windows; allowed on a chip" in refused.stderr
