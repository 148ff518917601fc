"""The kernels of studies, run as ``wafertlm kernel`` runs them."""

from tlm.errors import InputError
from wafertlm.kernel import KernelOptions, run_kernel
from workloads.studies.campaign import Figures
from workloads.studies.flatattention.cases import CHIP, DTYPE, GRID, KERNEL_FIGURES, KernelCase

_CHANGED_GRID = ("grid.rows=", "grid.cols=")


def kernel_figures(case: KernelCase) -> Figures:
    """Figures of a kernel with off-chip memory; all None if its slices do not fit."""
    try:
        ran = run_kernel(options_of(case))
    except InputError as error:
        if "--shape" not in str(error):
            raise
        return dict.fromkeys(KERNEL_FIGURES)
    memory, plan = ran.memory_figures, ran.plan
    moved = sum(memory["memory_bytes"].values())
    figures: Figures = {
        f"{name}_pct": 100 * part / ran.cycles for name, part in ran.breakdown_cycles.items()
    }
    return figures | {
        "runtime_ms": 1e3 * ran.seconds,
        "utilization_pct": 100 * ran.utilization,
        "hbm_use_pct": 100 * memory["memory_utilization"],
        "traffic_gb": 1e-9 * moved,
        "engine_pct": 100 * plan["engine_utilization"],
        "slice": float(plan["slice"]["rows"]),
        "tile_kib": plan["tile_bytes"] / 1024,
        "level_pct": ran.error["level_pct"],
    }


def options_of(case: KernelCase) -> KernelOptions:
    """What the command is asked for."""
    sides = dict(change.split("=") for change in case.changes if change.startswith(_CHANGED_GRID))
    rows, cols = sides.get("grid.rows", GRID[0]), sides.get("grid.cols", GRID[1])
    return KernelOptions(
        kernel=case.kernel,
        chip=CHIP,
        grid=f"{rows}x{cols}",
        shape=",".join(map(str, case.shape)),
        dtype=DTYPE,
        level=case.level,
        memory="perf",
        collective=case.collective,
        schedule=case.schedule,
        group=None if case.group is None else "{}x{}".format(*case.group),
        latent=case.latent,
        set=case.changes,
    )
