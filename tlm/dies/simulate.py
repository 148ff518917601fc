"""Running messages over the links of a wafer."""

from dataclasses import dataclass

import numpy as np

from tlm.dies.core import run
from tlm.dies.links import DieMesh
from tlm.dies.messages import Int64s, Messages
from tlm.dies.queues import new_queues
from tlm.dies.state import PORTS, DiePlace, Message, new_state
from tlm.errors import InputError
from tlm.interconnect.lines import MeshPort

_MOST_PACKETS = 2**24


@dataclass(frozen=True, slots=True)
class DieTraffic:
    """What became of messages.

    Attributes:
        sent: Shape (messages,): tick at which each might be sent.
        arrived: Shape (messages,): tick at which its last unit had arrived.
        link_units: Shape (rows, columns, 4): units over the links to the north, east, south, west.
    """

    sent: Int64s
    arrived: Int64s
    link_units: Int64s

    @property
    def ticks(self) -> int:
        """When the last message had arrived."""
        return int(self.arrived.max(initial=0))


def simulate(messages: Messages, mesh: DieMesh) -> DieTraffic:
    """Run messages packet by packet (`tlm.dies.core`).

    Memory is 40 bytes for each packet.

    Raises:
        InputError: for messages that do not fit the mesh, or are too many to run.
    """
    _check(messages, mesh)
    packets = -(-messages.units // mesh.packet_units)
    if packets.sum() > _MOST_PACKETS:
        raise InputError(
            f"messages of {packets.sum()} packets; allowed: {_MOST_PACKETS}, or larger packets"
        )
    state = new_state(messages, mesh)
    most = mesh.packet_units
    sizes = np.union1d(np.minimum(messages.units, most), (messages.units - 1) % most + 1)
    run(state, new_queues(len(sizes)))
    missing, sent, arrived = state.messages.T[[Message.MISSING, Message.SENT, Message.ARRIVED]]
    assert not missing.any(), "dimension-ordered packets cannot hold each other up for ever"
    units = state.places[:, DiePlace.UNITS].reshape(mesh.rows, mesh.cols, PORTS)
    return DieTraffic(sent, arrived, units[..., MeshPort.NORTH :])


def _check(messages: Messages, mesh: DieMesh) -> None:
    ends = np.concatenate([messages.source, messages.target])
    if ((ends < 0) | (ends >= mesh.dies)).any():
        raise InputError(f"messages leave the mesh of {mesh.rows}x{mesh.cols} dies")
    if (messages.source == messages.target).any() or (messages.units < 1).any():
        raise InputError("messages: found one to its own die, or without data; allowed: neither")
    if (messages.before >= messages.after).any():
        raise InputError("messages: found one that waits for a later one; allowed: earlier ones")
