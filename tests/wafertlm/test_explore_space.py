"""Points of an exploration, and which trials are better: laws."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.errors import InputError
from wafertlm.explore.file import Bound, ExploreFile, Parameter, Pruning
from wafertlm.explore.pareto import front, is_better, is_feasible, is_pruned
from wafertlm.explore.space import Axis, Space

CHOICES = {"choices": ("a", 2, 2.5, True)}
WHOLE = {"low": 3, "high": 17, "step": 4}
RATIO = {"low": 1, "high": 1000, "log": True}
REAL = {"low": 0.1, "high": 0.75, "step": 0.1}
LOOSE = {"low": -1.5, "high": 2.0}


def space_of(kind: Any, **parameters: dict[str, Any]) -> Space:
    made = {name: Parameter.made(each, name) for name, each in parameters.items()}
    return Space.of(made, kind, 7, "file.toml")


def test_a_grid_has_each_combination_once() -> None:
    space = space_of("grid", a=CHOICES, b=WHOLE, c=REAL)
    assert space.grid_points == 4 * 4 * 7
    points = [tuple(space.point(number).values()) for number in range(4 * 4 * 7)]
    assert len({repr(point) for point in points}) == 4 * 4 * 7
    assert {point[1] for point in points} == {3, 7, 11, 15}
    assert {point[2] for point in points} == {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}


@pytest.mark.parametrize("parameter", [CHOICES, WHOLE, RATIO, REAL, LOOSE], ids=str)
@given(share=st.floats(0, 1, exclude_max=True))
def test_any_share_of_the_way_is_a_value_that_the_sampler_knows(
    parameter: dict[str, Any], share: float
) -> None:
    axis = Axis("x", Parameter.made(parameter, "x"))
    value = axis.at(share)
    assert axis.distribution._contains(axis.distribution.to_internal_repr(value))
    assert axis.size is None or value in [axis.value(number) for number in range(axis.size)]


@pytest.mark.parametrize("kind", ["grid", "random", "qmc"])
def test_a_point_is_told_by_its_number(kind: str) -> None:
    first, second = (space_of(kind, a=CHOICES, b=WHOLE) for _ in range(2))
    numbers = range(16)
    there = [first.point(number) for number in numbers]
    assert there == [second.point(number) for number in reversed(numbers)][::-1]


def test_a_sobol_sequence_is_spread_evenly() -> None:
    space = space_of("qmc", a={"low": 0, "high": 7}, b={"low": 0, "high": 7})
    points = [space.point(number) for number in range(64)]
    for name in "ab":
        counts = [sum(point[name] == value for point in points) for value in range(8)]
        assert counts == [8] * 8


def test_a_grid_needs_steps() -> None:
    with pytest.raises(InputError, match=r"file.toml: parameters.a: .*allowed .*step"):
        space_of("grid", a=LOOSE)


ASKED = ExploreFile(
    command="kernel",
    parameters={"x": Parameter(choices=(1, 2))},
    objectives={"slow": "minimize", "good": "maximize", "gates.cells": "minimize"},
    constraints={"slow": Bound(at_most=8)},
    pruning=Pruning(levels=("perf",), margin_pct=10.0),
)
FIGURES = st.fixed_dictionaries(
    {name: st.integers(1, 10) for name in ("slow", "good", "gates.cells")}
)


@given(st.lists(FIGURES, max_size=20))
def test_a_front_is_what_none_is_better_than(figures: list[dict[str, int]]) -> None:
    found = dict(enumerate(figures))
    best = front(ASKED, found)
    equal = {number for others in best.values() for number in others}
    for number, mine in found.items():
        beaten = [
            n for n in found if is_feasible(ASKED, found[n]) and is_better(ASKED, found[n], mine)
        ]
        is_best = is_feasible(ASKED, mine) and not beaten
        assert (number in best or number in equal) == is_best
        if beaten:
            assert any(is_better(ASKED, found[n], mine) for n in best)


@given(FIGURES, FIGURES)
def test_what_is_pruned_is_worse_by_more_than_the_margin(
    mine: dict[str, int], other: dict[str, int]
) -> None:
    pruned = is_pruned(ASKED, mine, [mine, other])
    hopeless = 0.9 * mine["slow"] > 8
    beaten = (
        other["slow"] <= 8
        and other["slow"] < 0.9 * mine["slow"]
        and other["good"] > 1.1 * mine["good"]
        and other["gates.cells"] <= mine["gates.cells"]
    )
    assert pruned == (hopeless or beaten)
