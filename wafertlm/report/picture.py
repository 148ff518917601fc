"""The README's picture, drawn by ``make picture`` from stored comparisons and runs of its own.

The file holds a digest of the figures that it shows; a test computes them again.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from operator import attrgetter
from os import devnull
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tlm.calibrated import REPOSITORY
from tlm.files import whole_file
from tlm.plotting import STYLE, Curve, direct_labels, look, plain_ticks
from tlm.spread import by_kernel, spread
from wafertlm.cli import run
from wafertlm.report.beside import MAP_ARRAYS, Values
from wafertlm.report.figures import look as marks
from wafertlm.report.page import CALIBRATION_FOLDER
from wafertlm.report.stored import Results, load_results

PICTURE = REPOSITORY / "docs" / "report.png"
#: Name of the digest in the file.
DIGEST = "Figures"
_KERNEL = "kernel cannon --chip wse2 --grid 720x720 --shape 720,720,720 --dtype fp16 --level lt"
_SERVE = (
    "serve --model llama3-8b --chip flat32 --workload sharegpt --rate 4 --requests 300 --scheduler"
)
_SCHEDULERS = ("continuous", "chunked", "layered")
_BELOW: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.14)}


def picture_results() -> Results:
    """The stored calibration and comparisons, and the runs, made now: some seconds."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _run(_KERNEL, folder / "wafer.json", "--map", folder / "wafer.npz")
        for name in _SCHEDULERS:
            csv = folder / f"{name}.csv"
            _run(f"{_SERVE} {name}", folder / f"{name}.json", "--requests-csv", csv)
        return load_results(folder, CALIBRATION_FOLDER)


def digest(results: Results) -> str:
    """Hash of all figures that the picture is drawn from, to six digits."""
    tables: list[Any] = [
        [[one.name, [[p.rtl, p.model] for p in one.check]] for one in results.calibrations],
        [[p.kernel, p.error_pct] for p in results.tiles],
        [[p.kernel, p.lt_error_pct, p.perf_error_pct] for p in results.levels],
        [
            [stem, _plain({name: arrays[name] for name in MAP_ARRAYS})]
            for stem, arrays in results.maps.items()
        ],
        [[stem, _plain(columns)] for stem, columns in results.requests.items()],
        [[stem, run.tbt_ms.p99] for stem, run in results.serves.items()],
    ]
    text = json.dumps(_rounded(tables))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def draw(results: Results, out: Path) -> None:
    """Three panels: errors of the levels, a wafer's waiting, times to the first token."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12.0, 5.0))
        errors, wafer, latency = figure.subplots(1, 3)
        _errors(errors, results)
        _wafer(wafer, results)
        _latency(latency, results)
        with whole_file(out) as scratch:
            figure.savefig(scratch, dpi=140, metadata={DIGEST: digest(results)})


def main() -> int:
    """Draw the picture anew; the exit status is that of a command."""
    draw(picture_results(), PICTURE)
    print(PICTURE)
    return 0


def _run(line: str, out: Path, *options: str | Path) -> None:
    with open(devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        status = run([*line.split(), "--out", str(out), *map(str, options)])
    if status:
        raise RuntimeError(f"wafertlm {line}: exit status {status}")


def _errors(axes: Axes, results: Results) -> None:
    """Worst error of each kernel at each level against the one below it."""
    steps: list[tuple[str, Iterable[Any], str]] = [
        ("at against rtl", results.tiles, "error_pct"),
        ("lt against at", results.levels, "lt_error_pct"),
        ("perf against lt", results.levels, "perf_error_pct"),
    ]
    for index, (label, points, name) in enumerate(steps):
        error: Callable[[Any], float] = attrgetter(name)
        worst = {k: spread(p, error).max_abs_pct for k, p in by_kernel(list(points)).items()}
        axes.plot(list(worst.values()), list(worst), label=label, **marks(index))
    exact = sum(not one.max_abs_error_pct for one in results.calibrations)
    cases = sum(len(one.check) for one in results.calibrations)
    largest = max(one.max_abs_error_pct for one in results.calibrations)
    parts = f"parts: {exact} of {len(results.calibrations)} experiments exact"
    axes.set_title(
        f"How far off is each level?\n{parts},\n{cases} blind cases, worst {largest:.3g} %",
        loc="left",
    )
    axes.set(xlabel="worst error of a whole kernel (%)")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=6.5)
    axes.grid(True)
    axes.legend(**_BELOW, ncols=3, columnspacing=0.8, handletextpad=0.1)


def _wafer(axes: Axes, results: Results) -> None:
    (arrays,), (kernel,) = results.maps.values(), results.kernels.values()
    waiting = 100 * arrays["wait_cycles"] / arrays["finish_cycle"].max()
    options = kernel.options
    asked = f"{options.kernel} on {options.grid} tiles, level {options.level}"
    title = f"Where does a wafer wait?\n{asked}\nmatrix engine waiting (%)"
    _tiles(axes, waiting, title, (0, waiting.max()))


def _latency(axes: Axes, results: Results) -> None:
    curves = []
    for index, name in enumerate(_SCHEDULERS):
        p99 = results.serves[name].tbt_ms.p99
        times = np.sort(results.requests[name]["ttft_s"])
        share = 100 * np.arange(1, len(times) + 1) / max(len(times), 1)
        axes.step(times, share, where="post", **look(index))
        colour = look(index)["color"]
        curves.append(Curve(times, share, f"{name} ({p99:.3g} ms)", colour))
    options = results.serves[_SCHEDULERS[0]].options
    count = results.serves[_SCHEDULERS[0]].requests
    axes.set_title(
        f"Which scheduler serves best?\n{options.model} on {options.chip}, {count} requests;\n"
        "beside it p99 between tokens",
        loc="left",
    )
    axes.set(xlabel="time to first token (s)", ylabel="requests (%)", ylim=(0, 101))
    axes.set_xlim(left=0)
    axes.grid(True)
    plain_ticks(axes.xaxis)
    direct_labels(axes, curves)


def _tiles(axes: Axes, values: Values, title: str, span: tuple[float, float]) -> None:
    """A map of the tiles, with the least and the greatest value in its title."""
    low, high = span
    image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high if high > low else low + 1)
    axes.set_title(f"{title}: {_span(values)}", loc="left")
    axes.set(xlabel="column of tiles", ylabel="row of tiles")
    assert axes.figure is not None
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _span(values: Values) -> str:
    """The least and the greatest value; a map of one colour says no more than this."""
    least, greatest = (f"{value:,.4g}" if value < 1e3 else f"{value:,.0f}" for value in (
        values.min(), values.max()
    ))  # fmt: skip
    return least if least == greatest else f"{least} to {greatest}"


def _plain(columns: Any) -> dict[str, Any]:
    return {name: values.tolist() for name, values in columns.items()}


def _rounded(value: Any) -> Any:
    """The same with numbers as six digits, so that machines agree."""
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return f"{value:.6g}" if isinstance(value, int | float) else value


if __name__ == "__main__":
    sys.exit(main())
