"""Serving at level `at`: kernels packet by packet, on a chip of few tiles."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tlm.chips import find_chip
from tlm.engines.at.cost import Cost
from tlm.errors import InputError
from wafertlm.iteration import IterationOptions, run_iteration
from wafertlm.serving import ServeOptions, serve_result
from workloads.models import find_model
from workloads.serving.price import level_ratios, level_runs
from workloads.serving.price.cost import Batch
from workloads.serving.price.level_grid import OnGrid
from workloads.serving.price.level_runs import CountedRuns, LevelRuns
from workloads.serving.price.models import serving_model
from workloads.serving.price.parts import Layer
from workloads.serving.price.tile_price import TilePrice

#: Four tiles of `flat32`, which keep nothing.
CHIP, SET = "flat32", ("grid.rows=2", "grid.cols=2", "memory.channels=2")
LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model that four tiles run in seconds at this level."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA))
    return str(file)


def price_at(model: str, folder: Path, told: list[str] | None = None) -> TilePrice:
    """Its price on the tiles."""
    price = serving_model(find_model(model), find_chip(CHIP, SET))
    assert isinstance(price, TilePrice)
    return price.at_level(LevelRuns("at", folder, ([] if told is None else told).append))


@pytest.mark.parametrize("work", [{"prefill": ("32",)}, {"decode": "2@64"}])
def test_on_the_grid_serving_pays_what_an_iteration_takes_at_at(
    model: str, tmp_path: Path, work: dict[str, Any]
) -> None:
    options = IterationOptions(model=model, chip=CHIP, set=SET, level="at", **work)
    ran, told = run_iteration(options), list[str]()
    assert price_at(model, tmp_path, told).cost(options.batch).seconds == ran.seconds
    assert all("steps and packets, about" in each for each in told) and told
    perf = serving_model(find_model(model), find_chip(CHIP, SET))
    assert perf.cost(options.batch).seconds != ran.seconds


def test_the_router_decides_at_level_at(model: str, tmp_path: Path) -> None:
    batch, seconds = Batch(((40, 0),), 0, 0, 1), []
    for more in ((), ("noc.packet_flits=1",)):
        price = serving_model(find_model(model), find_chip(CHIP, (*SET, *more)))
        assert isinstance(price, TilePrice)
        seconds.append(price.at_level(LevelRuns("at", tmp_path)).cost(batch).seconds)
    assert seconds[0] != seconds[1]


@pytest.mark.parametrize("level", ["lt", "at"])
def test_the_interval_holds_that_of_interpolation(
    level: str,
    model: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def near(part: OnGrid) -> list[OnGrid]:
        return [part._replace(tokens=12)] if isinstance(part, Layer) else [part]

    monkeypatch.setenv("WAFERTLM_CACHE", str(tmp_path))
    monkeypatch.setattr(level_ratios, "checks", near)
    options = ServeOptions(
        model=model, chip=CHIP, set=SET, scheduler="chunked", workload="fixed:12:3",
        rate_rps=2.0, requests=2, level=level,
    )  # fmt: skip
    found = serve_result(options)
    told = re.search("level at: at least .* steps and packets", capsys.readouterr().err)
    assert (told is not None) == (level == "at")
    low, high = found["interval"]["ttft_s"]["low"], found["interval"]["ttft_s"]["high"]
    assert low < found["ttft_s"]["mean"] < high < 1.2 * low
    assert found["error"]["rests_on"]["noc"]["level"] == level
    assert any(note.startswith("interval: by how far interpolation") for note in found["notes"])
    assert serve_result(options) | {"wall_s": 0} == found | {"wall_s": 0}


def test_what_costs_too_much_is_refused_before_it_runs(tmp_path: Path) -> None:
    price = serving_model("llama3-8b", CHIP)
    assert isinstance(price, TilePrice)
    told: list[str] = []
    at = price.at_level(LevelRuns("at", tmp_path, told.append))
    refused = r"--level: at takes .* steps and packets, about .* CPU-s; allowed: 20,000,000"
    with pytest.raises(InputError, match=refused):
        at.cost(Batch(((4096, 0),), 0, 0, 1))
    assert told == []


def test_the_cost_of_all_is_bounded_and_of_what_is_kept_there_is_none(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    price = serving_model(find_model(model), find_chip(CHIP, SET))
    assert isinstance(price, TilePrice)
    batch, told = Batch(((8, 0),), 0, 0, 1), list[str]()
    folder = tmp_path / "at"
    counted = CountedRuns(folder)
    price.at_level(counted).cost(batch)
    assert not folder.exists()
    price_at(model, folder, told).cost(batch)
    costs = [int(re.findall(r"([0-9,]+) steps", each)[0].replace(",", "")) for each in told]
    assert sum(costs) == counted.cost.steps + counted.cost.packets
    again = CountedRuns(folder)
    price.at_level(again).cost(batch)
    assert again.cost == Cost()
    monkeypatch.setattr(level_runs, "BOUND", sum(costs) - 1)
    with pytest.raises(InputError, match="--level: at takes .* and more; allowed: "):
        price.at_level(CountedRuns(tmp_path / "other")).cost(batch)
