"""Records of the compiled mesh: all that is known of it, in one array.

A record is named by its address, the index of its first column, and records name each other so:
``m[m[buffer + Buffer.NODE] + Node.ROW]``. state.py lays them out, places.py finds one from another.
Beside the array are the packets and what was delivered, tables that grow.

Nodes stand one after the other, each with its outputs, its unit and its buffers, in whole lines of
a cache. On a large mesh nearly every line that a packet-hop touches has to come from memory: what
all hops need of a buffer is in one line, and of an output in half a line.

Ports are numbered by `MeshPort`. At an output the inputs, and as number 5 the registers behind the
reduction unit, are the requesters.
"""

from enum import IntEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.lines import MeshPort
from tlm.unchecked import Unchecked

# Times are 32 bits wide, as all columns: half of the memory is twice of what caches hold.
LATEST = 2**30  # packets come before this cycle
NEVER = 2**31 - 1  # a time that is not known, or does not come
LONG_AGO = -(2**30)
DUE = -2  # the time of a start that is in this cycle

PORTS = len(MeshPort)
# Slots of a node's buffers: 0 to 4 are the inputs. Without reductions and output buffers there are
# no others.
OPERANDS = 5  # first of the inputs' buffers for operands of reductions, unless these share theirs
RESULT = 10  # the registers behind the reduction unit
OUTPUTS = 11  # first of the outputs' buffers
SLOTS = 16

ROUND = 1024  # cycles of the wheel
LINE = 16  # columns of a cache's line of 64 bytes
HEADER_COLUMNS = 128
OUTPUT_COLUMNS = 8
EVENT_COLUMNS = 4
PACKET_COLUMNS = 16
DELIVERY_COLUMNS = 4
RUN_COLUMNS = 4
RING_COUNT = 4

Int32s = NDArray[np.int32]
Address = int  # a record's first column
Records = Annotated[Int32s, Unchecked()]
Table = Annotated[Int32s, Unchecked(PACKET_COLUMNS)]
DeliveryTable = Annotated[Int32s, Unchecked(DELIVERY_COLUMNS)]


class Mesh(IntEnum):
    """The first record."""

    CLOCK = 0  # the cycle to simulate, or that is simulated
    PENDING = 1  # events to come
    UNUSED = 2  # the first event that is none
    OWED = 3  # deliveries to come
    REPORTING = 4  # whether the caller wants reports
    REPORTED = 5  # how many there are
    MARKS = 6  # outputs listed to be looked at
    STARTS = 7  # reduction units listed
    TOP = 8  # buffers listed
    DEPTH = 9  # places of an input's buffer
    OUTPUT_DEPTH = 10  # places of the buffer of an output to a link
    MASK = 11  # R - 1, where rings have R places
    REGISTERS = 12  # flits of results that a reduction unit holds
    Y_FIRST = 13  # whether packets go along the column first
    CUT_THROUGH = 14  # whether a branch waits for room for the whole packet
    LOOPBACK = 15  # whether a multicast's sender may be among its destinations
    WHEEL = 16  # where the wheel begins: in each of ROUND places the first of its events
    MARKED = 17  # where the list of outputs begins
    STARTING = 18  # where the list of nodes with a unit that may start begins
    STACK = 19  # where the list of buffers begins
    REPORTS = 20  # where the reports begin: a `What` and its packet or delivery each
    NODES = 21  # where the nodes begin
    NODE_COUNT = 22
    NODE_SIZE = 23  # columns
    BUFFER_SIZE = 24  # columns
    RING_SIZE = 25  # columns: 2 R
    EVENTS_END = 26
    FORK = 27  # a `Fork`
    ARBITER = 28  # an `Arbiter`
    TURNAROUND = 29  # cycles that an output idles after a tail
    LINK_INTERVAL = 30  # cycles from flit to flit on a link
    UNIT_INTERVAL = 31  # the same in a reduction unit
    OPERAND_SLOT = 32  # first slot of the buffers in which operands wait: 0 or OPERANDS
    LATE_LOCK = 33  # whether an output is held only from the first flit on
    PLACE_OF = 34  # place in line at an output, by requester
    AT_PLACE = 40  # requester, by place in line
    TILE_DEPTH = 46  # places of the buffer of an output to a tile
    TILED = 47  # whether tiles say of each flit when it goes in and when it comes out
    PLACES = 48  # a buffer's places, by slot
    LATENCY = 64  # cycles from a flit's coming to its leaving for a link, by slot
    EJECTION = 80  # the same for the tile, by slot
    RETURN = 96  # cycles from a flit's leaving until its place can be filled, by slot
    CHANNEL = 112  # a `Channel`
    CONTROLS = 113  # packets before the first message: a request and an acknowledge of each node
    REQUEST_AFTER = 114  # cycles from a head's coming into the interface to its request
    ACKNOWLEDGE_AFTER = 115  # from a request's arrival to its acknowledge
    DATA_AFTER = 116  # from an acknowledge's arrival to the first data flit
    UNIT_CHOICE = 117  # a `UnitChoice`
    UNIT_ARBITER = 118  # the `Arbiter` of its inputs
    UNIT_LATE_LOCK = 119  # whether a unit is a reduction's only from its first result on
    STREAM_FROM = 120  # fewer flits of a message are not looked at to pass at once


class Fork(IntEnum):
    """How a router sends a multicast, as `zero_load.FORKS`."""

    OWN_PACE = 0
    FLIT_BY_FLIT = 1
    LOCKSTEP = 2


class Channel(IntEnum):
    """What an output is locked for, as `zero_load.CHANNELS`."""

    NONE = 0
    OUTPUT = 1
    RECEIVER = 2


class Arbiter(IntEnum):
    """Who gets an output or a reduction unit, as `zero_load.ARBITERS`."""

    ROUND_ROBIN = 0
    FIXED = 1
    TREE = 2


class UnitChoice(IntEnum):
    """Which reductions ask for a unit, as `zero_load.UNIT_CHOICES`."""

    COMPLETE = 0
    FIRST = 1


class Node(IntEnum):
    """A node: its tile, its outputs, its reduction unit, its buffers."""

    NUMBER = 0
    ROW = 1
    COL = 2
    QUEUE_HEAD = 3  # the tile's packet to send, or that is being sent; or -1
    QUEUE_TAIL = 4  # the last that waits behind it
    QUEUE_SENT = 5  # flits of it that went in
    QUEUE_LAST = 6  # when the last one went
    HEAD_OUT = 7  # when the head of the packet came that is coming out
    FIRST_OUTPUT = 8  # five records that fill the line, and two more
    UNIT = 88  # reduction in the unit, or -1
    UNIT_INPUTS = 89  # a bit an input for its operands
    UNIT_DONE = 90  # flits combined
    UNIT_LAST = 91  # when the last was
    UNIT_FREE_FROM = 92  # cycle from which it is free
    UNIT_PREFERRED = 93  # a bit a place for who is first, or the pointer of a tree
    START_AT = 94  # cycle of the next start, or -1, or DUE
    STARTED = 95  # flits of the reductions started, by output
    PUTS_IN = 100  # flits that the tile puts in in this cycle
    OFFER_AT = 101  # cycle in which the next one is offered to it
    OFFERED = 102  # buffer that offers it, or 0
    OFFERED_FLIT = 103  # which flit of its packet
    TAKES = 104  # whether the tile takes it in this cycle
    MAY_TAKE = 105  # flits that a node without a tile takes before it stops; NEVER: all
    LEAVES_LOADS = 106  # whether it leaves requests for loads in its router
    UNIT_CHOSEN = 107  # input whose reduction the unit waits for, or -1
    UNIT_LOOKED = 108  # cycle in which who was first in line could not start yet
    BUFFERS = 112  # where they begin


class Interface(IntEnum):
    """A node's columns for its interface, in the tile's places: no tiles have locked channels."""

    STAGE = 100  # a `Stage` of the front message
    STAGE_FROM = 101  # cycle from which its request, or its first data flit, may go
    IDLE_FROM = 102  # cycle from which the next message's head is taken
    ANSWER = 103  # first acknowledge to send, or -1
    LAST_ANSWER = 104  # the last that waits behind it
    LOOK_AT = 105  # cycle in which it is looked at again


class Stage(IntEnum):
    """How far a message is at its sender."""

    QUEUED = 0
    ASKING = 1  # its head is in the interface
    WAITING = 2  # its request has gone
    ACKNOWLEDGED = 3
    SENDING = 4


class Output(IntEnum):
    """An output. What few hops need stands as far behind each as the nodes' outputs are long."""

    PORT = 0
    BEHIND = 1  # the input behind the link, or 0
    OWNER = 2  # requester that holds it, or -1
    FREE_FROM = 3  # cycle from which it is free; NEVER while that is not known
    ASKING = 4  # a bit a place in line for those that wait
    PREFERRED = 5  # a bit a place for who is first, or the pointer of a tree
    LISTED = 6  # whether it is listed to be looked at
    THROUGH = 7  # flits of unicasts and multicasts that went through
    RESULTS_THROUGH = 40  # flits of results that went through
    LOOK_AT = 41  # cycle in which its holder is looked at again for room
    LINK_LAST = 42  # when the last flit went over its link
    ROOM_AT = 43  # cycle in which it is looked at again for a first flit's room
    OPEN = 44  # messages that have begun and not ended, where they share it
    RECEIVER = 45  # their receiver: row, column
    WAITED = 46  # cycles that packets stood in line for it, where none does now


class FlitBuffer(IntEnum):
    """A buffer. Its flits are numbered from 0; what a hop needs is one line."""

    NODE = 0
    SLOT = 1
    FEEDER = 2  # the output that feeds it, or 0
    WRITTEN = 3  # flits whose coming is known
    WRITE_RUNS = 4  # in how many runs
    LEFT = 5  # flits whose leaving by all branches is known
    LEAVE_RUNS = 6  # in how many runs
    FRONT = 7  # ring place of the packet at the front
    PACKETS = 8  # how many packets there are
    FRONT_PACKET = 9
    FRONT_FLIT = 10  # number of its first flit
    SHOWN_FROM = 11  # cycle from which it shows its header
    NEEDED = 12  # a bit an output that it needs; of an operand an input that brings a partner
    GRANTED = 13  # a bit an output that it holds
    LISTED = 14  # whether the buffer is listed to be looked at
    LAST_SENT = 15  # when its last flit went; before the first: the grant, less one
    BRANCH_LAST_SENT = 16  # the same of each branch of a fork
    BRANCH_SENT = 21  # flits that each branch sent
    RECEIVER = 26  # row and column to which the data at the front go, or -1
    RINGS = 32  # where they begin


class Ring(IntEnum):
    """A buffer's rings, of R records each, by how many RING_SIZE they begin behind the first."""

    RUNS = 0  # runs of coming and leaving, twice as wide: see `Run`
    QUEUE = 2  # packets behind the front one: packet, number of its first flit
    FORKS = 3  # flits that a fork has sent by some branches: latest time, how many
    MARKS = 3  # of flits one by one: `FIRST` and `LAST` of their messages


class Run(IntEnum):
    """Flits that come, and flits that leave, a cycle after each other; side by side in a ring."""

    WRITES = 0  # number of the first flit that comes, its time
    LEAVES = 2  # number of the first flit that leaves, its time


class Pending(IntEnum):
    """An event of the wheel."""

    NEXT = 0  # the next one in the same place of the wheel, or unused
    WHEN = 1  # its cycle
    WHAT = 2  # a requester that asks for an output, or a `What`
    WHOM = 3  # record or number


class What(IntEnum):
    """What an event is, if no requester asks for an output."""

    NOBODY = 6  # an output is free again
    START = 7  # a reduction may start
    LOOK = 8  # a buffer is worth a look
    INJECTED = 9  # a tail went in
    EJECTED = 10  # a tail came out


class Packet(IntEnum):
    """A packet: the fields of `Packets`, and what becomes of it."""

    CYCLE = 0
    SOURCE = 1
    FLITS = 2
    KIND = 3
    ROW_FIRST = 4
    ROW_LAST = 5
    ROW_STEP = 6
    COL_FIRST = 7
    COL_LAST = 8
    COL_STEP = 9
    ROOT = 10
    JOINT = 11
    LENGTH = 11  # of a message its flits; they are packets of their own where they share outputs
    NEXT_IN_QUEUE = 12  # packet that its source sends after it, or -1
    HEAD_INJECTED = 13
    TAIL_INJECTED = 14
    NEXT_DELIVERY = 15  # row of its next delivery


class Delivery(IntEnum):
    """A delivery."""

    PACKET = 0
    NODE = 1
    HEAD_EJECTED = 2
    TAIL_EJECTED = 3
