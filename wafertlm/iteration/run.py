"""One iteration of a model on a chip, kernel by kernel, each run as ``wafertlm kernel`` runs it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tlm.calibrated import stale_allowed
from tlm.engines.at.cost import Cost
from wafertlm.asked.iteration import IterationOptions
from wafertlm.iteration.plan import PlannedKernel, named, plan_iteration
from wafertlm.iteration.result import IterationResult, Ran
from wafertlm.kernel.result import KernelResult
from wafertlm.kernel.run import hold_cost, run_setup
from wafertlm.kernel.setup import PLAIN, Execution
from wafertlm.output import Progress
from workloads.models import find_model


def run_iteration(
    options: IterationOptions, progress: Progress | None = None, execution: Execution = PLAIN
) -> IterationResult:
    """Run the kernels of an iteration, each that is alike once.

    Args:
        options: What is run.
        progress: Hears of kernels done, and of how many.
        execution: How; changes no figure.

    Raises:
        InputError: for options that do not fit together, a model that does not fit the chip, or
            stale measurements, unless they are allowed.
        CheckFailedError: if the network hangs.
    """
    model = find_model(options.model)
    with stale_allowed(options.allow_stale):
        planned = plan_iteration(options, model)
        kernels = _run(planned.kernels, progress, execution)
        if planned.dies is not None:
            planned.dies.links()  # now, as they take time
    return IterationResult(
        options=options,
        model=model,
        ground=planned.kernels[0].ground,
        kernels=kernels,
        wafer=planned.wafer,
        dies=planned.dies,
        groups=planned.groups,
        residency=planned.residency,
    )


def _run(
    planned: Sequence[PlannedKernel], progress: Progress | None, execution: Execution
) -> list[Ran]:
    setups = [each.setup() for each in planned]
    costs = sum((setup.cost for setup in setups), Cost())
    hold_cost(costs, planned[0].ground.levels.noc, execution)
    execution, kernels = replace(execution, cost=None), []
    alike: dict[Any, KernelResult] = {}
    for done, (each, setup) in enumerate(zip(planned, setups, strict=True)):
        if progress is not None:
            progress(done, len(planned))
        key = setup.options, setup.place, each.mapped.plan
        if key not in alike:
            with named(each.operator):
                alike[key] = run_setup(setup, execution).settled()
        kernels.append(Ran(each.operator, each.mapped, each.times, alike[key], each.tiles))
    return kernels
