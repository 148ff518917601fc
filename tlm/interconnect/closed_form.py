"""The mesh as a performance model: zero-load latency plus the mean wait at each link.

Each link on a packet's X-first way is taken as a queue with random arrivals and packets of the mean
length (M/D/1): mean wait = load x packet / (2 (1 - load)). Packets that share several links are
taken to meet anew at each, which they do not, and nothing is known of back-pressure: it is meant
for light loads. Where whole flows share their way (transpose) even those come out far too high.
"""

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.lines import hops, line_loads
from tlm.interconnect.packets import Deliveries, Int64s, PacketKind, Packets
from tlm.interconnect.zero_load import NocTiming

_HIGHEST_LOAD = 0.99


def estimate(packets: Packets, rows: int, cols: int, cycles: int, timing: NocTiming) -> Deliveries:
    """Deliveries of unicast packets at their mean times, one a packet.

    Args:
        packets: Unicast packets created over ``cycles``.
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        cycles: Cycles over which the packets were created.
        timing: Measured constants of the router.
    """
    assert (packets.kind == PacketKind.UNICAST).all(), "the closed form knows unicasts only"
    wait = _waits(packets, rows, cols, cycles)
    node = packets.row_first * cols + packets.col_first
    way = hops(np.divmod(packets.source, cols), (packets.row_first, packets.col_first))
    head = timing.ejection_cycles + way * timing.hop_cycles
    tail = head + packets.flits - 1 + np.rint(wait).astype(np.int64)
    return Deliveries(
        head_injected=packets.cycle,
        tail_injected=packets.cycle + packets.flits - 1,
        packet=np.arange(len(packets)),
        node=node,
        head_ejected=packets.cycle + tail - packets.flits + 1,
        tail_ejected=packets.cycle + tail,
    )


def highest_load(packets: Packets, rows: int, cols: int, cycles: int) -> float:
    """Flits a cycle over the busiest link or ejection port, if it could take any number."""
    return max(float(load.max()) for load in _loads(packets, rows, cols)) / cycles


def _loads(packets: Packets, rows: int, cols: int) -> tuple[Int64s, ...]:
    """Flits over the links east, west, south and north, and through the ejection ports.

    Links are those of `line_loads`; south and north have shape (columns, rows).
    """
    row, col = packets.source // cols, packets.source % cols
    to_row, to_col = packets.row_first, packets.col_first
    along_rows = line_loads(row, col, to_col, packets.flits, (rows, cols))
    along_cols = line_loads(to_col, row, to_row, packets.flits, (cols, rows))
    port = np.zeros((rows, cols), dtype=np.int64)
    np.add.at(port, (to_row, to_col), packets.flits)
    return *along_rows, *along_cols, port


def _waits(packets: Packets, rows: int, cols: int, cycles: int) -> NDArray[np.float64]:
    """Mean wait of each packet over the links and the ejection port of its way."""
    row, col = packets.source // cols, packets.source % cols
    to_row, to_col = packets.row_first, packets.col_first
    *links, port = _loads(packets, rows, cols)
    mean_flits = float(packets.flits.mean())
    east, west, south, north = (_wait_sums(load / cycles, mean_flits) for load in links)
    along_row = np.where(
        to_col > col, east[row, to_col] - east[row, col], west[row, col] - west[row, to_col]
    )
    along_column = np.where(
        to_row > row,
        south[to_col, to_row] - south[to_col, row],
        north[to_col, row] - north[to_col, to_row],
    )
    ejection: NDArray[np.float64] = _wait(port / cycles, mean_flits)[to_row, to_col]
    result: NDArray[np.float64] = along_row + along_column + ejection
    return result


def _wait(load: NDArray[np.float64], mean_flits: float) -> NDArray[np.float64]:
    bounded = np.minimum(load, _HIGHEST_LOAD)
    result: NDArray[np.float64] = bounded * mean_flits / (2 * (1 - bounded))
    return result


def _wait_sums(load: NDArray[np.float64], mean_flits: float) -> NDArray[np.float64]:
    """Waits summed along each line, so that a way's wait is a difference of two entries."""
    waits = _wait(load, mean_flits)
    sums = np.zeros_like(waits)
    sums[:, 1:] = np.cumsum(waits, axis=1)[:, :-1]
    return sums
