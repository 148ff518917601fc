"""Collectives at level lt: which law each follows, along rows and along columns."""

from collections.abc import Callable
from enum import IntEnum

from tlm.compiled import compiled
from tlm.engines.lt.laws import Fields
from tlm.engines.lt.multicast import column_multicast, multicast_fields, row_multicast
from tlm.engines.lt.reduce import column_reduce, reduce_fields, row_reduce
from tlm.engines.lt.relay import column_relay, relay_fields, row_relay
from tlm.engines.lt.state import GridArrays
from tlm.engines.lt.step import StepRecord
from tlm.program.operations import Collective, Multicast, Reduce, Relay


class CollectiveKind(IntEnum):
    """Which collective a step is."""

    MULTICAST = 0
    REDUCE = 1
    RELAY = 2


#: Of each its kind, and what makes the fields of its law on a line.
COLLECTIVES: dict[type[Collective], tuple[CollectiveKind, Callable[..., tuple[Fields, int]]]] = {
    Multicast: (CollectiveKind.MULTICAST, multicast_fields),
    Reduce: (CollectiveKind.REDUCE, reduce_fields),
    Relay: (CollectiveKind.RELAY, relay_fields),
}


@compiled
def along_row(step: StepRecord, grid: GridArrays, i: int) -> int:
    """Do a collective along the ``i``-th row; the fault."""
    if step.collective == CollectiveKind.MULTICAST:
        return row_multicast(step, grid, i)
    if step.collective == CollectiveKind.REDUCE:
        return row_reduce(step, grid, i)
    return row_relay(step, grid, i)


@compiled
def along_columns(step: StepRecord, grid: GridArrays, begin: int, end: int) -> int:
    """Do a collective along some columns; the fault."""
    if step.collective == CollectiveKind.MULTICAST:
        return column_multicast(step, grid, begin, end)
    if step.collective == CollectiveKind.REDUCE:
        return column_reduce(step, grid, begin, end)
    return column_relay(step, grid, begin, end)
