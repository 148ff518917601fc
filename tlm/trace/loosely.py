"""What a loosely-timed run tells a recorder: spans from the clocks as an operation leaves them.

After an operation a tile's engine is free when the operation ended there, and its ejection port
when the transfer into it was written. Starts follow from how long an operation lasts. So two times
can be off. Of transfers of one operation into one tile all are told to arrive with the last. One
that full buffers hold back at its source is told to start later than it does.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.transfer_times import hold_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import Engine, Operation, Transfer, Work
from tlm.trace.recorder import EngineSpan, Recorder, TransferSpan

_Cycles = NDArray[np.int32] | NDArray[np.int64]


def note_operation(
    recorder: Recorder,
    timing: NocTiming,
    launch_cycles: int,
    number: int,
    operation: Operation,
    engine_end_cycle: _Cycles,
    last_arrival_cycle: _Cycles,
) -> None:
    """Tell of an operation at the tiles of the recorder's region.

    Args:
        recorder: Who is told.
        timing: Constants of the network.
        launch_cycles: From the start of a transfer to its first flit.
        number: Number of the operation in the program.
        operation: The operation that has just been done.
        engine_end_cycle: Shape (engines, rows, columns): when each engine is free now.
        last_arrival_cycle: Shape (rows, columns): when the last transfer into each was written.
    """
    if isinstance(operation, Work):
        _note_work(recorder, number, operation, engine_end_cycle)
        return
    assert isinstance(operation, Transfer)
    ends = engine_end_cycle[Engine.TRANSFER]
    hold = launch_cycles + hold_cycles(timing, operation.flits, multicast=operation.forks)
    label, region = operation.label, recorder.region
    for way in operation.ways(region):
        members = [*way.members]
        sources, targets = (members, [way.tile]) if way.inwards else ([way.tile], members)
        for source in sources:
            if source in region:
                end = int(ends[source])
                told = EngineSpan(number, label, Engine.TRANSFER, source, end - hold, end)
                recorder.operation(told)
        for target in targets:
            if target in region or sources[0] in region:
                ways = number, label, sources[0], target, operation.flits
                start, arrival = int(ends[sources[0]]) - hold, int(last_arrival_cycle[target])
                recorder.transfer(TransferSpan(*ways, start, arrival))


def _note_work(recorder: Recorder, number: int, work: Work, ends: _Cycles) -> None:
    tiles = work.tiles
    cycles = np.broadcast_to(np.asarray(work.cycles), (len(tiles.rows), len(tiles.cols)))
    for row, col in recorder.region:
        if (row, col) in tiles:
            lasted = int(cycles[tiles.rows.index(row), tiles.cols.index(col)])
            end = int(ends[work.engine, row, col])
            recorder.operation(
                EngineSpan(number, work.label, work.engine, (row, col), end - lasted, end)
            )
