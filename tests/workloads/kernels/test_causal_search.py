"""Which plans of FlatAttention with a causal mask are found, of prompts as serving meets them."""

import numpy as np
import pytest

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from workloads.kernels.attention import causal_search
from workloads.kernels.attention.flat_search import plan_flats
from workloads.kernels.attention.shape import AttentionShape
from workloads.machine.place import chip_place

#: New tokens of prompt chunks, and tokens before them.
PROMPTS = [
    (512, 0), (40, 0), (1500, 0), (320, 2048), (96, 448), (17, 5000), (480, 480), (2048, 2048),
    (256, 832), (136, 48), (288, 3968), (4096, 0),
]  # fmt: skip


@pytest.mark.parametrize("kv_heads", [4, 8])
@pytest.mark.parametrize(("name", "method"), [
    ("flat32", "network"), ("flat32", "tree"), ("npusim-large", "tree"), ("npusim-small", "tree"),
])  # fmt: skip
def test_few_plans_are_told_and_are_nearly_the_fastest(
    name: str, method: str, kv_heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chip = load_chip(name).for_dtype("fp16")
    grid = chip.grid.rows, chip.grid.cols
    place = chip_place(chip, grid, noc_timing(chip), 16, 16, memory=True)
    shapes = [
        AttentionShape(1, 32, kv_heads, new, new + before, 128, 128, causal=True)
        for new, before in PROMPTS
    ]
    found = np.array([plan_flats([shape], place, method)[0].cycles for shape in shapes])
    monkeypatch.setattr(causal_search, "_TOLD", 24)
    fastest = np.array([plan_flats([shape], place, method)[0].cycles for shape in shapes])
    assert (found / fastest).mean() < 1.08
    assert (found / fastest).max() < 1.35
