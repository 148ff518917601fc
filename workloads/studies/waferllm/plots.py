"""Plots of the study: layers of models against the paper, and kernels by the side of the grid."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tlm.files import whole_file
from workloads.studies.waferllm.facts import (
    GEMM_SIDES,
    GEMM_SIZES,
    GEMMS,
    GEMV_SIDES,
    GEMV_SIZES,
    GEMVS,
    MODELS,
)


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``layers.png``, ``gemm.png`` and ``gemv.png``.

    Raises:
        InputError: if a file cannot be written.
    """
    found = {row["id"]: row for row in result["rows"]}
    figures = {
        "layers": _layers(found),
        "gemm": _kernels(found, "F9/GEMM", GEMM_SIZES, GEMM_SIDES, GEMMS),
        "gemv": _kernels(found, "F10/GEMV", GEMV_SIZES, GEMV_SIDES, GEMVS),
    }
    return [_save(figure, folder / f"{name}.png") for name, figure in figures.items()]


def _figure(cols: int) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * cols, 3.8), layout="constrained")
    return figure, figure.subplots(1, cols)


def _layers(found: Mapping[str, Any]) -> Any:
    """Tables 3 and 4: tokens a second by the side of the grid, and what was published."""
    figure, axes = _figure(2)
    for axis, table, phase in zip(axes, ("T3", "T4"), ("prefill", "decode"), strict=True):
        for number, model in enumerate(MODELS):
            rows = [
                row
                for name, row in found.items()
                if name.startswith(f"{table}/{model}/") and name.endswith(f"/{phase}")
            ]
            sides = [int(row["id"].split("/")[2].split("x")[0]) for row in rows]
            axis.plot(sides, [row["model"] for row in rows], f"C{number}-", label=model)
            axis.plot(sides, [row["paper"] or float("nan") for row in rows], f"C{number}*")
        axis.set(title=f"{phase}; stars: paper", xlabel="tiles a side", ylabel="tokens a second")
        axis.set(yscale="log")
        axis.legend()
    return figure


def _kernels(
    found: Mapping[str, Any],
    start: str,
    sizes: Mapping[str, int],
    sides: tuple[int, ...],
    kernels: Mapping[str, Any],
) -> Any:
    """Figure 9 or 10: cycles by the side of the grid."""
    figure, axes = _figure(len(sizes))
    for axis, size in zip(axes, sizes, strict=True):
        for kernel in kernels:
            cycles = [
                found[f"{start}-{size}/{side}x{side}/{kernel}_cycles"]["model"] for side in sides
            ]
            axis.plot(sides, cycles, "o-", label=kernel)
        axis.set(title=size, xlabel="tiles a side", ylabel="cycles", ylim=(0, None))
        axis.legend()
    return figure


def _save(figure: Any, path: Path) -> Path:
    with whole_file(path) as scratch:
        figure.savefig(scratch, dpi=110, metadata={"Software": None})
    return path
