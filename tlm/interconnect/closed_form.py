"""The mesh as a performance model: zero-load latency plus the mean wait at each link.

Each link on a packet's X-first way is taken as a queue with random arrivals and packets of the mean
length (M/D/1): mean wait = load x packet / (2 (1 - load)). Packets that share several links are
taken to meet anew at each, which they do not, and nothing is known of back-pressure: it is meant
for light loads. Where whole flows share their way (transpose) even those come out far too high.

Where channels are locked, a message is three packets, and each of them waits on its way. Lengths
then differ, so what is met is the mean of squares over that of lengths (M/G/1). At an interface an
acknowledge waits behind the data that its tile is sending.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError
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

    Raises:
        InputError: for routers that send packets along columns first.
    """
    assert (packets.kind == PacketKind.UNICAST).all(), "the closed form knows unicasts only"
    if timing.y_first:
        raise InputError("closed form: found packets along columns first; allowed: rows first")
    flows = _flows(packets, cols, timing)
    wait = _waits(flows, rows, cols, cycles)
    if timing.locks:
        wait += _answer_waits(packets, rows, cols, cycles)
    node = packets.row_first * cols + packets.col_first
    way = _ways(packets, cols)
    behind = (packets.flits - 1) * np.where(way > 0, timing.link_interval_cycles, 1)
    head = timing.head_cycles(way) + np.rint(wait).astype(np.int64)
    held = timing.set_up_cycles(way)
    return Deliveries(
        head_injected=packets.cycle,
        tail_injected=packets.cycle + packets.flits - 1 + np.where(packets.flits > 1, held, 0),
        packet=np.arange(len(packets)),
        node=node,
        head_ejected=packets.cycle + head,
        tail_ejected=packets.cycle + head + behind,
    )


def _ways(packets: Packets, cols: int) -> Int64s:
    """Links on each packet's way."""
    return hops(np.divmod(packets.source, cols), (packets.row_first, packets.col_first))


def _flows(packets: Packets, cols: int, timing: NocTiming) -> list[Packets]:
    """What crosses the network for packets: themselves, and what sets up their channels."""
    if not timing.locks:
        return [packets]
    one = np.ones_like(packets.flits)
    row, col = np.divmod(packets.source, cols)
    back = replace(
        packets,
        source=packets.row_first * cols + packets.col_first,
        row_first=row,
        row_last=row,
        col_first=col,
        col_last=col,
        flits=one,
    )
    return [packets, replace(packets, flits=one), back]


def highest_load(packets: Packets, rows: int, cols: int, cycles: int, timing: NocTiming) -> float:
    """Share of the cycles in which the busiest link, port or interface would be busy.

    Links and ports take a flit a cycle. An interface has one message from its head's coming to its
    tail's going.
    """
    loads = _loads(_flows(packets, cols, timing), rows, cols)
    if timing.locks:
        busy = np.zeros(rows * cols, dtype=np.int64)
        np.add.at(busy, packets.source, timing.set_up_cycles(_ways(packets, cols)) + packets.flits)
        loads.append(busy)
    return max(float(load.max()) for load in loads) / cycles


def _loads(flows: list[Packets], rows: int, cols: int) -> list[Int64s]:
    """Flits over the links east, west, south and north, and through the ejection ports.

    Links are those of `line_loads`; south and north have shape (columns, rows).
    """
    each = [_load(packets, rows, cols) for packets in flows]
    return [np.sum(loads, axis=0) for loads in zip(*each, strict=True)]


def _load(packets: Packets, rows: int, cols: int) -> tuple[Int64s, ...]:
    row, col = packets.source // cols, packets.source % cols
    to_row, to_col = packets.row_first, packets.col_first
    along_rows = line_loads(row, col, to_col, packets.flits, (rows, cols))
    along_cols = line_loads(to_col, row, to_row, packets.flits, (cols, rows))
    port = np.zeros((rows, cols), dtype=np.int64)
    np.add.at(port, (to_row, to_col), packets.flits)
    return *along_rows, *along_cols, port


def _waits(flows: list[Packets], rows: int, cols: int, cycles: int) -> NDArray[np.float64]:
    """Mean wait of each packet, and of those that set it up, on its way and at the end of it."""
    *links, port = _loads(flows, rows, cols)
    met = _met_flits(flows)
    tables = [_wait_sums(load / cycles, met) for load in links]
    ejection = _wait(port / cycles, met)
    waits = np.array([_way_waits(each, cols, tables, ejection) for each in flows])
    result: NDArray[np.float64] = waits.sum(axis=0)
    return result


def _met_flits(flows: list[Packets]) -> float:
    """Mean flits of what is met on a link: of packets alike, or of flows of different ones."""
    flits = np.concatenate([each.flits for each in flows])
    if not len(flits):
        return 0.0
    if len(flows) == 1:
        return float(flits.mean())
    return float((flits**2).sum() / flits.sum())


def _way_waits(
    packets: Packets, cols: int, links: list[NDArray[np.float64]], port: NDArray[np.float64]
) -> NDArray[np.float64]:
    row, col = packets.source // cols, packets.source % cols
    to_row, to_col = packets.row_first, packets.col_first
    east, west, south, north = links
    along_row = np.where(
        to_col > col, east[row, to_col] - east[row, col], west[row, col] - west[row, to_col]
    )
    along_column = np.where(
        to_row > row,
        south[to_col, to_row] - south[to_col, row],
        north[to_col, row] - north[to_col, to_row],
    )
    ejection: NDArray[np.float64] = port[to_row, to_col]
    result: NDArray[np.float64] = along_row + along_column + ejection
    return result


def _answer_waits(packets: Packets, rows: int, cols: int, cycles: int) -> NDArray[np.float64]:
    """Mean wait of each packet's acknowledge behind the data that its sender is sending."""
    data = np.zeros(rows * cols, dtype=np.int64)
    np.add.at(data, packets.source, packets.flits)
    receiver = packets.row_first * cols + packets.col_first
    result: NDArray[np.float64] = _wait(data / cycles, _met_flits([packets, packets]))[receiver]
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
