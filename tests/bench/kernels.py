"""Speed of small programs: all kernels of a prompt on groups of tiles, each run for itself.

Kernels that are alike are planned and built once. As ``wafertlm iteration`` does, one run of these
is made twice, the second time without off-chip memory, to tell what waits for that.
"""

from collections.abc import Sequence
from functools import partial

from tests.bench.measure import Row, cpu_seconds
from tests.bench.network import Note
from tlm.calibrated import stale_allowed
from wafertlm.asked.iteration import IterationOptions
from wafertlm.iteration.plan import plan_iteration
from wafertlm.kernel.run import run_setup
from wafertlm.kernel.setup import Setup
from workloads.models import find_model

_MODEL, _CHIP, _PREFILL, _TENSOR, _STAGES = "qwen3-4b", "npusim-large", "296", 4, 4
#: By the levels of network and memory: most CPU seconds.
_TARGETS = {("lt", "perf"): 0.5, ("at", "perf"): 2.0, ("at", "at"): 60.0}


def kernels_rows(most: int | None, runs: int, done: Note) -> list[Row]:
    """CPU seconds of all kernels of a prompt at each level, no result used twice.

    Args:
        most: Runs of a kernel in each measurement; None: as many as the iteration has.
        runs: Measurements.
        done: Told of each.
    """
    with stale_allowed():  # errors are not asked for; outside all runs, as its end forgets
        return [
            _row(noc, memory, target, most, runs, done)
            for (noc, memory), target in _TARGETS.items()
        ]


def _row(noc: str, memory: str, target: float, most: int | None, runs: int, done: Note) -> Row:
    options = IterationOptions(
        model=_MODEL,
        chip=_CHIP,
        prefill=(_PREFILL,),
        noc=noc,
        memory=memory,
        tp=_TENSOR,
        pp=_STAGES,
    )
    planned = plan_iteration(options, find_model(_MODEL)).kernels
    setups = [(each.setup(), min(each.times, most or each.times)) for each in planned]
    for setup, _ in setups:
        run_setup(setup)  # compile
    seconds = []
    for _ in range(runs):
        seconds.append(cpu_seconds(partial(_run_all, setups)))
        done()
    count = sum(times for _, times in setups)
    work = f"{_MODEL}, {_PREFILL} tokens on {_CHIP}: {count:,} kernels at --noc {noc}"
    return Row(f"{work} --memory {memory}", "CPU-s", tuple(seconds), target)


def _run_all(setups: Sequence[tuple[Setup, int]]) -> None:
    for setup, times in setups:
        for _ in range(times):
            ran = run_setup(setup)
        ran.settled()
