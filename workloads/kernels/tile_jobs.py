"""Plans for the project's own tiles: their work takes as long as its jobs, transfers are launched.

Laws of shapes leave out what a job of such a tile meets beside them: streams that meet at a bank,
results that are added to what is there (`tlm.tiles.programs`). A plan gets the mean over the
program's jobs, for each engine.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from tlm.compute.base import Compute, Sizes
from tlm.compute.vector_unit import VectorUnit
from tlm.interconnect.zero_load import Launching, NocTiming
from tlm.program import Engine, Program, Work
from tlm.tiles.programs import on_tiles
from tlm.tiles.timing import TileTiming
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemv.plan import GemvPlan
from workloads.kernels.parts.relayed import RelayedParts

P = TypeVar("P")


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
    planned, taken = _cycles(program), _cycles(on_tiles(program, tile))
    longer = {engine: taken[engine] / cycles for engine, cycles in planned.items() if cycles}
    matrix, vector = longer.get(Engine.MATRIX, 1.0), longer.get(Engine.VECTOR, 1.0)
    own: Any = plan
    if isinstance(own, GemmPlan):
        steps, relayed = round(own.step_cycles * matrix), _relayed(own.relayed, vector)
        changed: Any = replace(own, step_cycles=steps, relayed=relayed)
    elif isinstance(own, GemvPlan):
        product, combine = own.product_cycles * matrix, own.combine_cycles * vector
        changed = replace(own, product_cycles=round(product), combine_cycles=round(combine))
        changed = replace(changed, relayed=_relayed(own.relayed, vector))
    else:
        place = own.place
        engines = {
            "matrix": _Longer(place.matrix, matrix),
            "vector": _LongerPasses(place.vector.lanes, place.vector.pipeline_cycles, vector),
        }
        changed = replace(own, place=replace(place, **engines))
    return changed  # type: ignore[no-any-return]  # the plan's own type, which `replace` keeps


def _relayed(parts: RelayedParts | None, longer: float) -> RelayedParts | None:
    if parts is None:
        return None
    return replace(parts, add_cycles=round(parts.add_cycles * longer))


def _cycles(program: Program) -> Counter[Engine]:
    """Cycles of each engine's operations."""
    found: Counter[Engine] = Counter()
    for operation in program.operations():
        if isinstance(operation, Work):
            found[operation.engine] += int(np.max(operation.cycles))
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

    def gemm_cycles_over(self, m: Sizes, k: Sizes, n: Sizes) -> Sizes:
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
