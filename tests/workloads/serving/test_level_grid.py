"""The grid on which the ratio of levels is measured."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.serving.price.level_grid import around, checks, kind
from workloads.serving.price.parts import Decode, Head, Kept, Layer, Part, Prompt, StageHandOver

_SIZES = st.integers(1, 20_000)
_PARTS = st.one_of(
    st.builds(Layer, _SIZES, st.booleans()),
    st.builds(Head, _SIZES),
    st.builds(Prompt, _SIZES, st.integers(0, 128), st.just(128)),
    st.builds(Prompt, _SIZES, st.integers(0, 30_000), st.none()),
    st.builds(Decode, _SIZES, st.integers(1, 4), st.integers(1, 100), st.just(100), st.booleans()),
    st.builds(Decode, _SIZES, st.integers(1, 4), _SIZES, st.none(), st.booleans()),
)


@given(_PARTS)
def test_a_part_lies_between_a_few_points_of_its_kind(part: Part) -> None:
    points = around(part)
    assert sum(weight for _, weight in points) == pytest.approx(1.0)
    assert all(0 < weight <= 1 for _, weight in points)
    assert {kind(point) for point, _ in points} == {kind(part)}
    for size, sizes in zip(part, zip(*(point for point, _ in points), strict=True), strict=True):
        if size is not None:
            assert min(sizes) <= size <= max(sizes) or sizes[0] == max(sizes) >= 256


@given(_PARTS)
def test_points_of_the_grid_are_their_own(part: Part) -> None:
    for point, _ in around(part):
        assert around(point) == [(point, 1.0)]


@given(_SIZES)
def test_what_is_kept_or_handed_on_lies_between_points_of_its_kind(tokens: int) -> None:
    only = ("qkv", "down")
    for part in (StageHandOver(tokens), Kept(Layer(tokens, False), only=only)):
        points = around(part)
        assert sum(weight for _, weight in points) == pytest.approx(1.0)
        assert {kind(point) for point, _ in points} == {kind(part)}
        assert {kind(each) for each in checks(part)} == {kind(part)}
    assert kind(Kept(Layer(tokens, False), only=only)) == Kept(Layer(1, False), only=only)


@pytest.mark.parametrize(
    ("part", "points"),
    [
        (Layer(12, False), [(Layer(8, False), 2 - log2(3)), (Layer(16, False), log2(3) - 1)]),
        (Layer(20_000, False), [(Layer(4096, False), 1)]),
        (Prompt(20_000, 9000, None), [(Prompt(2048, 8192, None), 1)]),
        (Layer(7, False), [(Layer(7, False), 1)]),
        (Prompt(64, 0, None), [(Prompt(64, 0, None), 1)]),
        (Prompt(64, 64, None), [(Prompt(64, 0, None), 0.569), (Prompt(64, 256, None), 0.431)]),
        (Prompt(64, 100, 128), [(Prompt(64, 0, 128), 0.143), (Prompt(64, 128, 128), 0.857)]),
        (
            Decode(12, 1, 90, 100),
            [
                (Decode(8, 1, 64, 100), 0.0981),
                (Decode(8, 1, 100, 100), 0.3169),
                (Decode(16, 1, 64, 100), 0.1383),
                (Decode(16, 1, 100, 100), 0.4467),
            ],
        ),
    ],
)
def test_weights_go_by_the_logarithm_of_the_size(
    part: Part, points: list[tuple[Part, float]]
) -> None:
    assert [point for point, _ in around(part)] == [point for point, _ in points]
    weights = [weight for _, weight in points]
    assert [weight for _, weight in around(part)] == pytest.approx(weights, abs=1e-3)


@given(_PARTS)
def test_checks_are_the_same_for_all_of_a_kind_and_most_lie_off_the_grid(part: Part) -> None:
    drawn = checks(part)
    assert drawn == checks(kind(part))
    assert {kind(check) for check in drawn} == {kind(part)}
    assert sum(around(check) != [(check, 1.0)] for check in drawn) >= 8
