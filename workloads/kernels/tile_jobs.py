"""Plans for the project's own tiles: their work takes as long as its jobs, transfers are launched.

Laws of shapes leave out what a job of such a tile meets beside them: streams that meet at a bank,
results that are added to what is there (`tlm.tiles.programs`). A plan gets the mean over the
program's jobs, for each engine.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from tlm.compute.base import Compute, Sizes
from tlm.compute.vector_unit import VectorUnit
from tlm.interconnect.zero_load import Launching, NocTiming
from tlm.program import Engine, Program, Transfer, Vector, Work
from tlm.tiles.programs import on_tiles
from tlm.tiles.timing import TileTiming
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemv.plan import GemvPlan
from workloads.kernels.parts.relayed import RelayedParts

P = TypeVar("P")
Kind = TypeVar("Kind", Engine, str)

#: The kind of all transfers.
_FLITS = "flits"


def on_own_tiles(
    plan: P, program: Program, timing: NocTiming, tile: TileTiming
) -> tuple[P, NocTiming]:
    """The plan of a program, and the network, as a closed form takes them for such tiles.

    Raises:
        InputError: for buffers that such tiles cannot hold.
    """
    launching = Launching.of(timing, tile.queues.launch_cycles)
    return with_jobs(plan, program, tile), launching


def with_jobs(plan: P, program: Program, tile: TileTiming) -> P:
    """The plan of a program with the cycles of its jobs on such tiles.

    Raises:
        InputError: for buffers that such tiles cannot hold.
    """
    own: Any = plan
    if isinstance(own, GemvPlan):
        of_gemv: Any = _gemv_with_jobs(own, program, tile)
        return of_gemv  # type: ignore[no-any-return]  # the plan's own type, which `replace` keeps
    longer = _longer(program, tile, lambda work: work.engine)
    matrix, vector = longer.get(Engine.MATRIX, 1.0), longer.get(Engine.VECTOR, 1.0)
    if isinstance(own, GemmPlan):
        steps, relayed = round(own.step_cycles * matrix), _relayed(own.relayed, vector)
        changed: Any = replace(own, step_cycles=steps, relayed=relayed)
    else:
        place = own.place
        engines = {
            "matrix": _Longer(place.matrix, matrix),
            "vector": _LongerPasses(place.vector.lanes, place.vector.pipeline_cycles, vector),
        }
        changed = replace(own, place=replace(place, **engines))
    return changed  # type: ignore[no-any-return]  # the plan's own type, which `replace` keeps


def _gemv_with_jobs(plan: GemvPlan, program: Program, tile: TileTiming) -> Any:
    """The product may be a pass of the engine that adds the parts, too, but of another length.

    Where parts of a ring stay in their buffers, the one whose additions take longest is the last.
    """
    stay = 1 < plan.parts < plan.rows

    def kind(work: Work) -> str:
        return work.task.out if stay and isinstance(work.task, Vector) else work.label

    longer = _longer(program, tile, kind)
    product, flits = longer.pop("C", 1.0), longer.pop(_FLITS, 1.0)
    combine = max(longer.values(), default=1.0)
    return replace(
        plan,
        product_cycles=round(plan.product_cycles * product),
        combine_cycles=round(plan.combine_cycles * combine),
        c_flits=round(plan.c_flits * flits),
        relayed=_relayed(plan.relayed, combine, flits),
    )


def _relayed(parts: RelayedParts | None, add: float, flits: float = 1.0) -> RelayedParts | None:
    if parts is None:
        return None
    longer = {"add_cycles": round(parts.add_cycles * add), "flits": round(parts.flits * flits)}
    return replace(parts, **longer)


def _longer(
    program: Program, tile: TileTiming, of: Callable[[Work], Kind]
) -> dict[Kind | str, float]:
    """How many times as long a program's operations are on such tiles as they were planned.

    Of work of each kind in cycles, of transfers in flits.
    """
    planned, taken = _amounts(program, of), _amounts(on_tiles(program, tile), of)
    return {kind: taken[kind] / amount for kind, amount in planned.items() if amount}


def _amounts(program: Program, of: Callable[[Work], Kind]) -> Counter[Kind | str]:
    found: Counter[Kind | str] = Counter()
    for operation in program.operations():
        if isinstance(operation, Work):
            found[of(operation)] += int(np.max(operation.cycles))
        elif isinstance(operation, Transfer):
            found[_FLITS] += operation.flits
    return found


@dataclass(frozen=True, slots=True)
class _Longer:
    """A matrix engine whose products take some times as long (`Compute`)."""

    engine: Compute
    times: float

    @property
    def macs_per_cycle(self) -> float:
        """Of the engine."""
        return self.engine.macs_per_cycle

    def gemm_cycles(self, m: int, k: int, n: int) -> int:
        """See `Compute`."""
        return round(self.engine.gemm_cycles(m, k, n) * self.times)

    def gemm_cycles_over(self, m: Sizes, k: Sizes | int, n: Sizes | int) -> Sizes:
        """See `Compute`."""
        cycles: Sizes = np.rint(self.engine.gemm_cycles_over(m, k, n) * self.times).astype(np.int64)
        return cycles


@dataclass(frozen=True, slots=True)
class _LongerPasses(VectorUnit):
    """A vector engine whose passes take some times as long."""

    times: float = 1.0

    def pass_cycles_over(self, rows: Any, columns: Any) -> Any:
        """See `VectorUnit`."""
        cycles = np.rint(VectorUnit.pass_cycles_over(self, rows, columns) * self.times)
        return cycles.astype(np.int64) if cycles.ndim else int(cycles)
