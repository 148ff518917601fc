"""Problems searched together have the plans and cycles of each alone."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from tlm.compute.vector_product import Faster
from tlm.errors import InputError
from workloads.kernels.attention import flash_search
from workloads.kernels.attention.flash_closed_form import candidate_cycles, flash_attention_cycles
from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flash_search import (
    alone_within,
    in_runs,
    plan_alone,
    plan_flash,
)
from workloads.kernels.attention.shape import AttentionShape
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.gemm.stream_closed_form import candidate_cycles as stream_cycles
from workloads.kernels.gemm.stream_plan import GridCut, StreamPlan
from workloads.kernels.gemm.stream_search import plan_streams, whole_weight_cuts
from workloads.kernels.gemm.stream_steps import Candidates, CutFigures, blocks_of, cut_figures
from workloads.kernels.parts.found import Found
from workloads.machine.place import Place, chip_place

_LENGTHS = st.lists(st.integers(1, 700), min_size=2, max_size=5)
_ROWS = {
    "rms-norm": (512,),
    "rotary": (256, 64),
    "residual": (300,),
    "gate": (96,),
    "kv-append": (128,),
    "weighted-sum": (64, 5),
}


def _place(chip: str, rows: int, cols: int) -> Place:
    loaded = load_chip(chip)
    return chip_place(loaded, (rows, cols), noc_timing(loaded), 16, 32, memory=True)


def covers(place: Place, cut: GridCut) -> bool:
    rows, cols = cut.m_rows * cut.n_rows * cut.k_rows, cut.m_cols * cut.n_cols * cut.k_cols
    return (rows, cols) == (place.rows, place.cols)


_PLACES = [_place("flat32", 4, 4), _place("npusim-large", 2, 8), _place("npusim-small", 3, 2)]


@pytest.mark.parametrize("kernel", _ROWS)
@settings(max_examples=15, deadline=None)
@given(st.sampled_from(_PLACES), _LENGTHS)
def test_rows(kernel: str, place: Place, lengths: list[int]) -> None:
    problems = [(length, *_ROWS[kernel]) for length in lengths]
    found = KERNELS[kernel].found(problems, place)
    for problem, one in zip(problems, found, strict=True):
        plan = KERNELS[kernel].planned(problem, place)
        assert one == (plan, KERNELS[kernel].closed_form(plan, place.timing))


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(_PLACES), _LENGTHS, st.integers(1, 6))
def test_streamed_products(place: Place, lengths: list[int], groups: int) -> None:
    problems = [(length, groups + n) for n, length in enumerate(lengths)]
    found = plan_streams(problems, (192, 320), place, place.method(None))
    kernel = KERNELS["stream-gemm"]
    for problem, one in zip(problems, found, strict=True):
        assert [one] == plan_streams([problem], (192, 320), place, place.method(None))
        assert one.cycles == kernel.closed_form(one.plan, place.timing)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(_PLACES), st.integers(1, 300), st.integers(1, 200))
def test_candidates_that_are_not_followed_are_slower(place: Place, rows: int, depth: int) -> None:
    """On lines of tiles, without off-chip memory: the fastest of all that can be is followed."""
    place, whole = replace(place, offchip=None), GridCut(1, 1, 1, 1, 1, 1)
    shape, method = (rows, 96, depth), place.method(None)
    problem = StreamPlan(place, shape, 1, whole, (1, 1, 1), method)
    cuts = [GridCut(*cut) for cut in product((1, 2, 3, 4, 8), repeat=6)]
    cuts = [cut for cut in cuts if 1 in (cut.k_rows, cut.k_cols) and covers(place, cut)]
    blocks = [
        (cut, *blocks_of(problem, cut.parts, (1, 1, parts))) for cut in cuts for parts in (1, 3)
    ]
    figures = [cut_figures(place, cut) for cut, *_ in blocks]
    sides = np.array([sides for _, *sides in blocks]).T
    which = Candidates(CutFigures(*np.array(figures).T), *sides)
    every = stream_cycles(problem, which, place.timing)
    found = stream_cycles(problem, which, place.timing, np.zeros(len(blocks), dtype=int))
    told = np.isfinite(found)
    assert not told.all()
    assert (found[told] == every[told]).all()
    assert every[told].min() == every.min()
    assert (every[~told] > every.min()).all()


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(_PLACES), _LENGTHS)
def test_weights_that_lie_in_the_tiles_stay_where_they_are(
    place: Place, lengths: list[int]
) -> None:
    """Of all numbers of rows: with a cut given no other is taken, and each tile has its own."""
    sizes, method = (192, 320), place.method(None)
    place = replace(place, offchip=None)
    for cut in whole_weight_cuts(place.rows, place.cols):
        rows = [(length, 1) for length in lengths]
        found = plan_streams(rows, sizes, place, method, resident=True, cut=cut)
        assert {each.plan.cut for each in found} == {cut}
        assert cut.parts[1] * cut.parts[2] == place.rows * place.cols
        free = plan_streams(rows, sizes, place, method, resident=True)
        if any(each.plan.cut == cut for each in free):
            assert any(one.cycles == other.cycles for one, other in zip(found, free, strict=True))


@pytest.mark.parametrize("chip", ["npusim-large", "npusim-small"])
def test_a_second_engine_makes_no_product_slower(chip: str) -> None:
    """Cuts and blocks that the array alone is best with are still among those that are tried."""
    both = _place(chip, 8, 8)
    assert isinstance(both.matrix, Faster)
    alone = replace(both, matrix=both.matrix.one)
    rows = [(tokens, 1) for tokens in (1, 16, 64, 128, 512)]
    for sizes in ((2560, 4096), (19456, 2560), (2560, 9728)):
        found = [plan_streams(rows, sizes, each, each.method(None)) for each in (both, alone)]
        assert all(one.cycles <= other.cycles for one, other in zip(*found, strict=True))


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(_PLACES),
    _LENGTHS,
    st.sampled_from([(1, 8, 2, 1), (2, 4, 4, 3), (1, 6, 3, 70)]),
)
def test_attention(place: Place, lengths: list[int], rest: tuple[int, int, int, int]) -> None:
    problems = [(*rest, length, 64, 48) for length in lengths]
    shapes = [AttentionShape(*problem) for problem in problems]
    searches: list[Any] = [
        lambda many: in_runs(many, place, place.method(None)),
        lambda many: in_runs(many, place, place.method(None), whole=True),
    ]
    for search in searches:
        for shape, one in zip(shapes, search(shapes), strict=True):
            assert [one] == search([shape])
            assert one.cycles == KERNELS["decode-attention"].closed_form(one.plan, place.timing)
    flat = KERNELS["flat-attention"]
    for problem, one in zip(problems, flat.found(problems, place), strict=True):
        plan = flat.planned(problem, place)
        assert one == (plan, flat.closed_form(plan, place.timing))


def _alone(shape: AttentionShape, place: Place) -> Found[FlashPlan]:
    plan = plan_alone(shape, place)
    return Found(plan, flash_attention_cycles(plan, place.timing))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(_PLACES),
    _LENGTHS,
    st.sampled_from([(1, 8, 2, 1), (2, 4, 4, 3), (1, 6, 3, 70), (3, 16, 1, 200)]),
    st.booleans(),
    st.sampled_from([0, 1, 200, 10_000]),
)
def test_attention_that_has_to_be_fast_is_found_if_it_is(
    place: Place, lengths: list[int], rest: tuple[int, int, int, int], memory: bool, less: int
) -> None:
    place = place if memory else replace(place, offchip=None)
    shapes = [AttentionShape(*rest, length, 64, 48) for length in lengths]
    found = [_alone(shape, place) for shape in shapes]
    allowed = [one.cycles - less * (number % 2) for number, one in enumerate(found)]
    fast = [
        one if one.cycles <= cycles else None for one, cycles in zip(found, allowed, strict=True)
    ]
    assert alone_within(shapes, place, allowed) == fast


def test_attention_need_not_fit_where_it_would_be_too_slow() -> None:
    shape = AttentionShape(1, 32, 8, 512, 4096, 128, 128)
    place = replace(_PLACES[0], tile_bytes=100_000)
    best = _alone(shape, place)
    assert best.plan.block.rows < 64
    # Only blocks of more rows load so little; they need more than there is.
    assert alone_within([shape], place, [best.cycles // 3]) == [None]
    small = replace(place, tile_bytes=1000)
    with pytest.raises(InputError, match="--shape: a single row takes 1314 bytes of a tile's memo"):
        plan_alone(shape, small)


def test_products_rule_out_that_tiles_alone_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its peak the engine would be fast enough; products of 38 rows leave much of it idle."""
    shape = AttentionShape(1, 32, 8, 152, 152, 128, 128, causal=True)
    place = _place("flat32", 32, 32)
    assert _alone(shape, place).cycles > 2 * 3910
    monkeypatch.setattr(flash_search, "_fastest", None)  # it is not searched for
    assert alone_within([shape], place, [3910]) == [None]


@pytest.mark.parametrize("place", [*_PLACES, replace(_PLACES[0], offchip=None)])
@pytest.mark.parametrize("rows", [1, 70])
def test_cuts_whose_cycles_are_not_told_are_no_faster(
    place: Place, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cut as the only one of its problem has its cycles told; the plans are the same."""
    shapes = [AttentionShape(2, 8, 2, rows, length, 64, 48) for length in (70, 300, 1111)]

    def search() -> list[Found[FlashPlan]]:
        together = in_runs(shapes, place, place.method(None))
        alone = [_alone(replace(shape, causal=True), place) for shape in shapes]
        return [*together, *alone]

    found, told = search(), []

    def all_told(*args: Any) -> Any:
        *problem, fits, _ = args
        cycles = candidate_cycles(*problem, fits, np.arange(fits.size).reshape(fits.shape))
        told.append((np.isfinite(cycles) == fits).all())
        return cycles

    monkeypatch.setattr(flash_search, "candidate_cycles", all_told)
    assert search() == found
    assert all(told)


def test_whole_heads_stay_in_one_run_of_tiles() -> None:
    shape = AttentionShape(1, 8, 2, 1, 500, 64, 64)
    found = in_runs([shape], _PLACES[0], "tree", whole=True)[0].plan
    assert (found.q_blocks, found.block.rows) == (1, 4)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(_PLACES),
    st.sampled_from([(1, 8, 2, 1, 90), (2, 4, 4, 3, 700), (1, 6, 3, 70, 64), (3, 16, 1, 200, 129)]),
)
def test_square_blocks_are_not_faster_than_the_fastest(
    place: Place, sizes: tuple[int, ...]
) -> None:
    shape = AttentionShape(*sizes, 64, 48)
    fastest = _alone(shape, place)
    for turns in (1, 2):
        square = plan_flash(shape, place, turns)
        rows, keys = square.block.rows, square.block.keys
        assert rows == min(keys, shape.rows) or keys == min(rows, shape.kv_length)
        assert fastest.cycles <= flash_attention_cycles(square, place.timing)
