"""The stages of an iteration, its time and its energy, compiled."""

import numpy as np

from tlm.compiled import Numbers, compiled
from workloads.serving.engine.budgeted.state import (
    ENERGY_UNIT,
    Field,
    Queues,
    RequestColumns,
    Rules,
    StagePrices,
)
from workloads.serving.load.traces import PS_PER_S
from workloads.serving.price.stage_cells import attended_cell, decoded_cell, head_cell, passed_cell
from workloads.serving.result.usage import PJ_PER_J

_PS_PER_S, _PJ_PER_J = float(PS_PER_S), float(PJ_PER_J)


@compiled
def stages_of(at: Numbers[int], requests: RequestColumns, queues: Queues) -> int:
    """Write down the cells of an iteration's stages, in their order; returns how many."""
    decoding, chunks, cells = at[Field.DECODING], at[Field.CHUNKS], queues.cells
    tokens = decoding
    for number in range(chunks):
        one, new = queues.chunks[number, 0], queues.chunks[number, 1]
        tokens += new
        cells[1 + number] = attended_cell(new, requests.prefilled[one])
    cells[0] = passed_cell(tokens)
    count = 1 + chunks
    if decoding:
        cells[count] = decoded_cell(decoding, -(-at[Field.CONTEXT] // decoding))
        count += 1
    if decoding + at[Field.COMPLETE]:
        cells[count] = head_cell(decoding + at[Field.COMPLETE])
        count += 1
    return count


@compiled
def duration_of(
    at: Numbers[int], prices: StagePrices, queues: Queues, stages: int, rules: Rules
) -> int:
    """Time of the iteration whose stages are written down; below 0 if one has no price."""
    cycles = 0.0
    for stage in range(stages):
        cell = queues.cells[stage]
        if not prices.is_known[cell]:
            at[Field.CELL] = cell
            return -1
        cycles += prices.cycles[cell]
    return int(np.rint(cycles / rules.clock_hz * _PS_PER_S))


@compiled
def spend(at: Numbers[int], prices: StagePrices, queues: Queues, stages: int, times: int) -> None:
    """Count the stages that are written down, and their energy, as often."""
    joules = 0.0
    for stage in range(stages):
        cell = queues.cells[stage]
        prices.times[cell] += times
        joules += prices.joules[cell]
    if np.isnan(joules):
        at[Field.ENERGY_UNKNOWN] = 1
        return
    at[Field.ENERGY_PJ] += int(np.rint(joules * _PJ_PER_J)) * times
    at[Field.ENERGY_UNITS] += at[Field.ENERGY_PJ] // ENERGY_UNIT
    at[Field.ENERGY_PJ] %= ENERGY_UNIT
