"""Products of a vector and a matrix by name."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from workloads.kernels.gemv import mesh_gemv, pipeline_gemv, ring_gemv
from workloads.kernels.gemv.closed_form import gemv_cycles, ring_gemv_cycles
from workloads.kernels.gemv.plan import GemvPlan, gemv, plan_gemv
from workloads.kernels.kernel import GEMM, Choices, Kernel, product_macs
from workloads.machine.place import Place


def _gemv(
    plan: Callable[[Any, Place, Choices], Any],
    program: Callable[[Any], Program] = gemv,
    form: Callable[[Any, NocTiming], int] = gemv_cycles,
    choices: tuple[str, ...] = (),
) -> Kernel:
    return Kernel(GEMM, product_macs, plan, program, form, choices)


def _rooted(plan: GemvPlan, choices: Choices) -> GemvPlan:
    return replace(plan, at_root=True) if choices.at_root else plan


KERNELS = {
    "mesh-gemv": replace(
        _gemv(
            lambda sizes, place, choices: _rooted(
                mesh_gemv.plan_mesh_gemv(sizes, place, choices.groups, choices.collective), choices
            ),
            choices=("collective", "groups", "at_root"),
        ),
        collective=mesh_gemv.own_method,
    ),
    "pipeline-gemv": _gemv(
        lambda sizes, place, choices: _rooted(
            pipeline_gemv.plan_pipeline_gemv(sizes, place), choices
        ),
        choices=("at_root",),
    ),
    "ring-gemv": _gemv(
        lambda sizes, place, _: plan_gemv(sizes, place, ring=True),
        ring_gemv.ring_gemv,
        ring_gemv_cycles,
    ),
}
