"""The page in a browser: nothing overflows, nothing overlaps, no script fails, maps can be zoomed.

Chromium is asked for by its usual names; without one these tests say that they were left out.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.wafertlm.report.pages import (
    comparison_run,
    exploration_run,
    iteration_run,
    kernel_run,
    serve_run,
    study_run,
)
from wafertlm.report.page import write_report

pytestmark = pytest.mark.slow

_CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
_NARROW, _WIDE = 390, 1280
#: A busy machine takes its time.
_PATIENCE_MS = 300_000
_LONG = "a_name_without_any_place_to_break_" * 4
#: What lies right of the page or is wider than what it is in, but for what is cut on purpose.
_OVERFLOWS = """
() => [...document.querySelectorAll("body *")].filter((one) => {
  if (one.closest(".view, svg, script, style, details:not([open]) > :not(summary)")) return false;
  const box = one.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5
    || (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0
        && getComputedStyle(one).display !== "inline"));
}).map((one) => `${one.tagName}.${one.className}: ${one.textContent.trim().slice(0, 60)}`)
"""
#: Labels of a figure that lie on each other, and letters too small to read.
_TEXTS = """
() => [...document.querySelectorAll(".panels svg")].flatMap((svg) => {
  const texts = [...svg.querySelectorAll("text")].map((one) => [one, one.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0);
  const faults = texts.filter(([, box]) => Math.max(box.width, box.height) < 8)
    .map(([one]) => `too small: ${one.textContent}`);
  texts.forEach(([one, a], place) => texts.slice(place + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1.5 && high > 2.5) faults.push(`${one.textContent} on ${other.textContent}`);
  }));
  return faults;
})
"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all that there is, long names and a million tiles among it."""
    folder = tmp_path_factory.mktemp("results")
    slos = {"slo_ttft_s": 2.5, "slo_tbt_ms": 1000.0, "rate_rps": 4.0}
    served = serve_run(
        slo_attainment=0.9,
        goodput_rps=3.6,
        timeline={"bin_s": 1.0, "prompt_tok_s": [9.0, 0.0, 5.0], "output_tok_s": [1.0, 2.0, 3.0]},
        capacity={
            "rate_rps": 3.0,
            "trials": [
                {"rate": rate, "attainment": share, "ttft_s": 1.0, "tbt_ms": 9.0}
                for rate, share in ((2.0, 1.0), (3.0, 0.9), (4.0, 0.5))
            ],
        },
    )
    served["options"] = served["options"] | slos
    wafer = kernel_run()
    wafer["options"] = wafer["options"] | {"grid": "1000x1000", "kernel": _LONG}
    runs = {
        "kernel": kernel_run(),
        "wafer": wafer,
        "chat": served,
        f"{_LONG}/chat": served,
        "compared": comparison_run(),
        "explored": exploration_run(),
        "layer": iteration_run(),
        "paper": study_run(),
        "traffic": {**kernel_run(), "command": "noc", _LONG: _LONG},
    }
    for stem, run in runs.items():
        path = folder / f"{stem}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(run))
        if "chat" in stem:
            rows = [f"{1 + n / 30},{2 + n / 20},{900 + n}" for n in range(60)]
            path.with_suffix(".csv").write_text("\n".join(["ttft_s,e2e_s,mean_tbt_ms", *rows]))
    random = np.random.default_rng(1)
    np.savez_compressed(
        folder / "wafer.npz",
        finish_cycle=random.integers(1, 1000, (1000, 1000)),
        matrix_busy_cycles=random.integers(0, 500, (1000, 1000)),
        wait_cycles=np.tile(np.arange(1000), (1000, 1)) // 2,
    )
    out = folder / "page.html"
    write_report(folder, out)
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium that reaches nothing."""
    if _CHROMIUM is None:
        pytest.skip("no Chromium here: install one, such as Debian's package chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Opened:
    """The page in a window, and what went wrong in it."""

    def __init__(self, browser: Any, file: Path, width: int, scheme: str = "light") -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.context.set_default_timeout(_PATIENCE_MS)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on(
            "console",
            lambda told: self.faults.append(told.text) if told.type == "error" else None,
        )
        self.page.on("request", self._asked)
        self.page.goto(file.as_uri())

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.faults.append(f"asked for {request.url}")

    def unfold(self) -> None:
        """Open all details."""
        self.page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [_NARROW, 800, _WIDE])
def test_nothing_overflows_and_no_script_fails(
    browser: Any, page_file: Path, width: int, scheme: str
) -> None:
    opened = Opened(browser, page_file, width, scheme)
    for folded in (True, False):
        if not folded:
            opened.unfold()
        assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert opened.page.evaluate(_OVERFLOWS) == []
        assert opened.page.evaluate(_TEXTS) == []
    assert opened.faults == []
    opened.context.close()


def test_the_users_answer_is_on_the_first_screen(browser: Any, page_file: Path) -> None:
    opened = Opened(browser, page_file, _WIDE)
    box = opened.page.locator("article .found").first.bounding_box()
    assert box["y"] < 900
    opened.context.close()


def test_a_million_tiles_are_zoomed_and_read(browser: Any, page_file: Path) -> None:
    assert page_file.stat().st_size < 5_000_000
    opened = Opened(browser, page_file, _WIDE)
    maps = opened.page.locator(".map")
    assert maps.count() == 3
    waiting = maps.nth(1)
    view = waiting.locator(".view")
    view.scroll_into_view_if_needed()
    box = view.bounding_box()
    at = box["x"] + 0.75 * box["width"], box["y"] + 0.5 * box["height"]
    opened.page.mouse.move(*at)
    read = waiting.locator(".read")
    told = read.inner_text()
    # The wave rises with the column: 750 of 1000 waits 375 of 999 cycles.
    assert "column 74" in told or "column 75" in told
    assert 36.0 <= float(told.split("about ")[1].split(" ")[0]) <= 39.0
    for _ in range(12):
        opened.page.mouse.wheel(0, -100)
    style = view.locator("img").get_attribute("style")
    assert "scale(14." in style
    opened.page.mouse.move(at[0] + 3, at[1])
    assert "column 7" in read.inner_text()
    opened.page.mouse.dblclick(*at)
    assert "scale(1)" in view.locator("img").get_attribute("style")
    view.focus()
    opened.page.keyboard.press("+")
    assert "scale(1.5)" in view.locator("img").get_attribute("style")
    assert opened.faults == []
    opened.context.close()


def test_the_page_prints(browser: Any, page_file: Path) -> None:
    opened = Opened(browser, page_file, _WIDE)
    pdf = opened.page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    # The answers, without what is folded: some pages, not a hundred.
    assert 3 <= pdf.count(b"/Type /Page\n") <= 15
    opened.page.emulate_media(media="print")
    opened.page.set_viewport_size({"width": 700, "height": 900})
    assert opened.page.evaluate(_OVERFLOWS) == []
    shown = "() => getComputedStyle(document.querySelector('article td')).display"
    assert opened.page.evaluate(shown) == "table-cell"
    opened.page.emulate_media(media="screen")
    assert opened.page.evaluate(shown) == "flex"
    opened.context.close()
