"""What the meshes are given, and how much work that is."""

import numpy as np

from tlm.interconnect.packets import Int64s, PacketKind, Packets
from tlm.interconnect.traffic import Traffic

FLITS = 5
RATE = 0.15  # flits a node a cycle
_ROW_CHANCE = 0.01  # multicasts of a row a cycle


def uniform(rows: int, cols: int, packets: int, flits: int, seed: int) -> Packets:
    """Uniform traffic of about so many packets."""
    cycles = max(1, round(packets * flits / (RATE * rows * cols)))
    return Traffic(rows, cols, "uniform", RATE, flits, cycles, seed).packets()


def neighbours_and_rows(rows: int, cols: int, cycles: int, seed: int) -> Packets:
    """Neighbour traffic, and in every row now and then a multicast from its first tile to the rest.

    The share of the multicasts in the packet-hops is the same for every number of columns.
    """
    pairs = Traffic(rows, cols, "neighbor", RATE, FLITS, cycles, seed).packets()
    rng = np.random.default_rng(seed + 1)
    cycle, row = np.nonzero(rng.random((cycles, rows)) < _ROW_CHANCE)
    one = np.ones(len(cycle), dtype=np.int64)
    spread = [cycle, row * cols, FLITS * one, PacketKind.MULTICAST * one, row, row, one]
    spread += [one, (cols - 1) * one, one, -one, one]
    columns = [np.concatenate(both) for both in zip(pairs.columns(), spread, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    columns = [column[order] for column in columns]
    columns[-1] = np.arange(len(order))
    return Packets(*columns)


def packet_hops(packets: Packets, cols: int) -> Int64s:
    """Links that each packet crosses, and ejections; shape (packets,).

    Packets go along the row first. A multicast goes along its sender's row as far as its outermost
    columns, and along each of its columns as far as its outermost rows; a tile among its own
    destinations gets a copy. Operands of reductions are none of these.
    """
    row, col = np.divmod(packets.source, cols)
    across = np.maximum(packets.col_last, col) - np.minimum(packets.col_first, col)
    along = np.maximum(packets.row_last, row) - np.minimum(packets.row_first, row)
    columns = (packets.col_last - packets.col_first) // packets.col_step + 1
    hops: Int64s = across + columns * along + packets.destination_counts()
    return hops
