"""The main job, from Verilog to the wafer to serving, in five minutes: ``make demo``.

Of calibration it repeats one experiment: ``wafertlm calibrate`` is the whole campaign. It calls
what the commands call, stores the results under ``results/demo`` and ends with a summary and the
path of the report.
"""

import os
import sys
from pathlib import Path
from typing import Any

from rich.table import Table

from calibration.campaign import repeat
from calibration.experiment import LawContradictedError
from tlm import children
from tlm.errors import InputError
from wafertlm.commands.doctor import doctor_result
from wafertlm.kernel import KernelOptions, run_kernel
from wafertlm.output import CheckFailedError, console, cost, log, progress, store
from wafertlm.report.page import write_report
from wafertlm.serving import Execution, ServeOptions, complete_serve, serve_result
from wafertlm.stopwatch import stopwatch
from wafertlm.verilog import failing_checks

FOLDER = Path("results/demo")
#: On four tiles in Verilog: all that a kernel's jobs and transfers cost.
_EXPERIMENT = "tile"
_KERNELS = ("mesh-gemm", "summa")
_SIZE = 4096
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
        measured = _measure()
        wafer = _simulate_wafer()
        serving = _serve()
        report = write_report(FOLDER, FOLDER / "report.html")["report"]
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except CheckFailedError as error:
        print(f"check failed: {error}", file=sys.stderr)
        return 1
    _summarise(measured, wafer, serving)
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


def _measure() -> dict[str, Any]:
    """One experiment on RTL, which has to find what is stored."""
    log(f"[2/5] building a small mesh of tiles, measuring experiment '{_EXPERIMENT}' on it")
    workers = os.cpu_count() or 1
    with stopwatch() as watch:
        try:
            with failing_checks():
                result, as_stored = repeat(_EXPERIMENT, workers=workers, building=watch.compiling)
        except LawContradictedError as error:
            raise CheckFailedError(str(error)) from error
    if not as_stored:
        raise CheckFailedError(
            f"{_EXPERIMENT}: what the Verilog does is not what calibration/results holds; "
            "`wafertlm calibrate` measures it anew"
        )
    log(f"  {len(result.fit) + len(result.check)} cases measured: the stored result, byte for byte")
    return {
        "points": len(result.check),
        "max_abs_error_pct": result.max_abs_error_pct,
        **watch.times,
    }


def _simulate_wafer() -> list[dict[str, Any]]:
    """Kernels on the whole wafer, a process each; rows in order."""
    log("[3/5] MeshGEMM and SUMMA on 720x720 cores, loosely timed")
    with progress("kernels") as bar, children.pool() as pool:
        rows = []
        for done, row in enumerate(pool.map(_run_kernel, _KERNELS), start=1):
            rows.append(row)
            bar(done, len(_KERNELS))
            log(f"  {row['kernel']}: {row['cycles']:,} cycles")
    return rows


def _run_kernel(kernel: str) -> dict[str, Any]:
    options = KernelOptions(
        kernel=kernel,
        chip="wse2",
        grid="720x720",
        shape=f"{_SIZE},{_SIZE},{_SIZE}",
        dtype="fp16",
        level="lt",
    )
    with stopwatch() as watch:
        ran = run_kernel(options)
    result = ran.record(watch.times)
    store(result, FOLDER / f"{kernel}.json")
    ran.store_maps(FOLDER / f"{kernel}.npz")
    return {"kernel": kernel, **result}


def _serve() -> dict[str, Any]:
    log("[4/5] serving Llama3-8B on the 32x32-tile chip, chunked prefill")
    with stopwatch() as watch, progress("requests") as bar:
        execution = Execution(progress=bar, requests_csv=FOLDER / "serve.csv")
        figures = serve_result(_SERVE, execution)
    result = complete_serve(_SERVE, figures, watch.times)
    store(result, FOLDER / "serve.json")
    return result


def _summarise(
    measured: dict[str, Any], wafer: list[dict[str, Any]], serving: dict[str, Any]
) -> None:
    log("[5/5] report written")
    table = Table("what", "figure", "cost", title="wafertlm demo")
    table.add_row(
        f"model against RTL, blind: {_EXPERIMENT}",
        f"{measured['points']} cases, worst error {measured['max_abs_error_pct']:.3g} %",
        cost(measured),
    )
    for row in wafer:
        table.add_row(
            f"{row['kernel']}, M=N=K={_SIZE}",
            f"{row['cycles']:,} cycles, utilization {row['utilization']:.1%}",
            cost(row),
        )
    mesh, summa = wafer
    table.add_row("SUMMA over MeshGEMM", f"{summa['cycles'] / mesh['cycles']:.2f}x", "")
    ttft, tbt = serving["ttft_s"], serving["tbt_ms"]
    table.add_row(
        "serving: TTFT mean, p99", f"{ttft['mean']:.3f} s, {ttft['p99']:.3f} s", cost(serving)
    )
    table.add_row("serving: TBT mean, p99", f"{tbt['mean']:.1f} ms, {tbt['p99']:.1f} ms", "")
    table.add_row("serving: throughput", f"{serving['throughput_tok_s']:,.0f} tokens/s", "")
    console().print(table)


if __name__ == "__main__":
    sys.exit(main())
