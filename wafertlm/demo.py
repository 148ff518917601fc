"""The main job, from Verilog to the wafer to serving, in one go: ``make demo``.

Calls what the commands call, stores the results under ``results/demo`` and ends with a summary and
the path of the report.
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.table import Table

from tlm.errors import InputError
from wafertlm.commands.calibrate import calibrate_result
from wafertlm.commands.calibrate import render as render_calibration
from wafertlm.commands.doctor import doctor_result
from wafertlm.kernel import KernelOptions, run_kernel
from wafertlm.output import CheckFailedError, console, log, progress, store
from wafertlm.report.page import write_report
from wafertlm.serving import ServeOptions, complete_serve, serve_result
from wafertlm.stopwatch import Stopwatch, stopwatch

FOLDER = Path("results/demo")
_KERNELS = ("mesh-gemm", "summa")
_SIZES = (2048, 4096, 8192)
_SERVE = ServeOptions(
    model="llama3-8b",
    chip="flat32",
    scheduler="chunked",
    workload="sharegpt",
    rate_rps=4.0,
    requests=400,
    seed=0,
)


def main() -> int:
    """Run every step; the exit status is that of a command."""
    try:
        _check_machine()
        with stopwatch() as watch:
            experiments = _calibrate(watch)
        wafer = _simulate_wafer()
        serving = _serve()
        report = write_report(FOLDER, FOLDER / "report.html")["report"]
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except CheckFailedError as error:
        print(f"check failed: {error}", file=sys.stderr)
        return 1
    _summarise(experiments, wafer, serving)
    console().print(f"report: {Path(report).resolve()}", soft_wrap=True)
    return 0


def _check_machine() -> None:
    log("[1/5] checking the machine")
    failed = [c for c in doctor_result()["checks"] if c["needed"] and not c["ok"]]
    # What the stored calibration says is no matter: it is measured anew in the next step.
    failed = [check for check in failed if check["name"] != "calibration"]
    if failed:
        remedies = "; ".join(f"{check['name']}: {check['remedy']}" for check in failed)
        raise CheckFailedError(f"this machine lacks {remedies}")


def _calibrate(watch: Stopwatch) -> list[dict[str, Any]]:
    log("[2/5] building the Verilog, checking it under cocotb, calibrating")
    figures = calibrate_result(
        quick=False, force=True, workers=1, watch=watch, progress=lambda text: log(f"  {text}")
    )
    console().print(render_calibration(figures))
    experiments: list[dict[str, Any]] = figures["experiments"]
    return experiments


def _simulate_wafer() -> list[dict[str, Any]]:
    """Kernels on the whole wafer, a process a core; rows in order."""
    log("[3/5] MeshGEMM and SUMMA on 720x720 cores, loosely timed")
    cases = [(kernel, size) for size in _SIZES for kernel in _KERNELS]
    with progress("kernels") as bar, ProcessPoolExecutor(os.cpu_count()) as pool:
        rows = []
        for done, row in enumerate(pool.map(_run_kernel, cases), start=1):
            rows.append(row)
            bar(done, len(cases))
            log(f"  {row['kernel']} {row['size']}: {row['cycles']:,} cycles")
    return rows


def _run_kernel(case: tuple[str, int]) -> dict[str, Any]:
    kernel, size = case
    options = KernelOptions(
        kernel=kernel,
        chip="wse2",
        grid="720x720",
        shape=f"{size},{size},{size}",
        dtype="fp16",
        level="lt",
    )
    with stopwatch() as watch:
        ran = run_kernel(options)
    result = ran.record(watch.times)
    store(result, FOLDER / f"{kernel}-{size}.json")
    if size == _SIZES[0]:
        ran.store_maps(FOLDER / f"{kernel}-{size}.npz")
    return {"kernel": kernel, "size": size, **result}


def _serve() -> dict[str, Any]:
    log("[4/5] serving Llama3-8B on the 32x32-tile chip, chunked prefill")
    with stopwatch() as watch, progress("requests") as bar:
        figures = serve_result(_SERVE, bar, FOLDER / "serve.csv")
    result = complete_serve(_SERVE, figures, watch.times)
    store(result, FOLDER / "serve.json")
    return result


def _summarise(
    experiments: list[dict[str, Any]], wafer: list[dict[str, Any]], serving: dict[str, Any]
) -> None:
    log("[5/5] report written")
    table = Table("what", "figure", title="wafertlm demo")
    worst = max(experiments, key=lambda row: row["max_abs_error_pct"])
    points = sum(row["check_points"] for row in experiments)
    table.add_row(
        "models against RTL, blind",
        f"{points} cases, worst error {worst['max_abs_error_pct']:.3g} %",
    )
    for label, value in _wafer_rows(wafer):
        table.add_row(label, value)
    ttft, tbt = serving["ttft_s"], serving["tbt_ms"]
    table.add_row("serving: TTFT mean, p99", f"{ttft['mean']:.3f} s, {ttft['p99']:.3f} s")
    table.add_row("serving: TBT mean, p99", f"{tbt['mean']:.1f} ms, {tbt['p99']:.1f} ms")
    table.add_row("serving: throughput", f"{serving['throughput_tok_s']:,.0f} tokens/s")
    console().print(table)


def _wafer_rows(wafer: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for mesh, summa in zip(wafer[::2], wafer[1::2], strict=True):
        for row in (mesh, summa):
            yield (
                f"{row['kernel']}, M=N=K={row['size']}",
                f"{row['cycles']:,} cycles, utilization {row['utilization']:.1%}, "
                f"{row['cpu_s']:.1f} CPU-s",
            )
        yield f"SUMMA over MeshGEMM, {mesh['size']}", f"{summa['cycles'] / mesh['cycles']:.2f}x"


if __name__ == "__main__":
    sys.exit(main())
