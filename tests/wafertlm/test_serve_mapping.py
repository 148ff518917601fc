"""``wafertlm serve`` with variants of kernels: ``--collective``, ``--schedule``, ``--group``."""

from itertools import chain
from typing import Any

import pytest

from tests.conftest import Wafertlm
from tlm.chips import load_chip
from tlm.errors import InputError
from wafertlm.compare import cases
from wafertlm.compare.run import run_comparison
from wafertlm.compare.variants import variants
from wafertlm.serving import ServeOptions, serve_result
from wafertlm.serving.service import Service
from wafertlm.stopwatch import stopwatch
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.kernels.gemm.stream_plan import StreamPlan
from workloads.serving.price.parts import Decode, Layer, Prompt
from workloads.serving.price.tile_price import TilePrice

#: Long prompts.
SERVED: dict[str, Any] = {
    "model": "qwen3-1.7b", "chip": "flat32", "scheduler": "chunked", "workload": "arxiv",
    "rate_rps": 1.0, "requests": 4,
}  # fmt: skip


def served(**chosen: str) -> dict[str, Any]:
    return serve_result(ServeOptions(**SERVED, **chosen))


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    return served()


def test_what_kernels_do_by_themselves_changes_no_figure(own: dict[str, Any]) -> None:
    chosen = {"collective": "network", "schedule": "async", "group": "auto"}
    found = served(**chosen)
    assert found.pop("options") == own["options"] | chosen
    assert found == {name: figure for name, figure in own.items() if name != "options"}
    assert not chosen.keys() & own["options"].keys()


@pytest.mark.parametrize(
    "chosen",
    [{"schedule": "naive"}, {"collective": "tree"}, {"collective": "sequential"}, {"group": "8x8"}],
)
def test_no_variant_is_faster_than_the_kernels_own(
    own: dict[str, Any], chosen: dict[str, str]
) -> None:
    found = served(**chosen)
    assert found["options"] == own["options"] | chosen
    for name in ("ttft_s", "e2e_s"):
        assert found[name]["mean"] > own[name]["mean"]


def test_collectives_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "MOST_COST", 400)  # how the error is measured has tests of its own
    short = SERVED | {"workload": "fixed:512:4"}  # few lengths: both are priced
    given = [f"--{name.removesuffix('_rps')}={value}" for name, value in short.items()]
    with stopwatch() as watch:
        asked = variants("serve", given, ["collective=network,tree"])
        comparison = run_comparison("serve", asked, watch)
    found = comparison.record([], {})
    assert [each["values"] for each in found["variants"]] == [
        {"collective": "network"}, {"collective": "tree"},
    ]  # fmt: skip
    first, other = (each["result"]["ttft_s"]["mean"] for each in found["variants"])
    change = next(each for each in found["changes"] if each["metric"] == "ttft_s.mean")
    assert change["change_pct"] == pytest.approx(100 * (other / first - 1))
    assert change["change_pct"] > 0
    # They do not rest on the same: nothing cancels.
    mine, its = (run.sources[0].rests_on for run in comparison.runs)
    assert mine != its


def test_both_pools_have_the_variants() -> None:
    options = ServeOptions(**SERVED | {"scheduler": "pd-disaggregation"}, collective="tree")
    parts = Layer(64, False), Prompt(64, 0, None), Decode(4, 1, 64, None)
    for price in Service(options).tiles:
        for mapping, mapped in chain.from_iterable(map(price.prices.plans, parts)):
            assert mapping.choices == options.choices
            if mapped.kernel == "stream-gemm":
                assert isinstance(mapped.plan, StreamPlan)
                assert mapped.plan.method == "tree"


@pytest.mark.parametrize(
    ("kernel", "chip", "choices", "variant"),
    [
        ("flat-attention", "flat32", Choices("network", schedule="async"), ""),
        (
            "flat-attention",
            "flat32",
            Choices("tree", schedule="naive", group=(4, 4)),
            "naive, tree",
        ),
        ("flat-attention", "npusim-small", Choices("tree"), "tree"),  # slices, too
        ("decode-attention", "flat32", Choices("tree"), "tree"),
        ("decode-attention", "npusim-small", Choices("tree"), ""),  # as it is there by itself
        ("residual", "flat32", Choices("tree", schedule="naive"), ""),  # it reduces nothing
        ("mesh-gemv", "flat32", Choices("network"), "network"),
        ("mesh-gemv", "flat32", Choices("k-tree"), ""),
    ],
)
def test_comparisons_know_choices_by_what_differs(
    kernel: str, chip: str, choices: Choices, variant: str
) -> None:
    place = TilePrice(Service(ServeOptions(**SERVED)).model, load_chip(chip)).place
    assert KERNELS[kernel].variant(choices, place) == variant


def test_what_a_chip_cannot_do_is_refused(wafertlm: Wafertlm) -> None:
    for chip, chosen, message in (
        ("flat32", {"group": "3x4"}, "--group: found 3x4; allowed: auto, or rows and columns of"),
        ("flat32", {"group": "four"}, "--group: found 'four'; write ROWSxCOLS"),
        ("flat32", {"collective": "k-tree"}, "--collective: found 'k-tree'; this kernel chooses"),
        ("flat32", {"collective": "ring"}, "unknown collective 'ring'; known: chain, k-tree"),
        ("flat32", {"schedule": "late"}, "unknown schedule 'late'; known: async, naive"),
        ("npusim-small", {"collective": "network"}, "this chip's routers do not combine"),
        ("h100x1", {"schedule": "naive"}, "--schedule: found with 'h100x1'; allowed: with chips"),
    ):
        with pytest.raises(InputError) as refused:
            serve_result(ServeOptions(**SERVED | {"chip": chip}, **chosen))
        assert message in str(refused.value)
    options = [f"--{name.removesuffix('_rps')}={value}" for name, value in SERVED.items()]
    ran = wafertlm("serve", *options, "--group", "5x5")
    assert ran.status == 2
    assert "--group: found 5x5" in ran.stderr
