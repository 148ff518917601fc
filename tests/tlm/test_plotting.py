"""Pictures: labels beside lines that do not overlap, numbers as one writes them, equal bytes."""

import re
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from tlm.plotting import (
    COLOURS,
    STYLE,
    Curve,
    direct_labels,
    label_panels,
    places_ticks,
    plain_number,
    plain_ticks,
    save,
    series,
    short_label,
    write_pictures,
)


def labelled(curves: list[Curve]) -> tuple[Figure, list[matplotlib.transforms.Bbox]]:
    """A picture of curves, and the boxes of their labels."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4, 3))
        axes = figure.subplots()
        for curve in curves:
            axes.plot(curve.x, curve.y, color=curve.colour)
        direct_labels(axes, curves)
        figure.draw_without_rendering()
        return figure, [text.get_window_extent() for text in axes.texts]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.lists(st.floats(0, 100), min_size=3, max_size=9),
        min_size=1,
        max_size=5,
    )
)
def test_labels_of_any_curves_neither_overlap_nor_leave_the_picture(
    values: list[list[float]],
) -> None:
    curves = [
        Curve(np.arange(len(each)), each, f"series {number}", COLOURS[number])
        for number, each in enumerate(values)
    ]
    figure, boxes = labelled(curves)
    assert len(boxes) == len(values)
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:number])
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1


def test_a_label_leaves_lines_free_where_there_is_room() -> None:
    curves = [
        Curve([0, 1], [0, 10], "up", COLOURS[0]),
        Curve([0, 1], [10, 0], "down", COLOURS[1]),
    ]
    figure, boxes = labelled(curves)
    axes = figure.axes[0]
    places = np.linspace(0, 1, 300)
    for values in (10 * places, 10 - 10 * places):
        points = axes.transData.transform(np.c_[places, values])
        assert not any(box.contains(*point) for box in boxes for point in points)


def test_panels_have_the_labels_that_each_has_in_the_finished_picture() -> None:
    at: list[list[tuple[float, float]]] = []
    for at_once in (True, False):
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(7, 3))
            panels = []
            for axes, most in zip(figure.subplots(1, 2), (1, 1e8), strict=True):
                axes.plot([0, 1], [0, most])
                axes.set_ylabel("its numbers are long")
                panels.append((axes, [Curve([0, 1], [0, most], f"to {most:g}", COLOURS[0])]))
            if at_once:
                label_panels(panels)
            else:
                for axes, curves in panels:
                    direct_labels(axes, curves)
        at.append([text.get_position() for axes in figure.axes for text in axes.texts])
    assert len(at[0]) == 2
    assert at[0] == at[1]
    label_panels([])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.6, "0.6"), (60000, "60\u202f000"), (-2.5, "\u22122.5"), (1e12, "1e+12"), (0, "0")],
)
def test_numbers_have_no_exponent_where_digits_will_do(value: float, text: str) -> None:
    assert plain_number(value) == text


@pytest.mark.parametrize("ends", [(0.45, 0.8), (0.06, 700.0), (1.0, 30.0)])
def test_logarithmic_axes_have_plain_ticks(ends: tuple[float, float]) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set(xscale="log", xlim=ends)
    plain_ticks(axes.xaxis)
    figure.draw_without_rendering()
    texts = [tick.get_text() for tick in axes.get_xticklabels(which="both") if tick.get_text()]
    assert texts
    assert all(re.fullmatch(r"[\d.\u202f]+", text) for text in texts)


def test_numbers_of_many_decades_do_not_lie_on_each_other() -> None:
    figure = Figure(figsize=(3.6, 3.3))
    axes = figure.subplots()
    axes.set(xscale="log", xlim=(16, 7e7))
    plain_ticks(axes.xaxis)
    figure.draw_without_rendering()
    labels = [tick for tick in axes.get_xticklabels() if 16 <= tick.get_position()[0] <= 7e7]
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) >= 3
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_logarithmic_axes_of_the_style_have_no_powers_of_ten() -> None:
    with matplotlib.rc_context(STYLE):
        figure = Figure()
        axes = figure.subplots()
        axes.set(xscale="log", xlim=(0.45, 90.0))
        figure.draw_without_rendering()
        texts = [tick.get_text() for tick in axes.get_xticklabels(which="both")]
    assert any(texts)
    assert not any("^" in text for text in texts)


def test_equal_pictures_are_equal_files_and_their_text_is_text(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg", "a.pdf", "b.pdf", "a.png", "b.png"):
        figure, _ = labelled([Curve([0, 1], [0, 1], "rising", COLOURS[0])])
        save(figure, tmp_path / name)
    for ending in ("svg", "pdf", "png"):
        first, second = (tmp_path / f"{name}.{ending}" for name in "ab")
        assert first.read_bytes() == second.read_bytes()
    assert ">rising</text>" in (tmp_path / "a.svg").read_text()


def test_points_that_lie_too_close_are_not_all_labelled() -> None:
    curves = [Curve([1.0], [1.0], f"point {number}", COLOURS[0]) for number in range(20)]
    _, boxes = labelled(curves)
    assert 1 <= len(boxes) < 20
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:number])


def test_long_labels_are_shortened_in_their_middle() -> None:
    assert short_label("short") == "short"
    long = short_label("the beginning of a name and its end")
    assert len(long) <= 28
    assert long.startswith("the beginning") and long.endswith("and its end")


@pytest.mark.parametrize("count", [0, 1, 6, 7, 29])
def test_ticks_at_places_are_some_of_them(count: int) -> None:
    axes = Figure().subplots()
    places = [30 * (number + 1) for number in range(count)]
    axes.set_xscale("log")
    places_ticks(axes.xaxis, places)
    ticks = axes.get_xticks()
    assert {*ticks} <= {*places}
    assert len({*np.diff(ticks)}) <= 1 and len(ticks) <= 6
    assert len(ticks) == count or len(ticks) > 3
    assert len(axes.get_xticks(minor=True)) == 0


def test_a_series_has_no_label_where_it_has_no_figure() -> None:
    axes = Figure().subplots()
    curve = series(axes, [1, 2, 3], [None, 5.0, None], "one", 1)
    assert (curve.x.tolist(), curve.y.tolist(), curve.colour) == ([2], [5.0], COLOURS[1])
    nothing = series(axes, [1, 2], [None, None], "none", 2)
    direct_labels(axes, [curve, nothing])
    assert [text.get_text() for text in axes.texts] == ["one"]


def test_pictures_are_drawn_in_the_style_and_stored_as_vectors(tmp_path: Path) -> None:
    def draw() -> Figure:
        assert matplotlib.rcParams["axes.titlelocation"] == "left"
        return labelled([Curve([0, 1], [0, 1], "rising", COLOURS[0])])[0]

    paths = write_pictures(tmp_path / "new", {"a": draw, "b": draw})
    assert [path.name for path in paths] == ["a.svg", "a.pdf", "b.svg", "b.pdf"]
    assert all(path.stat().st_size > 1000 for path in paths)
