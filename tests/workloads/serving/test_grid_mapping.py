"""Plans of a model's layers on a square grid: what bounds them before they are made."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from workloads.kernels.catalogue import Choices, Sizes
from workloads.machine.place import chip_place
from workloads.models import load_model
from workloads.serving.price.grid_layer import GridOperator
from workloads.serving.price.grid_mapping import GridMapping

MODEL = load_model("llama3-8b")
ON_A_WAFER = ["chain", "k-tree", "sequential", "stream", "stream-tree", "tree"]
#: A chip, the largest side and sizes there, and how sums come together.
CASES = [
    *(("wse2", 860, 200_000, method) for method in ON_A_WAFER),
    *(("rtl-8x8", 8, 400, method) for method in ["network", "stream", "tree"]),
]


@cache
def mapping(chip_name: str, side: int, method: str) -> GridMapping:
    """Plans on a place of a chip without its off-chip memory."""
    chip = load_chip(chip_name)
    place = chip_place(chip, (side, side), noc_timing(chip), 8, 32)
    return GridMapping(MODEL, place, choices=Choices(collective=method))


@pytest.mark.parametrize(("chip", "largest", "most", "method"), CASES)
@given(data=st.data())
def test_no_vector_takes_fewer_cycles_than_the_least(
    chip: str, largest: int, most: int, method: str, data: st.DataObject
) -> None:
    """Of long and short ones, on any side; some take no more."""
    place = mapping(chip, data.draw(st.integers(1, largest)), method)
    size = st.integers(1, most)
    shapes: dict[str, st.SearchStrategy[Sizes]] = {
        "mesh-gemv": st.tuples(st.just(1), size, size),
        "row-sum": st.tuples(size, size),
    }
    for kernel, sizes in shapes.items():
        operator = GridOperator("", kernel, data.draw(sizes))
        assert 0 <= place.least_cycles(operator) <= place.mapped(operator).cycles


def test_of_other_kernels_nothing_is_known() -> None:
    place = mapping("wse2", 30, "stream-tree")
    assert place.least_cycles(GridOperator("", "mesh-gemm", (9, 9, 9))) == 0
