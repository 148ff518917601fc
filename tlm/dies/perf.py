"""Collectives between dies at level `perf`: the laws of the links, for as few packets as will do.

Packets wait behind others at each die, and who waits is a matter of all messages together: no sum
over rounds or links meets it. So messages run over the same links as at level `lt`
(`tlm.dies.simulate`), at sizes that are powers of two, each once. Others lie on a line through two
of them. Few messages run up to a size from which on each byte takes as long as the one before; of
many messages each has a few large packets.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from tlm.dies.collectives import WHOLE, Dealt, check_collective, collective, largest_size
from tlm.dies.links import DieMesh
from tlm.dies.messages import Int64s, Messages
from tlm.dies.simulate import simulate
from tlm.interconnect.lines import leaving, line_loads
from tlm.interconnect.packets import TileSet

#: Packets of a message at most, of many that are equal: with twice as many times change by 2 %.
MOST_PACKETS = 16
#: Packets of all messages together, and of each at least, where those that are run are as they are.
_MOST_IN_ALL, _LEAST_OF_EACH = 2**16, 2**7
#: Per cent of level `lt` that is counted, above the worst of drawn all-to-alls (docs/dies.md): of
#: as many dies as a power of two, from 8 on, 10.6 in 1,691; of fewer, whose links are full or idle
#: together, and of other numbers, by which tokens do not divide, 30.2 in 7,800.
_MOST_PCT, _MOST_UNEVEN_PCT = 11.0, 31.0
_FEW_DIES = 4


def collective_ticks(
    name: str, mesh: DieMesh, group: TileSet, size: int, dealt: Dealt = WHOLE
) -> int:
    """Ticks of a collective (`tlm.dies.collectives`) at level `perf`.

    Raises:
        InputError: as `collective`.
    """
    check_collective(name, mesh, group, size)
    below, most = _power_of_two(size), _followed(name, mesh, group)
    if most:
        below = min(below, most // 2)
    ticks = _run_ticks(name, mesh, group, below, dealt)
    if size == below:
        return ticks
    above = min(2 * below, largest_size(mesh))
    more = _run_ticks(name, mesh, group, above, dealt) - ticks
    return ticks + more * (size - below) // (above - below)


def worst_pct(group: TileSet) -> float:
    """No more than so far from level `lt`, in per cent of it."""
    dies = len(group)
    is_even = dies > _FEW_DIES and _power_of_two(dies) == dies
    return _MOST_PCT if is_even else _MOST_UNEVEN_PCT


def _power_of_two(size: int) -> int:
    """The largest one that is no more."""
    return 1 << (size.bit_length() - 1)


@lru_cache(1 << 10)
def _followed(name: str, mesh: DieMesh, group: TileSet) -> int:
    """The size up to which messages run packet by packet, if these are few; else 0."""
    packets = _MOST_IN_ALL // len(collective(name, mesh, group, 1))
    return 0 if packets < _LEAST_OF_EACH else _power_of_two(packets * mesh.packet_units)


@lru_cache(1 << 12)
def _run_ticks(name: str, mesh: DieMesh, group: TileSet, size: int, dealt: Dealt) -> int:
    if not _followed(name, mesh, group):
        mesh = coarse(mesh, int(collective(name, mesh, group, size).units.max()))
        if dealt.piece:
            dealt = dealt._replace(piece=max(dealt.piece, mesh.packet_units))
    return simulate(collective(name, mesh, group, size, dealt), mesh).ticks


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
