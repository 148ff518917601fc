"""Fits the H100's five free figures to the study's fitted rows.

``python -m workloads.studies.layered_prefill.fit`` writes ``fit.json`` beside this file; the
profile of the H100 holds the values and names it as their source. The rows are those of the paper's
baseline, chunks of 512 tokens, and its runtimes of a prompt alone: nothing of layered prefill, of
other chunk sizes under load, of disaggregation, of dense models or of other models is seen.

Four figures of time are found by least squares over the logarithms of model over paper; means of
the time to the first token near saturation, which vary by a third and more from seed to seed, count
a fifth. The fifth, the power of being awake, is linear and follows from the energy.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

from tlm.chips.gpu import Gpu, load_gpu_box
from tlm.files import whole_file
from workloads.studies.layered_prefill.cases import Case, Prefill, case_figures
from workloads.studies.layered_prefill.paper import plan
from workloads.studies.rows import Row

FIT_FILE = Path(__file__).with_name("fit.json")
SEEDS = (1000, 1001, 1002)  # none of the study's

# Name: first guess, lowest, highest.
_TIMES = {
    "expert_bandwidth": (0.5, 0.2, 0.9),
    "expert_gemm": (0.25, 0.03, 0.8),
    "expert_layer_s": (2e-4, 5e-5, 4e-4),
    "attention": (0.4, 0.1, 0.8),
}
_NEAR_SATURATION = 0.2
_STEP = 0.03
_EVALUATIONS = 15


def fit(gpu: Gpu, *, log: Any = None) -> dict[str, Any]:
    """The fitted figures, and the rows they were fitted to with what the model says of them."""
    rows = [row for row in plan().aims if row.figure != "coverage"]
    timed = [row for row in rows if row.figure != "energy"]
    scale = np.array([start for start, _, _ in _TIMES.values()])

    def residuals(scaled: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
        values = _values(_with(gpu, scaled * scale), timed)
        errors = [_weight(row) * np.log(values[row.name] / _paper(row)) for row in timed]
        if log is not None:
            shown = ", ".join(f"{each:.4g}" for each in scaled * scale)
            log(f"{shown}: {np.sum(np.square(errors)):.4f}")
        return np.array(errors)

    low, high = (np.array([bound[place] for bound in _TIMES.values()]) for place in (1, 2))
    found = optimize.least_squares(
        residuals,
        np.ones(len(_TIMES)),
        bounds=(low / scale, high / scale),
        diff_step=_STEP,
        max_nfev=_EVALUATIONS,
    )
    times = [float(f"{value:.3g}") for value in found.x * scale]
    timed_gpu = _with(gpu, times)
    active_w = _active_w(timed_gpu, [row for row in rows if row.figure == "energy"])
    values = _values(_awake(timed_gpu, active_w), rows)
    return {
        "gpu": gpu.name,
        "parameters": dict(zip(_TIMES, times, strict=True)) | {"active_w": active_w},
        "seeds": list(SEEDS),
        "rows": [
            {"id": row.name, "paper": row.paper, "model": round(values[row.name], 4)}
            for row in rows
        ],
    }


def _with(gpu: Gpu, times: Sequence[float]) -> Gpu:
    bandwidth, gemm, layer_s, attention = (float(value) for value in times)
    efficiency = {
        "expert_bandwidth": bandwidth,
        "expert_gemm": gemm,
        "attention": attention,
    }
    overhead = {"expert_layer_s": layer_s}
    return gpu.model_copy(
        update={
            "efficiency": gpu.efficiency.model_copy(update=efficiency),
            "overhead": gpu.overhead.model_copy(update=overhead),
        }
    )


def _awake(gpu: Gpu, active_w: float) -> Gpu:
    return gpu.model_copy(update={"energy": gpu.energy.model_copy(update={"active_w": active_w})})


def _active_w(gpu: Gpu, rows: Sequence[Row]) -> float:
    """Energy is linear in it: least squares of the relative errors."""
    without, with_one = (_values(_awake(gpu, power), rows) for power in (0.0, 1.0))
    slope = np.array([(with_one[row.name] - without[row.name]) / _paper(row) for row in rows])
    left = np.array([1 - without[row.name] / _paper(row) for row in rows])
    return float(f"{np.dot(slope, left) / np.dot(slope, slope):.3g}")


def _values(gpu: Gpu, rows: Sequence[Row]) -> Mapping[str, float]:
    """The model's value of each row, mean over the seeds."""
    cases = plan().cases
    figures: dict[str, list[dict[str, float | None]]] = {}
    for row in rows:
        case = cases[row.case]
        assert isinstance(case, Case | Prefill)
        if row.case not in figures:
            seeds = SEEDS if isinstance(case, Case) else SEEDS[:1]
            figures[row.case] = case_figures(case, seeds, gpu)
    return {
        row.name: float(np.mean([each[row.figure] or 0.0 for each in figures[row.case]]))
        for row in rows
    }


def _weight(row: Row) -> float:
    return _NEAR_SATURATION if row.name.startswith("T2") and row.figure == "TTFT_mean" else 1.0


def _paper(row: Row) -> float:
    assert row.paper is not None
    return row.paper


def main() -> None:
    """Fit and write ``fit.json``."""
    gpu = load_gpu_box("h100x2")
    result = fit(gpu, log=lambda text: print(text, file=sys.stderr))
    with whole_file(FIT_FILE) as scratch:
        scratch.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
