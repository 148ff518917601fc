"""Programs on tiles that are not alike."""

import numpy as np
import pytest

from tests.tlm.programs import TIMING, Run, program_of, run_mesh
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Program
from tlm.program.operations import Work
from tlm.program.unequal import on_unequal_tiles
from workloads.kernels.gemm.mesh_gemm import mesh_gemm
from workloads.kernels.gemm.plan import GemmPlan

SIDE, PRODUCT = 8, 200


def gemm() -> Program:
    """Products that hide their transfers on every tile."""
    return mesh_gemm(GemmPlan(SIDE, SIDE, (1, 1, 1), PRODUCT, 8, 8), align=False)


@pytest.mark.parametrize("run", [run_lt, run_mesh], ids=["lt", "at"])
def test_one_slow_tile_sets_the_pace_of_all(run: Run) -> None:
    percent = np.full((SIDE, SIDE), 100)
    percent[3, 5] = 150
    program = on_unequal_tiles(gemm(), percent)
    assert run(program, TIMING).cycles == SIDE * (PRODUCT * 3 // 2)
    assert run(gemm(), TIMING).cycles == SIDE * PRODUCT


def test_work_is_scaled_tile_by_tile_and_rounded_up() -> None:
    percent = np.array([[100, 101, 50], [1, 200, 333]])
    tiles = TileSet(range(2), range(1, 3))
    works = [
        Work(Engine.VECTOR, tiles, 10),
        Work(Engine.MATRIX, tiles, np.array([[1, 2], [3, 0]])),
        Work(Engine.VECTOR, tiles, 10),
    ]
    program = on_unequal_tiles(program_of(2, 3, works), percent)
    first, second, third = (op.cycles for op in program.operations() if isinstance(op, Work))
    assert np.asarray(first).tolist() == [[11, 5], [20, 34]]
    assert np.asarray(second).tolist() == [[2, 1], [6, 0]]
    assert third is first
    assert not np.asarray(first).flags.writeable


@pytest.mark.parametrize(
    ("percent", "message"),
    [
        (np.full((2, 2), 100), "percent: found a table of shape (2, 2); the grid is (2, 3)"),
        (
            np.array([[100, 100, 100], [100, 0, 100]]),
            "percent: found 0 at tile (1, 1); allowed: 1 or more",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(percent: np.ndarray, message: str) -> None:
    with pytest.raises(InputError) as caught:
        on_unequal_tiles(program_of(2, 3, []), percent)
    assert str(caught.value) == message
