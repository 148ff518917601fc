"""The kernels by name."""

from collections.abc import Callable
from dataclasses import dataclass

from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from workloads.kernels.cannon import cannon
from workloads.kernels.closed_form import compute_shift_cycles, summa_cycles
from workloads.kernels.gemm import GemmPlan
from workloads.kernels.mesh_gemm import mesh_gemm
from workloads.kernels.ring import Ring
from workloads.kernels.summa import summa


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel at every level.

    Attributes:
        program: Builds its program.
        closed_form: Its cycles at level `perf`.
        buffers: Blocks of A, and of B, that a tile holds at a time.
    """

    program: Callable[[GemmPlan], Program]
    closed_form: Callable[[GemmPlan, NocTiming], int]
    buffers: int


def _on(ring: Callable[[int], Ring]) -> Callable[[GemmPlan, NocTiming], int]:
    return lambda plan, timing: compute_shift_cycles(plan, ring(plan.side), timing)


KERNELS = {
    "mesh-gemm": Kernel(mesh_gemm, _on(Ring.interleaved), buffers=2),
    "cannon": Kernel(cannon, _on(Ring.natural), buffers=2),
    "summa": Kernel(summa, summa_cycles, buffers=3),
}
