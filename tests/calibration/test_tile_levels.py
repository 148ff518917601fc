"""Kernels on four tiles in Verilog: `at` is near them, and how the comparison counts."""

from collections.abc import Iterator

import pytest

from calibration.tables import tile_table
from calibration.tile.machine import TileMachine
from calibration.tile_levels import TileCase, cases, point, tile_model
from tlm.calibrated import TilePoint
from tlm.chips import load_chip
from workloads.kernels.catalogue import KERNELS, Choices


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(tile_model(load_chip("rtl-2x2"), (2, 2))) as machine:
        yield machine


@pytest.mark.rtl
@pytest.mark.parametrize(
    "case",
    [
        TileCase("mesh-gemm", (2, 2), (40, 24, 72)),
        TileCase("mesh-gemm-t", (2, 2), (64, 16, 32)),
        TileCase("allgather-gemm", (2, 2), (16, 48, 32)),
        TileCase("mesh-gemv", (2, 2), (1, 96, 80)),
        TileCase("softmax", (2, 2), (10, 44), Choices("tree")),
        TileCase("flat-attention", (2, 2), (1, 3, 3, 16, 16, 16, 8)),
    ],
    ids=lambda case: str(case.kernel),
)
def test_cases_that_nothing_was_fitted_to(machine: TileMachine, case: TileCase) -> None:
    found = point(case, machine)
    assert abs(found.error_pct) <= 0.5  # credits that meet on their way (docs/tiles.md)
    for engine in ("matrix", "vector"):
        if engine in found.busy:
            rtl, at = found.busy[engine]
            assert abs(at - rtl) <= 0.005 * rtl


def test_every_kernel_is_compared_on_a_square_grid() -> None:
    assert {case.kernel for case in cases((4, 4))} == set(KERNELS)
    labels = [(case.kernel, case.variant, case.label) for case in cases((3, 5))]
    assert len(set(labels)) == len(labels)
    assert not {"mesh-gemm", "cannon"} & {case.kernel for case in cases((3, 5))}


def test_the_table_names_the_worst_case() -> None:
    def made(case: str, at: int) -> TilePoint:
        busy = {"matrix": (50, 49)}
        return TilePoint(
            kernel="summa", variant="", case=case, balance=1.0, rtl=100, at=at, alone=90, busy=busy
        )

    lines = tile_table([made("small", 100), made("large", 97)]).splitlines()
    assert lines[2:] == [
        "| summa | 2 | 1.5 %, 3 % | 2 %, - | large: 100 and 97 |",
        "| all | 2 | 1.5 %, 3 % | | |",
    ]
