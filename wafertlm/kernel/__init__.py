"""Kernels on chips, at the level of detail that a question needs."""

from wafertlm.asked.kernel import KernelOptions
from wafertlm.kernel.result import KernelResult
from wafertlm.kernel.run import run_kernel, run_setup
from wafertlm.kernel.setup import Execution, Setup, resolve

__all__ = [
    "Execution",
    "KernelOptions",
    "KernelResult",
    "Setup",
    "resolve",
    "run_kernel",
    "run_setup",
]
