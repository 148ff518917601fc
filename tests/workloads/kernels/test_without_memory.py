"""What a plan takes if off-chip memory cost nothing: its closed form against `lt`."""

import pytest

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from tlm.engines.lt import run_lt
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law, store_law
from workloads.kernels.catalogue import (
    ATTENTION,
    GEMM,
    GROUPS,
    HEADS,
    KERNELS,
    LATENT,
    ROWS,
    SUMS,
)
from workloads.kernels.kernel import without_memory
from workloads.machine.dtypes import DTYPE_BITS
from workloads.machine.place import Place, chip_place

_SIZES = {
    ATTENTION: [(1, 8, 8, 64, 128, 64, 64), (4, 16, 4, 1, 2048, 64, 64)],
    LATENT: [(1, 8, 1, 64, 128, 96, 64)],
    GEMM: [(128, 128, 128), (32, 400, 128)],
    GROUPS: [(4, 32, 64, 64), (12, 3, 256, 256)],
    ROWS: [(64, 256), (16, 100)],
    HEADS: [(64, 256, 32)],
    SUMS: [(64, 64, 8)],
}


@pytest.fixture(scope="module", params=["flat32", "npusim-small"])
def place(request: pytest.FixtureRequest) -> Place:
    """Tiles with channels at the edge, and with one each."""
    chip = load_chip(request.param).for_dtype("fp16")
    return chip_place(chip, (4, 4), noc_timing(chip), *DTYPE_BITS["fp16"], memory=True)


def _edge(place: Place) -> Edge:
    assert place.offchip is not None
    return place.offchip


def test_a_block_costs_nothing_then(place: Place) -> None:
    free = _edge(place).at_no_cost()
    assert free.free
    for law in (load_law, store_law):
        assert law(place.timing, free, 1000).alone_cycles(5) == 0
        assert law(place.timing, free, 1000).paced_cycles == 0
        assert law(place.timing, _edge(place), 1000).alone_cycles(0) > 0


_LOADING = [name for name, kernel in KERNELS.items() if kernel.without_memory is without_memory]


@pytest.mark.parametrize("name", _LOADING)
def test_kernels_take_what_their_programs_take_then(place: Place, name: str) -> None:
    """Plans that were made for a place without memory were up to four times as long as these."""
    kernel = KERNELS[name]
    for sizes in _SIZES[kernel.form]:
        plan = kernel.planned(sizes, place)
        program = kernel.program(plan)
        whole = run_lt(program, place.timing, offchip=place.offchip).cycles
        least = run_lt(program, place.timing).cycles
        assert least < whole
        found = kernel.closed_form(kernel.without_memory(plan), place.timing)
        assert abs(found - least) < 0.07 * whole, (sizes, found, least, whole)
