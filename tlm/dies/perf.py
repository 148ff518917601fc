"""Collectives between dies at level `perf`: the laws of the links, with few packets a message.

Packets wait behind others at each die, and who waits is a matter of all messages together: no sum
over rounds or links meets it. So messages run over the same links as at level `lt`
(`tlm.dies.simulate`), in at most `MOST_PACKETS` packets each. They do so at sizes that are powers
of two, each once; between two of them times are interpolated.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from tlm.dies.collectives import EVEN, Shares, check_collective, collective, largest_size
from tlm.dies.links import DieMesh
from tlm.dies.messages import Int64s, Messages
from tlm.dies.simulate import simulate
from tlm.interconnect.lines import leaving, line_loads
from tlm.interconnect.packets import TileSet

#: Packets of a message at most: with twice as many times change by 2 % on average.
MOST_PACKETS = 16
#: No more than so far from level `lt`, in per cent of it: 10.3 of all-to-all on 4 to 64 dies.
WORST_PCT = 11.0


def collective_ticks(
    name: str, mesh: DieMesh, group: TileSet, size: int, shares: Shares = EVEN
) -> int:
    """Ticks of a collective (`tlm.dies.collectives`) at level `perf`.

    Raises:
        InputError: as `collective`.
    """
    check_collective(name, mesh, group, size)
    below = 1 << (size.bit_length() - 1)
    ticks = _run_ticks(name, mesh, group, below, shares)
    if size == below:
        return ticks
    above = min(2 * below, largest_size(mesh))
    more = _run_ticks(name, mesh, group, above, shares) - ticks
    return ticks + more * (size - below) // (above - below)


@lru_cache(1 << 12)
def _run_ticks(name: str, mesh: DieMesh, group: TileSet, size: int, shares: Shares) -> int:
    messages = collective(name, mesh, group, size, shares)
    return simulate(messages, coarse(mesh, int(messages.units.max()))).ticks


def coarse(mesh: DieMesh, units: int) -> DieMesh:
    """A mesh on which a message of so many units is at most `MOST_PACKETS` packets.

    Packets grow by powers of two. A link takes a packet only where there is room for all of it: a
    buffer of one packet more in whole packets lets links run at the rate that they had.
    """
    packet = mesh.packet_units
    while packet * MOST_PACKETS < units:
        packet *= 2
    if packet == mesh.packet_units:
        return mesh
    buffered = -(-mesh.buffer_units // packet) + 1
    return replace(mesh, packet_units=packet, buffer_units=buffered * packet)


def link_loads(messages: Messages, mesh: DieMesh) -> Int64s:
    """Units over the links to the north, east, south and west, shape (rows, columns, 4)."""
    row, col = np.divmod(messages.source, mesh.cols)
    to_row, to_col = np.divmod(messages.target, mesh.cols)
    east, west = line_loads(row, col, to_col, messages.units, (mesh.rows, mesh.cols))
    south, north = line_loads(to_col, row, to_row, messages.units, (mesh.cols, mesh.rows))
    return np.stack([leaving(north).T, east, south.T, leaving(west)], axis=-1)
