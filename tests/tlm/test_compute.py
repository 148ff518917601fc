"""Compute models: known cycles, laws, and the comparison that the array's README prints."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.compute.base import Compute
from tlm.compute.redmule import RedMule
from tlm.compute.roofline import Roofline
from tlm.compute.systolic import Dataflow, FoldTiming, Systolic
from tlm.compute.tiled_systolic import TiledSystolic, TileTurn
from tlm.compute.vector_mac import VectorMac
from tlm.compute.vector_product import Faster, VectorProduct
from tlm.errors import InputError

# As measured on the array in Verilog (tests/rtl/test_systolic.py).
TIMINGS: dict[Dataflow, FoldTiming] = {
    "weight-stationary": FoldTiming(0, 0, 1),
    "output-stationary": FoldTiming(0, 0, 0),
}
REDMULE = RedMule(16, 32, 3, setup_cycles=39, preload_cycles=86)
README = Path(__file__).parents[2] / "rtl" / "tile" / "README.md"

sizes = st.integers(1, 300)
arrays = st.builds(
    lambda rows, cols, dataflow: Systolic(rows, cols, dataflow, TIMINGS[dataflow]),
    st.integers(2, 16),
    st.integers(2, 16),
    st.sampled_from(["weight-stationary", "output-stationary"]),
)
TURNS: tuple[TileTurn, ...] = ("overlapped", "stream-drain", "load-stream-drain")
tiled = st.builds(TiledSystolic, st.integers(2, 16), st.integers(2, 16), st.sampled_from(TURNS))
lanes = st.builds(VectorProduct, st.integers(1, 8), st.integers(1, 8), st.sampled_from([None, 5.5]))
engines = st.one_of(
    arrays,
    tiled,
    lanes,
    st.builds(Faster, tiled, lanes),
    st.just(REDMULE),
    st.just(Roofline(64.0, 32.0)),
)


def scale_sim_cycles(array: Systolic, m: int, k: int, n: int) -> int:
    """Total cycles of SCALE-Sim v2, whose folds do not overlap."""
    rows, cols = array.rows, array.cols
    if array.dataflow == "weight-stationary":
        return array.folds(m, k, n) * (2 * rows + cols + m - 2) - 1
    return array.folds(m, k, n) * (rows + cols + k - 2) - 1


def test_redmule_matches_its_published_run() -> None:
    assert REDMULE.gemm_cycles(128, 128, 128) == 4317
    assert 128**3 / REDMULE.macs_per_cycle / 4317 == pytest.approx(0.949, abs=5e-4)


def test_redmule_pads_k_to_its_height_and_counts_the_last_column_tile() -> None:
    # 39 + 86 fixed; 1 row tile; 2 column tiles (65 over 64); K 17 to 32; 4 passes; 1 + 32 drain.
    assert REDMULE.gemm_cycles(32, 17, 65) == 39 + 86 + 2 * 32 * 4 + 1 + 32


def test_vectors_of_a_column_each_in_every_iteration_over_k() -> None:
    core = VectorMac(1.0, 1.5, vector_cycles=40.0, inner_cycles=7.0)
    assert core.gemm_cycles(2, 3, 4) == 24 * 1.5 + 12 * 40 + 3 * 7
    # A row takes one vector an iteration, along its columns.
    assert core.gemm_cycles(1, 3, 4) == 12 * 1.5 + 3 * 40 + 3 * 7
    m = np.array([1, 2])
    assert core.gemm_cycles_over(m, np.array([3]), np.array([4])).tolist() == [159, 537]


@pytest.mark.parametrize(
    ("turn", "a_tile"),
    [("overlapped", 128), ("stream-drain", 255), ("load-stream-drain", 383)],
)
def test_tiles_of_weights_by_what_they_share(turn: TileTurn, a_tile: int) -> None:
    """Of one row a tile of 128 x 128 loads 128 cycles, streams 1 and drains 254."""
    array = TiledSystolic(128, 128, turn)
    assert array.gemm_cycles(1, 128, 128) == 128 + 1 + 254
    assert array.gemm_cycles(1, 129, 1000) == 15 * a_tile + 383


def test_the_formula_of_npusim_is_tiles_times_cycles_and_an_injection() -> None:
    assert TiledSystolic(64, 32, "stream-drain").gemm_cycles(100, 128, 64) == 4 * (100 + 94) + 64


@given(array=tiled, m=sizes, k=sizes, n=sizes)
def test_what_overlaps_more_is_no_slower(array: TiledSystolic, m: int, k: int, n: int) -> None:
    cycles = [TiledSystolic(array.rows, array.cols, t).gemm_cycles(m, k, n) for t in TURNS]
    assert cycles == sorted(cycles)
    same = Systolic(array.rows, array.cols, "weight-stationary", FoldTiming(0, 0, 0))
    assert cycles[0] == same.gemm_cycles(m, k, n)


def test_lanes_read_their_weights_once() -> None:
    vector = VectorProduct(64, 64, 512.0)
    assert vector.gemm_cycles(1, 1024, 1024) == 1024 * 1024 // 512
    assert vector.gemm_cycles(64, 1024, 1024) == 64 * 16 * 16
    assert VectorProduct(64, 64).gemm_cycles(2, 65, 1) == 2 * 2


@given(one=tiled, other=lanes, m=sizes, k=sizes, n=sizes)
def test_the_faster_engine_has_a_product(
    one: TiledSystolic, other: VectorProduct, m: int, k: int, n: int
) -> None:
    both = Faster(one, other)
    fewest = min(one.gemm_cycles(m, k, n), other.gemm_cycles(m, k, n))
    assert both.gemm_cycles(m, k, n) == fewest
    over = both.gemm_cycles_over(*(np.array([size]) for size in (m, k, n)))
    assert over.tolist() == [fewest]


def test_roofline_takes_the_lower_roof() -> None:
    assert Roofline(64.0).gemm_cycles(10, 10, 10) == 16
    assert Roofline(64.0, bytes_per_cycle=3.0, element_bytes=2).gemm_cycles(10, 10, 10) == 200


@given(engine=engines, m=sizes, k=sizes, n=sizes)
def test_no_engine_beats_its_peak(engine: Compute, m: int, k: int, n: int) -> None:
    assert engine.gemm_cycles(m, k, n) * engine.macs_per_cycle >= m * k * n


@given(engine=engines, m=sizes, k=sizes, n=sizes)
def test_more_work_never_takes_less_time(engine: Compute, m: int, k: int, n: int) -> None:
    cycles = engine.gemm_cycles(m, k, n)
    assert engine.gemm_cycles(m + 1, k, n) >= cycles
    assert engine.gemm_cycles(m, k + 1, n) >= cycles


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1), (1, 1, -3)])
@pytest.mark.parametrize(
    "engine",
    [
        REDMULE,
        Roofline(1.0),
        VectorMac(1, 1, 0),
        Systolic(8, 8, "weight-stationary", TIMINGS["weight-stationary"]),
    ],
)
def test_empty_products_are_refused(engine: Compute, shape: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="sizes are at least 1"):
        engine.gemm_cycles(*shape)


def readme_rows() -> list[tuple[Dataflow, int, int, int, int, int, int, int]]:
    """Rows `| 8 x 8 | 64 x 64 x 64 | weight-stationary | ours | SCALE-Sim |` of the README."""
    pattern = re.compile(
        r"\| (\d+) x (\d+) \| (\d+) x (\d+) x (\d+) \| ([a-z-]+) \| (\d+) \| (\d+) \|"
    )
    found = []
    for row in pattern.findall(README.read_text()):
        rows, cols, m, k, n, dataflow, ours, theirs = row
        found.append((dataflow, *map(int, (rows, cols, m, k, n, ours, theirs))))
    return found


def test_readme_prints_the_cycles_of_ours_and_of_scale_sim() -> None:
    rows = readme_rows()
    assert len(rows) >= 8
    for dataflow, height, width, m, k, n, ours, theirs in rows:
        array = Systolic(height, width, dataflow, TIMINGS[dataflow])
        assert (array.gemm_cycles(m, k, n), scale_sim_cycles(array, m, k, n)) == (ours, theirs)
