"""Plots of the study: prompts by partition, and by placement."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tlm.files import whole_file
from workloads.studies.npusim.facts import LENGTHS, MODELS, PARTITIONS, PLACEMENTS


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``partitions.png`` and ``placements.png``.

    Raises:
        InputError: if a file cannot be written.
    """
    found = {row["id"]: row for row in result["rows"]}
    figures = {"partitions": _partitions(found), "placements": _placements(found)}
    return [_save(figure, folder / f"{name}.png") for name, figure in figures.items()]


def _partitions(found: Mapping[str, Any]) -> Any:
    """Figure 9: as plotted, and under each reading."""
    readings = sorted({name.split("/")[2] for name in found if name.startswith("F9/")})
    figure, axes = _figure(len(MODELS), len(readings) + 1, 3.5 * (len(readings) + 1), 6)
    for line, model in zip(axes, MODELS, strict=True):
        for axis, reading in zip(line, ("paper", *readings), strict=True):
            source = readings[0] if reading == "paper" else reading
            value = "paper" if reading == "paper" else "model"
            rows = {
                partition: [found[f"F9/{model}/{source}/{partition}-T{t}"][value] for t in LENGTHS]
                for partition in PARTITIONS
            }
            for partition, seconds in rows.items():
                axis.plot(LENGTHS, seconds, "o-", label=partition)
            axis.set(title=f"{model}\n{reading}", xlabel="tokens", ylabel="s", xticks=LENGTHS)
    axes[0][0].legend()
    return figure


def _placements(found: Mapping[str, Any]) -> Any:
    """Figure 10: how much faster than interleaved, locked."""
    groups = sorted({name.split("/")[1] for name in found if name.startswith("F10/")})
    figure, axes = _figure(1, 1, 9, 0.5 * len(groups) + 2)
    others = [placement for placement in PLACEMENTS if placement != "interleave"]
    for number, placement in enumerate(others):
        values = [found[f"F10/{group}/{placement}-locked/faster"]["model"] for group in groups]
        places = [place + 0.25 * (number - 1) for place in range(len(groups))]
        axes[0][0].barh(places, values, height=0.25, label=placement)
    axes[0][0].set_yticks(range(len(groups)), groups)
    axes[0][0].axvline(1, color="black", linewidth=0.8)
    axes[0][0].set(xlabel="faster than interleaved")
    axes[0][0].legend()
    return figure


def _figure(rows: int, cols: int, width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, cols, squeeze=False)


def _save(figure: Any, path: Path) -> Path:
    with whole_file(path) as scratch:
        figure.savefig(scratch, dpi=110, metadata={"Software": None})
    return path
