"""Plots of the study: collectives, run times, and use by groups, slices and kernels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tlm.files import whole_file
from workloads.studies.flatattention.facts import DEPTHS, LENGTHS, VARIANTS

_PARTS = {
    "compute": "#2b6a99",
    "overhead": "#9ec3dd",
    "communication": "#b5483a",
    "memory": "#d9b44a",
}


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``collectives.png``, ``variants.png``, ``groups.png``, ``slices.png``, ``shapes.png``.

    Raises:
        InputError: if a file cannot be written.
    """
    found = {row["id"]: row for row in result["rows"]}
    figures = {
        "collectives": _collectives(found),
        "variants": _variants(found),
        "groups": _groups(found),
        "slices": _slices(found),
        "shapes": _shapes(found),
    }
    return [_save(figure, folder / f"{name}.png") for name, figure in figures.items()]


def _figure(rows: int, cols: int, width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, cols, squeeze=False)


def _collectives(found: Mapping[str, Any]) -> Any:
    """Figure 7: speed-ups of the network's collectives by the block's length."""
    figure, axes = _figure(1, 2, 9, 3.5)
    for axis, kind in zip(axes.flat, ("multicast", "sum"), strict=True):
        for method in ("tree", "sequential"):
            rows = [
                row
                for name, row in found.items()
                if _is(name, f"F7/{kind}/", f"/{method}_over_network")
            ]
            kib = [int(row["id"].split("/")[2].removesuffix("KiB")) for row in rows]
            axis.plot(kib, [row["model"] for row in rows], "o-", label=f"over {method}")
            said = [
                (size, row["paper"]) for size, row in zip(kib, rows, strict=True) if row["paper"]
            ]
            axis.plot(*zip(*said, strict=True), "k*", label="paper" if method == "tree" else None)
        axis.set(title=f"row {kind}", xlabel="KiB", ylabel="speed-up of the network", xscale="log")
        axis.legend()
    return figure


def _variants(found: Mapping[str, Any]) -> Any:
    """Figure 8: run time by what it is spent on."""
    figure, axes = _figure(len(DEPTHS), len(LENGTHS), 12, 6)
    for row, depth in zip(axes, DEPTHS, strict=True):
        for axis, length in zip(row, LENGTHS, strict=True):
            at = f"F8/D{depth}-S{length}"
            times = [found[f"{at}/{name}/runtime"]["model"] for name in VARIANTS]
            bottom = [0.0] * len(times)
            for part, colour in _PARTS.items():
                shares = [found[f"{at}/{name}/{part}"]["model"] for name in VARIANTS]
                heights = [time * share / 100 for time, share in zip(times, shares, strict=True)]
                axis.bar(list(VARIANTS), heights, bottom=bottom, color=colour, label=part)
                bottom = [low + high for low, high in zip(bottom, heights, strict=True)]
            for place, name in enumerate(VARIANTS):
                use = found[f"{at}/{name}/hbm_use"]["model"]
                axis.annotate(f"{use:.0f} %", (place, times[place]), ha="center", va="bottom")
            axis.set(title=f"D {depth}, S {length}; HBM use above the bars", ylabel="ms")
            axis.tick_params(axis="x", labelrotation=30)
    axes[0][0].legend()
    return figure


def _groups(found: Mapping[str, Any]) -> Any:
    """Figure 9: use of the engines by the side of a group."""
    figure, axes = _figure(1, 1, 6, 4)
    for length in (512, *LENGTHS):
        rows = [row for name, row in found.items() if _is(name, f"F9/S{length}/", "/utilization")]
        sides = [row["id"].split("/")[2] for row in rows]
        axes[0][0].plot(sides, [row["model"] for row in rows], "o-", label=f"S {length}")
        for side, row in zip(sides, rows, strict=True):
            if row["paper"]:
                axes[0][0].plot([side], [row["paper"]], "k*")
    axes[0][0].set(title="stars: the paper", xlabel="group", ylabel="utilization, %", ylim=(0, 100))
    axes[0][0].legend()
    return figure


def _slices(found: Mapping[str, Any]) -> Any:
    """Figure 11: use of a busy engine, and memory of a tile, by the slice."""
    figure, axes = _figure(1, 2, 9, 3.5)
    for axis, end, label in zip(
        axes.flat, ("/engine/utilization", "/L1/occupancy"), ("engine, %", "L1, KiB"), strict=True
    ):
        rows = [row for name, row in found.items() if _is(name, "F11/", end)]
        sides = [row["id"].split("/")[1].removeprefix("slice") for row in rows]
        axis.plot(sides, [row["model"] for row in rows], "o-")
        axis.set(xlabel="side of a slice", ylabel=label)
    return figure


def _shapes(found: Mapping[str, Any]) -> Any:
    """Figure 12: use of the engines and of HBM, by kernel."""
    figure, axes = _figure(1, 1, 9, 9)
    uses = {name: row for name, row in found.items() if _is(name, "F12/", "/Flat/utilization")}
    names = [name.split("/")[1] for name in uses]
    hbm = [found[name.replace("utilization", "hbm_use")]["model"] for name in uses]
    places = range(len(names))
    for shift, values, label in (
        (-0.2, [row["model"] for row in uses.values()], "engines"),
        (0.2, hbm, "HBM"),
    ):
        axes[0][0].barh([place + shift for place in places], values, height=0.4, label=label)
    axes[0][0].set_yticks(places, names)
    axes[0][0].invert_yaxis()
    axes[0][0].set(xlabel="use, %", xlim=(0, 100))
    axes[0][0].legend()
    return figure


def _is(name: str, start: str, end: str) -> bool:
    return name.startswith(start) and name.endswith(end)


def _save(figure: Any, path: Path) -> Path:
    with whole_file(path) as scratch:
        figure.savefig(scratch, dpi=110, metadata={"Software": None})
    return path
