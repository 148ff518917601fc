"""Which partition a product gets on a group of tiles."""

from tlm.errors import InputError, choose
from workloads.kernels.gemm.partition_closed_form import NEVER, least_cycles, partition_cycles
from workloads.kernels.gemm.partition_plan import (
    PARTITIONS,
    PartitionPlan,
    cores_of,
    plan_partition,
)
from workloads.kernels.gemm.plan import Shape
from workloads.machine.place import Place


def find_partition(
    shape: Shape, place: Place, partition: str = "auto", *, scattered: bool = False
) -> PartitionPlan:
    """The plan of a partition: of several with that name the fastest in closed form.

    ``auto`` looks at all of which a tile's memory holds the buffers.

    Raises:
        InputError: for an unknown partition, a size below 1, a 2-D partition of tiles that are no
            product, or if ``auto`` finds none.
    """
    choose("partition", partition, PARTITIONS)
    auto = partition == "auto"
    plans = [
        plan_partition(shape, place, name, cores, scattered=scattered)
        for name in (PARTITIONS[:-1] if auto else (partition,))
        for cores in cores_of(name, place)
    ]
    if not plans:
        raise InputError(
            f"--partition: found {partition} on {place.rows * place.cols} tiles; allowed: on a "
            "number of tiles that is a product of two above 1"
        )
    if auto:
        needed = [plan.tile_bytes for plan in plans]
        plans = [plan for plan, size in zip(plans, needed, strict=True) if size <= place.tile_bytes]
        if not plans:
            raise InputError(
                f"--shape: every partition takes {min(needed)} bytes of a tile's memory or more; "
                f"allowed: {place.tile_bytes}"
            )
    return _fastest(plans, place)


def _fastest(plans: list[PartitionPlan], place: Place) -> PartitionPlan:
    """The first of the fastest. How long messages wait is asked only of those that may be it."""
    least = [least_cycles(plan, place.timing) for plan in plans]
    found, which = NEVER, 0
    for number in sorted(range(len(plans)), key=least.__getitem__):
        if least[number] > found or len(plans) == 1:
            break
        cycles = partition_cycles(plans[number], place.timing, found)
        found, which = min((found, which), (cycles, number))
    return plans[which]
