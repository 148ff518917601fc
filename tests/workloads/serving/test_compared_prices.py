"""What is told of kernels of which no error is known."""

from typing import Any

import pytest

from tlm.level_errors import LevelStep
from workloads.serving.price import compared_prices
from workloads.serving.price.level_runs import LevelRuns
from workloads.serving.price.models import serving_model
from workloads.serving.price.part_price import PartPrices
from workloads.serving.price.parts import Layer


@pytest.mark.parametrize(
    ("level", "missing"),
    [("perf", []), ("lt", ["rms-norm"]), ("at", [])],
)
def test_a_kernel_is_not_compared_where_its_level_is_not(
    level: str, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed form may be compared with `lt`, and nothing be known of `lt` itself."""

    def steps(chip: Any, kernel: str, of: str, **_: Any) -> list[LevelStep] | None:
        return None if (kernel, of) == ("rms-norm", "lt") else [LevelStep.anywhere(5.0)]

    monkeypatch.setattr(compared_prices, "chip_steps", steps)
    prices: Any = serving_model("llama3-8b", "flat32")
    found: PartPrices = prices.prices
    if level != "perf":
        runs = LevelRuns.__new__(LevelRuns)
        runs.level = level
        found = found.at_level(runs)
        monkeypatch.setattr(found, "_is_measured", lambda part: False)
    part = Layer(1, False)
    low, high = found.ends(part)
    assert (low < high) == (level != "at")
    assert found.not_compared == missing
