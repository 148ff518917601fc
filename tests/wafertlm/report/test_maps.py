"""Maps of tiles in a page: pixels that can be read back, a size that holds, and timelines."""

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from tests.conftest import Wafertlm
from tests.wafertlm.report.pages import kernel_run, page_of
from wafertlm.report.beside import Span, Values
from wafertlm.report.maps import ALL_BYTES, MOST_RUNS, map_parts, palette, picture
from wafertlm.report.timeline import timeline_part


def read_back(png: bytes, ends: tuple[float, float]) -> Values:
    """Values as the page's script reads them: by the place of a colour in the palette."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=int)
    places = {colour: place for place, colour in enumerate(palette())}
    low, high = ends
    found = [[places[tuple(pixel)] for pixel in row] for row in pixels.tolist()]
    return low + (high - low) * np.array(found) / (len(places) - 1)


def test_each_colour_stands_for_one_value() -> None:
    assert len(set(palette())) == 256


@settings(max_examples=20, deadline=None)
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 12)),
        elements=st.floats(-1e6, 1e6, allow_nan=False),
    )
)
def test_a_pixel_is_a_tile_and_says_its_value(values: Values) -> None:
    ends = float(values.min()), float(values.max())
    png, step, colours = picture(values, ends, 1 << 20)
    assert (step, colours) == (1, 256)
    off = np.abs(read_back(png, ends) - values).max()
    assert off <= (ends[1] - ends[0]) / 255 * 0.51 + 1e-6


def test_what_is_too_large_has_fewer_pixels_of_means() -> None:
    values = np.random.default_rng(1).random((600, 700))
    png, step, colours = picture(values, (0.0, 1.0), 20_000)
    assert len(png) <= 20_000
    assert step > 1
    found = read_back(png, (0.0, 1.0))
    assert found.shape == (-(-600 // step), -(-700 // step))
    corner = values[:step, :step].mean()
    assert found[0, 0] == pytest.approx(corner, abs=0.51 / (colours - 1))


def test_wafers_of_a_million_tiles_stay_within_their_room() -> None:
    random = np.random.default_rng(1)
    wafers = {
        f"run{number}": {
            name: random.integers(0, 1000, (1000, 1000)).astype(np.float64)
            for name in ("finish_cycle", "matrix_busy_cycles", "wait_cycles", "link_flits_east")
        }
        for number in range(MOST_RUNS + 1)
    }
    drawn = dict(map_parts(wafers))
    assert list(drawn) == [f"run{number}" for number in range(MOST_RUNS)]
    assert all(len(maps) == 4 for maps in drawn.values())
    assert sum(len(each) for maps in drawn.values() for each in maps) < ALL_BYTES * 1.1
    assert "A pixel is the mean of" in drawn["run0"][0]


def test_a_map_says_its_least_and_greatest(results: Path) -> None:
    page = page_of(results)
    assert page.count('class="map"') == 3
    assert "End of work</b>, wafer/summa: 1000 to 1023 cycle" in page
    png = re.findall(r"data:image/png;base64,([^\"]+)", page)[2]
    values = read_back(base64.b64decode(png), (1000.0, 1023.0))
    assert np.abs(values - 1000 - np.arange(24).reshape(4, 6)).max() < 0.06


def test_a_map_of_another_name_is_that_of_the_one_kernel_it_fits(results: Path) -> None:
    folder = results / "wafer"
    (folder / "summa.npz").rename(folder / "maps.npz")
    page = page_of(results)
    assert "End of work</b>, wafer/summa: " in page
    # With two that it fits it is shown by itself, and nobody is told that there is no map.
    (folder / "again.json").write_text(json.dumps(kernel_run()))
    page = page_of(results)
    assert "What does the map wafer/maps.npz show?" in page
    assert "End of work</b>, wafer/maps.npz: " in page


def spans(tiles: int) -> list[Span]:
    return [
        Span(f"tile {number},0", engine, "A<b>", 10.0 * number, 5.0)
        for number in reversed(range(tiles))
        for engine in ("transfer", "matrix")
    ]


def test_a_timeline_has_a_lane_for_each_engine_of_the_first_tiles() -> None:
    drawn = timeline_part("run", spans(12))
    lanes = re.findall(r'<div class="lane"><span>(.*?)</span>', drawn)
    assert lanes[:4] == [
        "tile 0,0 matrix",
        "tile 0,0 transfer",
        "tile 1,0 matrix",
        "tile 1,0 transfer",
    ]
    assert len(lanes) == 16
    assert "8 spans are left out." in drawn
    assert "115 cycles" in drawn
    assert "A&lt;b&gt;: cycles 70 to 75" in drawn
    assert timeline_part("run", []) == ""


def test_a_timeline_beside_a_result_is_drawn(results: Path, wafertlm: Wafertlm) -> None:
    line = "kernel summa --chip rtl-2x2 --grid 2x2 --shape 32,32,32 --dtype int8 --level lt"
    beside = ("--out", results / "k.json", "--timeline", results / "k.json.gz")
    assert wafertlm(*line.split(), *beside).status == 0
    page = page_of(results)
    assert "<b>Timeline</b>, k: the first 4 tiles." in page
    assert '<svg class="matrix"' in page
