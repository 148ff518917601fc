"""Collectives between dies at level `perf`: closed forms from the parameters of the links.

All-to-all and hand-over: the k-th messages of all dies form a round, which lasts as long as its
busiest link or port; the longest way is added as latency. Packets that stand in each other's way
are not known of. All-gather and all-reduce: as many steps along each line as it has dies but one;
in each a block goes to the neighbour, and inner dies get and send two.
"""

import numpy as np

from tlm.dies.collectives import collective
from tlm.dies.links import DieMesh
from tlm.dies.messages import Int64s, Messages
from tlm.interconnect.lines import hops, leaving, line_loads
from tlm.interconnect.packets import TileSet


def collective_ticks(name: str, mesh: DieMesh, group: TileSet, size: int) -> int:
    """Ticks of a collective (`tlm.dies.collectives`) by its closed form.

    Raises:
        InputError: as `collective`.
    """
    if name not in ("all-gather", "all-reduce"):
        return _routed_ticks(collective(name, mesh, group, size), mesh)
    rows, cols = len(group.rows), len(group.cols)
    if name == "all-gather":
        return _line_ticks(mesh, cols, size) + _line_ticks(mesh, rows, size * cols)
    per_row = -(-size // cols)
    per_die = -(-per_row // rows)
    return 2 * (_line_ticks(mesh, cols, per_row) + _line_ticks(mesh, rows, per_die))


def _line_ticks(mesh: DieMesh, dies: int, size: int) -> int:
    at_ports = size * mesh.port_ticks_per_unit * (2 if dies > 2 else 1)
    block = max(mesh.link_ticks(size), at_ports)
    return (dies - 1) * (mesh.hop_ticks + mesh.ejection_ticks + block)


def _routed_ticks(messages: Messages, mesh: DieMesh) -> int:
    # Messages of one source keep their order, so the round of each is its place among them.
    order = np.argsort(messages.source, kind="stable")
    firsts = np.searchsorted(messages.source[order], messages.source[order])
    rounds = np.zeros_like(order)
    rounds[order] = np.arange(len(order)) - firsts
    busiest = sum(
        _round_ticks(messages.part(rounds == number), mesh) for number in range(rounds.max() + 1)
    )
    ends = (np.divmod(dies, mesh.cols) for dies in (messages.source, messages.target))
    longest = int(hops(*ends).max())
    return busiest + longest * mesh.hop_ticks + mesh.ejection_ticks


def _round_ticks(messages: Messages, mesh: DieMesh) -> int:
    links = int(link_loads(messages, mesh).max(initial=0))
    ports = max(
        int(np.bincount(dies, messages.units).max()) for dies in (messages.source, messages.target)
    )
    return max(mesh.link_ticks(links), ports * mesh.port_ticks_per_unit)


def link_loads(messages: Messages, mesh: DieMesh) -> Int64s:
    """Units over the links to the north, east, south and west, shape (rows, columns, 4)."""
    row, col = np.divmod(messages.source, mesh.cols)
    to_row, to_col = np.divmod(messages.target, mesh.cols)
    east, west = line_loads(row, col, to_col, messages.units, (mesh.rows, mesh.cols))
    south, north = line_loads(to_col, row, to_row, messages.units, (mesh.cols, mesh.rows))
    return np.stack([leaving(north).T, east, south.T, leaving(west)], axis=-1)
