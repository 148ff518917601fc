"""Between what prices and figures of serving on tiles may lie."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Wafertlm
from tlm.chips import load_chip
from tlm.comparisons import load_chips
from tlm.level_errors import Between, between, chip_steps
from wafertlm.die_options import die_mapping
from wafertlm.iteration import IterationOptions, run_iteration
from wafertlm.kernel import result
from wafertlm.serving import ServeOptions, serve_result
from wafertlm.serving.interval import FIGURES
from wafertlm.serving.service import Service
from workloads.machine.groups import Parallel, groups_on
from workloads.models import find_model
from workloads.serving.price.group_price import GroupsPrice
from workloads.serving.price.models import serving_model

SERVED = {"model": "qwen3-1.7b", "chip": "flat32", "scheduler": "chunked", "workload": "sharegpt",
          "rate_rps": 8.0, "requests": 20}  # fmt: skip


def test_stored_cases_lie_within_their_own_bounds() -> None:
    for point in load_chips().points:
        how = {"memory": point.memory, "variant": point.variant}
        lt = chip_steps(point.chip, point.kernel, "lt", **how)
        perf = chip_steps(point.chip, point.kernel, "perf", **how)
        assert perf is not None
        assert [*perf[1:]] == [*(lt or [])]
        held_within(between(perf[:1], point.balance, point.perf), point.perf, point.lt)
        if point.at is not None:
            assert lt is not None
            held_within(between(lt, point.balance, point.lt), point.lt, point.at)


def held_within(ends: Between, cycles: int, found: int) -> None:
    low, high = (part * cycles for part in ends)
    assert low <= found * (1 + 1e-12) and found <= high * (1 + 1e-12)


@given(st.floats(-12, 12), st.integers(1, 10**12))
def test_a_time_lies_between_its_bounds(balance: float, cycles: int) -> None:
    for chip in ("flat32", "rtl", None):
        steps = chip_steps(chip, "stream-gemm", "perf", memory=True)
        assert steps is not None
        ends = between(steps, 2.0**balance, cycles)
        assert 0 < ends.low <= 1 <= ends.high < 2


def test_of_an_unknown_kernel_nothing_is_known() -> None:
    assert chip_steps("flat32", "fft", "perf", memory=True) is None
    assert chip_steps("flat32", "summa", "perf", memory=False, variant="by hand") is None


def drawn(seed: int) -> IterationOptions:
    """An iteration that no comparison was drawn for."""
    of = random.Random(seed)
    chip, grid = of.choice([("flat32", "8x8"), ("npusim-large", "4x4"), ("npusim-small", "8x8")])
    prefill = [f"{of.randint(1, 700)}@{of.choice([0, of.randint(1, 2000)])}"] * of.randint(0, 1)
    decode = None if prefill and of.random() < 0.3 else f"{of.randint(1, 48)}@{of.randint(1, 1500)}"
    return IterationOptions(
        model=of.choice(["llama3-8b", "qwen3-1.7b", "qwen3-14b"]), chip=chip, grid=grid,
        prefill=tuple(prefill), decode=decode,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seeds", "least"), [(range(4), 3), pytest.param(range(30), 27, marks=pytest.mark.slow)]
)
def test_most_iterations_at_lt_lie_between_the_bounds_of_perf(
    seeds: range, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between those of `perf` against `lt` alone: `lt` against `at` is not in them."""
    covered, widths = 0, []
    for seed in seeds:
        options = drawn(1000 + seed)
        whole = run_iteration(options).seconds_between
        with monkeypatch.context() as patch:
            patch.setattr(result, "chip_steps", first_step)
            perf = run_iteration(options)
        lt = run_iteration(replace(options, level="lt"))
        assert whole is not None
        assert perf.seconds_between is not None
        low, high = perf.seconds_between
        covered += low <= lt.seconds <= high
        widths.append((whole[1] - whole[0]) / 2 / perf.seconds)
    assert covered >= least
    assert max(widths) < 0.15
    assert np.median(widths) < 0.06


def first_step(*of: Any, **choices: Any) -> Any:
    return (chip_steps(*of, **choices) or [])[:1] or None


def small_layer(seed: int, folder: Path) -> dict[str, Any]:
    """An iteration of one small layer, of products or of experts, that no comparison has."""
    of = random.Random(seed)
    chip, grid = of.choice([("npusim-large", "4x4"), ("npusim-small", "8x8"), ("flat32", "4x4")])
    heads = of.choice([2, 4, 8])
    config = {
        "model_type": "llama",
        "hidden_size": of.choice([256, 512, 768, 1024]),
        "intermediate_size": of.randint(300, 2500),
        "num_hidden_layers": 1,
        "num_attention_heads": heads,
        "num_key_value_heads": of.choice([1, 2]),
        "head_dim": of.choice([32, 64]),
        "vocab_size": of.randint(500, 3000),
    }
    if of.random() < 0.25:
        config |= {"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2,
                   "moe_intermediate_size": of.randint(100, 800)}  # fmt: skip
    file = folder / f"{seed}.json"
    file.write_text(json.dumps(config))
    prefill = [f"{of.randint(1, 150)}@{of.choice([0, of.randint(1, 200)])}"] * of.randint(0, 1)
    decode = f"{of.randint(1, 12)}@{of.randint(1, 300)}"
    return {"model": str(file), "chip": chip, "grid": grid, "prefill": tuple(prefill),
            "decode": decode}  # fmt: skip


@pytest.mark.parametrize(
    ("seeds", "least"), [(range(3), 2), pytest.param(range(20), 18, marks=pytest.mark.slow)]
)
def test_most_iterations_at_at_lie_between_the_bounds_of_lt(
    seeds: range, least: int, tmp_path: Path
) -> None:
    covered, widths = 0, []
    for seed in seeds:
        asked = small_layer(7000 + seed, tmp_path)
        lt, at = (run_iteration(IterationOptions(**asked, level=level)) for level in ("lt", "at"))
        assert lt.seconds_between is not None
        low, high = lt.seconds_between
        covered += low <= at.seconds <= high
        widths.append((high - low) / 2 / lt.seconds)
    assert covered >= least
    assert max(widths) < 0.15
    assert np.median(widths) < 0.06


@pytest.mark.parametrize(
    ("model", "chip", "given"),
    [
        ("llama3-8b", "flat32", {"decode": "16@1024"}),
        ("llama3-8b", "wse2", {"decode": "16@1024"}),
        ("qwen3-1.7b", "npusim-large", {"decode": "8@100", "tp": 4, "pp": 4}),
        ("deepseek-v3-671b", "flat32-wafer", {"decode": "64@100", "expert_parallel": 32, "pp": 2}),
        ("deepseek-v3-671b", "flat32-wafer", {"decode": "64@100", "overlap": True}),
    ],
)
def test_an_iterations_bounds_are_those_of_its_price(
    model: str, chip: str, given: dict[str, Any]
) -> None:
    """Of regions, pipelines and dies, too, which do not add up kernel by kernel."""
    options = IterationOptions(model=model, chip=chip, **given)
    ran, batch = run_iteration(options), options.batch
    cached = batch.decode_context_tokens + batch.decode_tokens
    if "tp" in given:
        parallel = Parallel(tensor=4, pipeline=4)
        groups = groups_on(load_chip(chip), parallel)
        price: Any = GroupsPrice(find_model(model), groups, parallel, kv_wanted_tokens=cached)
        batch = batch._replace(
            decode_sram_tokens=min(batch.decode_context_tokens, price.kv_sram_tokens)
        )
    else:
        mapping = die_mapping(options, load_chip(chip))
        price = serving_model(model, chip, dies=mapping)
    ends = [price.at_end(end).cost(batch).seconds for end in ("low", "high")]
    assert ran.seconds_between == pytest.approx(ends, rel=1e-6)
    assert ends[0] < price.cost(batch).seconds < ends[1]
    assert price.not_compared == []
    # From what it was made of, too, of which a run keeps account.
    made_of = Counter(price.cost(batch).made_of)
    again = [of.seconds_of(made_of) for of in (price.at_end("low"), price, price.at_end("high"))]
    assert again == pytest.approx([ends[0], price.cost(batch).seconds, ends[1]], rel=1e-9)


@pytest.mark.parametrize(
    ("model", "chip", "given"),
    [
        ("llama3-8b", "wse2", {}),
        ("deepseek-v3-671b", "flat32-wafer", {"expert_parallel": 32, "pp": 2}),
        ("deepseek-v3-671b", "flat32-wafer", {"overlap": True}),
    ],
)
def test_the_error_of_a_run_is_that_of_its_iterations(
    model: str, chip: str, given: dict[str, Any]
) -> None:
    """Not of all their parts, of which some run side by side."""
    options = IterationOptions(model=model, chip=chip, prefill=("4096",), **given)
    served = ServeOptions(
        model=model, chip=chip, scheduler="continuous", workload="fixed:4096:1", rate_rps=1.0,
        requests=1, **given,
    )  # fmt: skip
    found = serve_result(served)["error"]["level_pct"]
    assert found == pytest.approx(run_iteration(options).level_pct, rel=1e-3)


@pytest.mark.parametrize("scheduler", ["chunked", "pd-disaggregation"])
def test_intervals_are_of_the_same_requests_at_both_ends_of_the_prices(scheduler: str) -> None:
    options = ServeOptions(**SERVED | {"scheduler": scheduler})
    found, service = serve_result(options), Service(options)
    low, centre, high = (
        of.run(options.seed) for of in (service.at_end("low"), service, service.at_end("high"))
    )
    for name in FIGURES:
        ends = found["interval"][name]
        means = [
            run[name]["mean"] if isinstance(run[name], dict) else run[name]
            for run in (low, centre, high)
        ]
        assert (ends["low"], ends["high"]) == (min(means), max(means)), name
    assert low["tbt_ms"]["mean"] < centre["tbt_ms"]["mean"] < high["tbt_ms"]["mean"]
    assert any(note.startswith("interval: by how far") for note in found["notes"])


def test_an_overloaded_end_is_null() -> None:
    found = serve_result(ServeOptions(**SERVED | {"rate_rps": 300.0, "requests": 400}))
    assert found["overloaded"]
    assert found["interval"]["note"].startswith("null where an end is overloaded")
    assert found["interval"]["ttft_s"]["high"] is None


def test_gpus_have_no_interval() -> None:
    found = serve_result(ServeOptions(**SERVED | {"chip": "h100x1"}))
    assert found["interval"] is found["error"]["rests_on"] is None
    assert not any("interval" in note for note in found["notes"])


def test_several_seeds_have_the_interval_of_their_means(wafertlm: Wafertlm) -> None:
    options = [f"--{name.removesuffix('_rps')}={value}" for name, value in SERVED.items()]
    ran = wafertlm("serve", *options, "--seeds", "2", "--json")
    found: dict[str, Any] = json.loads(ran.stdout)
    alone, ends = [], found["interval"]["e2e_s"]
    for seed in (0, 1):
        service = Service(ServeOptions(**SERVED, seed=seed))
        alone.append([service.at_end(end).run(seed)["e2e_s"]["mean"] for end in ("low", "high")])
    means = [sum(each) / 2 for each in zip(*alone, strict=True)]
    assert [ends["low"], ends["high"]] == pytest.approx(means)
