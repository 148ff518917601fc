"""All that is known of packets on a mesh of dies while they move.

Every die has five inputs and five outputs, numbered by `MeshPort`. The place of one is its die
times `PORTS`, plus its port.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tlm.dies.links import DieMesh
from tlm.dies.messages import Int64s, Messages
from tlm.interconnect.lines import MeshPort

NONE = -1
PORTS = len(MeshPort)


class Law(NamedTuple):
    """Fields of `DieMesh`, for compiled code."""

    ticks_per_unit: int
    port_ticks_per_unit: int
    hop_ticks: int
    ejection_ticks: int
    credit_ticks: int


class Message(IntEnum):
    """Columns of a message."""

    SOURCE = 0  # die
    FIRST_PACKET = 1
    MISSING = 2  # packets that have not arrived
    WAITS = 3  # messages that it still waits for
    FIRST_FOLLOWER = 4  # where those that wait for it begin among `DieMeshState.followers`
    FOLLOWERS_END = 5  # and end
    SENT = 6  # time from which it may be sent
    ARRIVED = 7  # time at which its last unit so far has arrived


class DiePacket(IntEnum):
    """Columns of a packet."""

    MESSAGE = 0  # that it belongs to
    NEXT = 1  # packet behind it in the queue of an input, or NONE
    TARGET = 2  # die; beside its message's, as each hop asks for it
    UNITS = 3


class DiePlace(IntEnum):
    """Columns of a place: of its input, and of its output."""

    FIRST = 0  # packet at the head of the input's queue, or NONE; a die's queue is unbounded
    LAST = 1  # packet at its end
    WANTED = 2  # port by which the first packet leaves, or NONE
    INPUT_FREE = 3  # time from which another packet can leave the input
    OUTPUT_FREE = 4  # time from which another packet can leave by the output
    TURN = 5  # port of the input that is the first in line, or PORTS for `MeshPort.LOCAL`
    ROOM = 6  # units for which the next die is known to have room
    UNITS = 7  # that have left by the output
    FIRST_UNITS = 8  # of the first packet


class Die(IntEnum):
    """Columns of a die: where it is, as to divide takes longer than to look it up."""

    ROW = 0
    COL = 1


class DieEvent(IntEnum):
    """Columns of an event."""

    TIME = 0
    NAME = 1  # its place times the number of kinds, plus its kind
    WHAT = 2  # packet, units or message


class Came(IntEnum):
    """Numbers of events that came up of late."""

    COUNT = 0  # how many there are
    ENTERED = 1  # of these, those that wait for their time
    BEGUN = 2  # of messages, those that may have been sent as all began


class DieMeshState(NamedTuple):
    """A mesh, its messages and their packets."""

    law: Law
    messages: Int64s  # [messages, Message]
    packets: Int64s  # [packets, DiePacket]
    places: Int64s  # [dies * PORTS, DiePlace]
    dies: Int64s  # [dies, Die]
    across: Int64s  # [PORTS]: from a port's place to that at the other end of its link
    followers: Int64s  # messages that wait for one, behind those that wait for the one before
    events: Int64s  # [events, DieEvent]: those that came up of late
    came_up: Int64s  # [Came]


def new_state(messages: Messages, mesh: DieMesh) -> DieMeshState:
    """Messages of which nothing has been sent."""
    count = len(messages)
    table = np.zeros((count, len(Message)), dtype=np.int64)
    packets = -(-messages.units // mesh.packet_units)
    order = np.argsort(messages.before, kind="stable")
    followers = np.searchsorted(messages.before[order], np.arange(count + 1))
    table[:, Message.SOURCE], table[:, Message.MISSING] = messages.source, packets
    table[:, Message.FIRST_PACKET] = np.cumsum(packets) - packets
    table[:, Message.WAITS] = np.bincount(messages.after, minlength=count)
    table[:, Message.FIRST_FOLLOWER] = followers[:-1]
    table[:, Message.FOLLOWERS_END] = followers[1:]
    places = np.zeros((mesh.dies * PORTS, len(DiePlace)), dtype=np.int64)
    places[:, [DiePlace.FIRST, DiePlace.WANTED]] = NONE
    places[:, DiePlace.ROOM] = mesh.buffer_units
    queued = np.empty((packets.sum(), len(DiePacket)), dtype=np.int64)
    queued[:, DiePacket.MESSAGE] = np.repeat(np.arange(count), packets)
    queued[:, DiePacket.NEXT] = NONE
    queued[:, DiePacket.TARGET] = np.repeat(messages.target, packets)
    queued[:, DiePacket.UNITS] = mesh.packet_units
    # The last packet of a message takes what is left.
    left = messages.units - (packets - 1) * mesh.packet_units
    queued[np.cumsum(packets) - 1, DiePacket.UNITS] = left
    return DieMeshState(
        law=Law(*(getattr(mesh, field) for field in Law._fields)),
        messages=table,
        packets=queued,
        places=places,
        dies=np.stack(np.divmod(np.arange(mesh.dies), mesh.cols), axis=1),
        across=_across(mesh.cols),
        followers=messages.after[order],
        events=np.zeros((count + 4 * PORTS, len(DieEvent)), dtype=np.int64),
        came_up=np.zeros(len(Came), dtype=np.int64),
    )


def _across(cols: int) -> Int64s:
    """`DieMeshState.across`; 0 of `MeshPort.LOCAL`."""
    across = np.zeros(PORTS, dtype=np.int64)
    for port, other, dies in (
        (MeshPort.NORTH, MeshPort.SOUTH, -cols),
        (MeshPort.EAST, MeshPort.WEST, 1),
        (MeshPort.SOUTH, MeshPort.NORTH, cols),
        (MeshPort.WEST, MeshPort.EAST, -1),
    ):
        across[port] = dies * PORTS + other - port
    return across
