"""Kernels on tiles in Verilog: `at` takes their cycles, and how the comparison counts."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from calibration.levels.cases import Tiles
from calibration.levels.tiles import COMPARED, TileCase, cases, point
from calibration.tables import tile_table
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import tile_model
from tlm.comparisons import TilePoint
from workloads.kernels.catalogue import ATTENTION, KERNELS, LATENT, Choices

NARROW, WIDE, WITH_MEMORY = Tiles((2, 2)), Tiles((2, 2), "int16"), Tiles((2, 2), memory=True)


@pytest.fixture(scope="module")
def machine() -> Iterator[Callable[[Tiles], TileMachine]]:
    """The machine of some tiles, built once it is asked for."""
    with ExitStack() as stack:

        @cache
        def made(tiles: Tiles) -> TileMachine:
            model = tile_model(tiles.chip, tiles.grid, memory=tiles.memory)
            return stack.enter_context(TileMachine(model))

        yield made


@pytest.mark.rtl
@pytest.mark.parametrize(
    "case",
    [
        TileCase("mesh-gemm", NARROW, (40, 24, 72)),
        TileCase("mesh-gemm-t", NARROW, (64, 16, 32)),
        TileCase("allgather-gemm", NARROW, (16, 48, 32)),
        TileCase("mesh-gemv", NARROW, (1, 96, 80)),
        TileCase("softmax", NARROW, (10, 44), Choices("tree")),
        TileCase("flat-attention", NARROW, (1, 3, 3, 16, 16, 16, 8)),
        TileCase("flash-attention-3", NARROW, (1, 3, 3, 16, 16, 8, 4)),
        *(
            pytest.param(case, marks=pytest.mark.slow)  # wide tiles are a build of their own
            for case in (
                TileCase("cannon", WIDE, (20, 12, 36)),
                TileCase("summa", WIDE, (32, 8, 16)),
                TileCase("ring-gemv", WIDE, (1, 48, 40)),
                TileCase("softmax", WIDE, (10, 44), Choices("chain")),
                TileCase("flash-attention-3", WIDE, (1, 3, 3, 16, 16, 8, 4)),
            )
        ),
    ],
    ids=lambda case: f"{case.kernel} {case.tiles.dtype}",
)
def test_cases_that_nothing_was_fitted_to(
    machine: Callable[[Tiles], TileMachine], case: TileCase
) -> None:
    found = point(case, machine(case.tiles))
    assert found.at == found.rtl
    for rtl, at in found.busy.values():
        assert at == rtl


@pytest.mark.rtl
@pytest.mark.slow  # tiles with channels of this size are a build of their own
def test_blocks_from_offchip_memory(machine: Callable[[Tiles], TileMachine]) -> None:
    """One stream of rows: its queries, from memory, are overtaken by keys that its tile sends."""
    case = TileCase("flash-attention-3", WITH_MEMORY, (1, 2, 2, 24, 32, 8, 8))
    found = point(case, machine(WITH_MEMORY))
    assert found.at == found.rtl
    # Jobs share their tile's ports of memory. `alone` lacks that: it finishes 1.2 % early.
    assert 0.98 < found.alone / found.rtl < 1.0


@pytest.mark.rtl
@pytest.mark.slow  # the same build
@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        ("decode-attention", (1, 2, 2, 4, 50, 8, 8)),
        ("rms-norm", (32, 256)),
        ("rotary", (32, 256, 16)),
        ("kv-append", (32, 256)),
        ("residual", (32, 256)),
        ("gate", (12, 96)),
        ("weighted-sum", (12, 96, 4)),
    ],
)
def test_rows_from_offchip_memory(
    machine: Callable[[Tiles], TileMachine], kernel: str, sizes: tuple[int, ...]
) -> None:
    found = point(TileCase(kernel, WITH_MEMORY, sizes), machine(WITH_MEMORY))
    assert found.at == found.rtl


@pytest.mark.rtl
@pytest.mark.slow  # a build of its own for each width
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        ("residual", (16, 256)),
        ("kv-append", (16, 256)),
        ("gate", (12, 96)),
        ("weighted-sum", (16, 96, 4)),
        ("rms-norm", (32, 256)),
        ("rotary", (16, 64, 16)),
        ("flash-attention-3", (1, 8, 8, 64, 64, 16, 16)),
        ("stream-gemm", (32, 64, 32)),
        ("grouped-gemm", (3, 42, 45, 34)),
        ("partitioned-gemm", (32, 64, 32)),
    ],
)
def test_sixteen_tiles_with_offchip_memory(
    machine: Callable[[Tiles], TileMachine], dtype: str, kernel: str, sizes: tuple[int, ...]
) -> None:
    tiles = Tiles((4, 4), dtype, memory=True)
    found = point(TileCase(kernel, tiles, sizes), machine(tiles))
    assert found.at == found.rtl


def test_every_kernel_is_compared_on_a_square_grid() -> None:
    for dtype in ("int8", "int16"):
        assert {case.kernel for case in cases(Tiles((4, 4), dtype))} == set(KERNELS)
    compared = [case for tiles in COMPARED for case in cases(tiles)]
    assert len({(case.kernel, case.variant, case.label) for case in compared}) == len(compared)
    assert not {"mesh-gemm", "cannon"} & {case.kernel for case in cases(Tiles((3, 5)))}
    with_memory = {case.kernel for case in cases(WITH_MEMORY)}
    attention = {name for name, each in KERNELS.items() if each.form in (ATTENTION, LATENT)}
    rows = {"rms-norm", "rotary", "residual", "gate", "kv-append", "weighted-sum", "row-sum"}
    products = {"stream-gemm", "grouped-gemm", "partitioned-gemm"}
    # They have nothing there, and change nothing.
    moved = {"rows-to-blocks", "blocks-to-rows", "exchange", "hand-over"}
    assert with_memory == attention | products | rows | moved


def test_the_table_names_the_worst_case() -> None:
    def made(case: str, at: int, dtype: str = "int8", *, memory: bool = False) -> TilePoint:
        return TilePoint(
            kernel="summa", variant="", case=case, dtype=dtype, memory=memory, balance=1.0,
            rtl=100, at=at, alone=90, busy={"matrix": (50, 49), "transfer": (25, 26)},
        )  # fmt: skip

    points = [made("small", 100), made("large", 97), made("wide", 100, "int16")]
    lines = tile_table([*points, made("far", 98, memory=True)]).splitlines()
    assert lines[2:] == [
        "| summa | 3 | 1 %, 3 % | 2 %, -, 4 % | large: 100 and 97 |",
        "| summa with memory | 1 | 2 %, 2 % | 2 %, -, 4 % | far: 100 and 98 |",
        "| all int8 | 2 | 1.5 %, 3 % | | |",
        "| all int16 | 1 | 0 %, 0 % | | |",
        "| all int8 with memory | 1 | 2 %, 2 % | | |",
    ]
