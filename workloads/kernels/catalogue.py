"""The kernels by name, and what one is made of."""

from workloads.kernels.attention import kernels as attention
from workloads.kernels.gemm import kernels as gemm
from workloads.kernels.gemv import kernels as gemv
from workloads.kernels.kernel import (
    ATTENTION,
    GEMM,
    GROUPS,
    HEADS,
    KERNELS_OWN,
    LATENT,
    ROWS,
    SUMS,
    Choices,
    Form,
    Kernel,
    MovingPlan,
    Plan,
    Sizes,
    moved_of,
    moves,
)
from workloads.kernels.vector import kernels as vector

__all__ = [
    "ATTENTION",
    "GEMM",
    "GROUPS",
    "HEADS",
    "KERNELS",
    "KERNELS_OWN",
    "LATENT",
    "ROWS",
    "SUMS",
    "Choices",
    "Form",
    "Kernel",
    "MovingPlan",
    "Plan",
    "Sizes",
    "moved_of",
    "moves",
]

KERNELS: dict[str, Kernel] = {
    **gemm.KERNELS,
    **gemv.KERNELS,
    **vector.KERNELS,
    **attention.KERNELS,
}
