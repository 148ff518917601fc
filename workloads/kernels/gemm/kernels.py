"""Products of matrices by name."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tlm.errors import InputError, choose
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from workloads.kernels.gemm.allgather_gemm import allgather_gemm
from workloads.kernels.gemm.cannon import cannon
from workloads.kernels.gemm.closed_form import (
    allgather_cycles,
    compute_shift_cycles,
    mesh_gemm_t_cycles,
    summa_cycles,
)
from workloads.kernels.gemm.mesh_gemm import mesh_gemm
from workloads.kernels.gemm.mesh_gemm_t import mesh_gemm_t
from workloads.kernels.gemm.partition_closed_form import partition_cycles
from workloads.kernels.gemm.partition_gemm import partition_gemm
from workloads.kernels.gemm.partition_plan import PartitionPlan
from workloads.kernels.gemm.partition_search import find_partition
from workloads.kernels.gemm.plan import GemmPlan, plan_gemm, plan_square_gemm, shifted, summed
from workloads.kernels.gemm.ring import Rings
from workloads.kernels.gemm.stream_closed_form import stream_gemm_cycles
from workloads.kernels.gemm.stream_gemm import stream_gemm
from workloads.kernels.gemm.stream_plan import StreamPlan
from workloads.kernels.gemm.stream_search import plan_stream
from workloads.kernels.gemm.summa import summa
from workloads.kernels.kernel import (
    GEMM,
    GROUPS,
    Choices,
    Form,
    Kernel,
    Sizes,
    by_network,
    product_macs,
    without_memory,
)
from workloads.kernels.parts.broadcast import BY_MESSAGES
from workloads.kernels.parts.relayed import RelayedParts, best_parts
from workloads.machine.place import Place


def _gemm(
    plan: Callable[[Any, Place], GemmPlan],
    program: Callable[[GemmPlan], Program],
    form: Callable[[GemmPlan, NocTiming], int],
) -> Kernel:
    return Kernel(
        GEMM,
        product_macs,
        lambda sizes, place, _: plan(sizes, place),
        program,
        form,
    )


def _panels(
    program: Callable[[GemmPlan], Program],
    form: Callable[[GemmPlan, NocTiming], int],
    *choices: str,
) -> Kernel:
    def plan(sizes: Any, place: Place, choices: Choices) -> GemmPlan:
        method = choose("collective", choices.collective or "network", ["network", *BY_MESSAGES])
        buffers = choices.receive_buffers or 2
        if buffers > 2:
            raise InputError(f"--receive-buffers: found {buffers}; allowed: 1 or 2")
        return replace(
            plan_gemm(sizes, place),
            method=method,
            receive_buffers=buffers,
            serial=bool(choices.serial),
        )

    kernel = _gemm(plan_gemm, program, form)
    return replace(kernel, plan=plan, choices=("collective", *choices), collective=by_network)


def _compute_shift(program: Callable[..., Program], rings: Callable[[int, int], Rings]) -> Kernel:
    """A product by compute and shift on rings."""

    def plan(sizes: Any, place: Place, choices: Choices) -> GemmPlan:
        return replace(plan_gemm(sizes, place, shifted), skewed=bool(choices.skewed))

    whole = _gemm(
        plan_gemm,
        lambda plan: program(plan, align=not plan.skewed),
        lambda plan, timing: compute_shift_cycles(plan, rings(plan.rows, plan.cols), timing),
    )
    return replace(whole, plan=plan, choices=("skewed",))


def _plan_transposed(sizes: Any, place: Place, choices: Choices) -> GemmPlan:
    method = choices.collective or _moving_sum(place)
    choose("collective", method, ["network", "stream"])
    plan = plan_square_gemm(sizes, place, summed)
    if method == "network":
        place.method(method)
        return plan
    if not place.streams:
        raise InputError(
            "kernel: mesh-gemm-t sums in the network or by streams, and this chip's profile has "
            "neither noc.reduce_cycles nor software.stage_cycles"
        )
    if place.relay_cycles is not None:
        return replace(plan, relay_cycles=place.relay_cycles)

    whole = place.cols * place.word_columns(plan.block[2])
    plan = plan_square_gemm((sizes[0], whole, sizes[2]), place, summed)

    def cycles(parts: RelayedParts) -> int:
        return mesh_gemm_t_cycles(replace(plan, relayed=parts), place.timing)

    return replace(plan, relayed=best_parts(place, (plan.block[0], plan.block[2]), cycles))


def _moving_sum(place: Place) -> str:
    """How sums come together whose root is another tile in each step."""
    return "network" if place.in_network else "stream"


def _partitioned(sizes: Any, place: Place, choices: Choices) -> PartitionPlan:
    place = replace(place, placement=choices.placement or place.placement)
    partition = choices.partition or "auto"
    return find_partition(sizes, place, partition, scattered=bool(choices.at_root))


def _stream(form: Form) -> Kernel:
    """A product, or as many as the first of four sizes says."""

    def plan(sizes: Sizes, place: Place, choices: Choices) -> StreamPlan:
        m, n, k = sizes[-3:]
        _check_weights(choices.weight_bits, place)
        method, groups = place.method(choices.collective), math.prod(sizes[:-3])
        weight_bits, resident = choices.weight_bits, bool(choices.resident)
        return plan_stream((m, n, k), place, method, groups, weight_bits, resident=resident)

    return Kernel(
        form,
        product_macs,
        plan,
        stream_gemm,
        stream_gemm_cycles,
        ("collective", "weight_bits", "resident"),
        without_memory,
    )


def _check_weights(bits: float | None, place: Place) -> None:
    if bits is not None and (place.whole_lines or not 0 < bits <= place.element_bits):
        allowed = f"above 0, to {place.element_bits}"
        if place.whole_lines:
            allowed = "none, as the project's own tiles do not widen weights"
        raise InputError(f"--weight-bits: found {bits:g}; allowed here: {allowed}")


KERNELS = {
    "mesh-gemm": _compute_shift(mesh_gemm, Rings.interleaved),
    "mesh-gemm-t": replace(
        _gemm(plan_gemm, mesh_gemm_t, mesh_gemm_t_cycles),
        plan=_plan_transposed,
        choices=("collective",),
        collective=_moving_sum,
    ),
    "cannon": _compute_shift(cannon, Rings.natural),
    "summa": _panels(summa, summa_cycles, "receive_buffers", "serial"),
    "allgather-gemm": _panels(allgather_gemm, allgather_cycles),
    "partitioned-gemm": Kernel(
        GEMM,
        product_macs,
        _partitioned,
        partition_gemm,
        partition_cycles,
        ("partition", "placement", "at_root"),
        without_memory,
    ),
    "stream-gemm": _stream(GEMM),
    "grouped-gemm": _stream(GROUPS),
}
