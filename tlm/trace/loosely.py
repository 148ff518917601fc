"""What a loosely-timed run tells a recorder: spans from the clocks as an operation leaves them.

After an operation a tile's engine is free when the operation ended there, and its ejection port
when the transfer into it was written. Starts follow from how long an operation lasts. So two times
can be off: of transfers of one operation into one tile all are told to arrive with the last, and
one that full buffers hold back at its source is told to start later than it does.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tlm.engines.transfer_times import hold_cycles
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import (
    Engine,
    Indices,
    Multicast,
    Reduce,
    Send,
    TileOperation,
    TileTransfer,
    Work,
    root_tiles,
    segment_of,
)
from tlm.trace.recorder import Recorder, Tile

_Cycles = NDArray[np.int32] | NDArray[np.int64]


def note_operation(
    recorder: Recorder,
    timing: NocTiming,
    launch_cycles: int,
    number: int,
    operation: TileOperation,
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
    ends = engine_end_cycle[Engine.TRANSFER]
    forks = isinstance(operation, Multicast) and len(operation.segment) > 1
    hold = launch_cycles + hold_cycles(timing, operation.flits, multicast=forks)
    label, region = operation.label, recorder.region
    for sources, targets in _transfers(operation, region):
        for source in sources:
            if _inside(region, source):
                end = int(ends[source])
                recorder.operation(number, label, Engine.TRANSFER, source, end - hold, end)
        for target in targets:
            if _inside(region, target) or _inside(region, sources[0]):
                start, arrival = int(ends[sources[0]]) - hold, int(last_arrival_cycle[target])
                recorder.transfer(
                    number, label, sources[0], target, operation.flits, start, arrival
                )


def _note_work(recorder: Recorder, number: int, work: Work, ends: _Cycles) -> None:
    tiles, region = work.tiles, recorder.region
    cycles = np.broadcast_to(np.asarray(work.cycles), (len(tiles.rows), len(tiles.cols)))
    for row in region.rows:
        for col in region.cols:
            if row in tiles.rows and col in tiles.cols:
                lasted = int(cycles[tiles.rows.index(row), tiles.cols.index(col)])
                end = int(ends[work.engine, row, col])
                recorder.operation(number, work.label, work.engine, (row, col), end - lasted, end)


def _transfers(operation: TileTransfer, region: TileSet) -> Iterator[tuple[list[Tile], list[Tile]]]:
    """Sources and targets of the transfers that may concern the region."""
    if isinstance(operation, Send):
        tiles = operation.tiles
        rows = _near(tiles.rows, operation.to_rows, region.rows)
        cols = _near(tiles.cols, operation.to_cols, region.cols)
        for row, to_row in rows:
            for col, to_col in cols:
                yield [(row, col)], [(to_row, to_col)]
        return
    lines = region.rows if operation.along == "row" else region.cols
    for root in root_tiles(operation):
        if root[0 if operation.along == "row" else 1] in lines:
            part = segment_of(operation, *root)
            members = [(row, col) for row in part.rows for col in part.cols]
            yield (members, [root]) if isinstance(operation, Reduce) else ([root], members)


def _near(sources: range, targets: Indices, places: range) -> list[tuple[int, int]]:
    """Sources and targets of which one lies at one of some places."""
    pairs = zip(sources, targets.tolist(), strict=True)
    return [pair for pair in pairs if pair[0] in places or pair[1] in places]


def _inside(region: TileSet, tile: Tile) -> bool:
    return tile[0] in region.rows and tile[1] in region.cols
