"""Records of the compiled mesh: all that is known of it, in one array.

A record is named by its address, the index of its first column, and records name each other so:
``m[m[buffer + at.NODE] + at.ROW]``. state.py lays them out, places.py finds one from another.
Beside the array are the packets and what was delivered, tables that grow.

Ports are 0 local, 1 north, 2 east, 3 south, 4 west. A node's buffers have slots: 0 to 4 the inputs,
5 to 9 their buffers for operands of reductions, unless these share the inputs', 10 the registers
behind the reduction unit, 11 to 15 the outputs' buffers; a mesh without reductions and output
buffers has the first five only. At an output the inputs, and as number 5 the registers behind the
unit, are the requesters.
"""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tlm.unchecked import Unchecked

Int32s = NDArray[np.int32]
Address = int  # a record's first column
Records = Annotated[Int32s, Unchecked()]
Table = Annotated[Int32s, Unchecked(16)]
DeliveryTable = Annotated[Int32s, Unchecked(4)]
# Times are 32 bits wide, as all columns: half of the memory is twice of what caches hold.
LATEST, NEVER, LONG_AGO = 2**30, 2**31 - 1, -(2**30)
PORTS = 5
OPERANDS, RESULT, OUTPUTS, SLOTS = 5, 10, 11, 16
ROUND = 1024  # cycles of the wheel
LINE = 16  # columns of a cache's line of 64 bytes

# Nodes stand one after the other, each with its outputs, its unit and its buffers, in whole lines
# of a cache. On a large mesh nearly every line that a packet-hop touches has to come from memory:
# what all hops need of a buffer is in one line, and of an output in half a line.

# The first record: the clock; events pending, and the first unused one; deliveries that are owed;
# whether the caller wants reports, and how many there are; outputs, units and buffers listed to be
# looked at; then lengths: a buffer's places, an output's, R - 1 where rings have R places,
# registers of the reduction unit; three switches; where tables begin; how many nodes there are, and
# lengths of records; kinds of forks and arbiters; cycles that an output idles after a tail, from
# flit to flit on a link and in a reduction unit; first slot of the buffers for operands; whether an
# output is held only from the first flit on; places in line by requester, and requesters by place;
# the length of the buffer of an output to a tile; whether tiles say of each flit when it goes in
# and when it comes out. By slot of a buffer: its places; cycles from a flit's coming to its leaving
# for a link, and for the tile; cycles from a flit's leaving until its place can be filled.
CLOCK, PENDING, UNUSED, OWED, REPORTING, REPORTED, MARKS, STARTS, TOP = range(9)
DEPTH, OUTPUT_DEPTH, MASK, REGISTERS, Y_FIRST, CUT_THROUGH, LOOPBACK = range(9, 16)
WHEEL, MARKED, STARTING, STACK, REPORTS, NODES, NODE_COUNT = range(16, 23)
NODE_SIZE, BUFFER_SIZE, RING_SIZE, EVENTS_END = range(23, 27)
FORK, ARBITER, TURNAROUND, LINK_INTERVAL, UNIT_INTERVAL, OPERAND_SLOT = range(27, 33)
LATE_LOCK, PLACE_OF, AT_PLACE, TILE_DEPTH, TILED = 33, 34, 40, 46, 47
PLACES, LATENCY, EJECTION, RETURN, HEADER_COLUMNS = 48, 64, 80, 96, 112
# Kinds of forks and of arbiters, as `zero_load.FORKS` and `ARBITERS`.
OWN_PACE, FLIT_BY_FLIT, LOCKSTEP = range(3)
ROUND_ROBIN, FIXED, TREE = range(3)
# A node: its number and place. The tile: packet to send or being sent, or -1, and the last that
# waits behind it; flits of it that went in, and when the last went; when the head of the packet
# that is coming out came.
NUMBER, ROW, COL, QUEUE_HEAD, QUEUE_TAIL, QUEUE_SENT, QUEUE_LAST, HEAD_OUT = range(8)
# In the rest of the line, and the two after it, the outputs: the port; the input behind the link,
# or 0; requester that holds it, or -1; cycle from which it is free, NEVER while that is not known;
# a bit a requester for those that wait, and for who is first in line; whether it is listed; flits
# of unicasts and multicasts that went through.
NODE_OUTPUTS, OUTPUT_COLUMNS = 8, 8
PORT, BEHIND, OWNER, FREE_FROM, ASKING, PREFERRED, LISTED_OUTPUT, THROUGH = range(8)
# Then, as far behind each output, what few hops need: flits of results that went through; cycle in
# which its holder is looked at again for room; when the last flit went over its link; cycle in
# which it is looked at again for a first flit's room.
RESULTS_THROUGH, LOOK_AT, LINK_LAST, ROOM_AT = range(40, 44)
# The node's reduction unit: reduction in it, or -1; a bit an input for its operands; flits
# combined, and when the last was; cycle from which it is free; a bit an input for who is first in
# line; cycle of the next start, or -1, or DUE: in this one; and, an output each, flits of the
# reductions started. Where tiles say of each flit when it moves: flits that one puts in in this
# cycle; cycle in which the next one is offered to it; buffer that offers it, or 0, and which flit
# of its packet; whether it takes it in this cycle. Then the buffers.
UNIT, UNIT_INPUTS, UNIT_DONE, UNIT_LAST, UNIT_FREE_FROM, UNIT_PREFERRED, START_AT = range(88, 95)
STARTED, BUFFERS = 95, 112
PUTS_IN, OFFER_AT, OFFERED, OFFERED_FLIT, TAKES = range(100, 105)
DUE = -2
# A buffer: its node and slot; the output that feeds it, or 0. Flits (numbered from 0) whose coming
# is known and whose leaving by all branches is, and in how many runs; ring place of the packet at
# the front, and how many there are; that packet, and the number of its first flit; cycle from which
# it shows its header; a bit an output (for an operand: an input that brings a partner) for the
# branches it needs and for those that hold their output; whether it is listed; when its last flit
# went (before the first: the grant, less one). Up to here a line; then, of a fork, that of each
# branch and the flits that it sent. Then the rings.
NODE, SLOT, FEEDER, WRITTEN, WRITE_RUNS, LEFT, LEAVE_RUNS, FRONT, PACKETS = range(9)
FRONT_PACKET, FRONT_FLIT, SHOWN_FROM, NEEDED, GRANTED, LISTED, LAST_SENT = range(9, 16)
BRANCH_LAST_SENT, BRANCH_SENT, RINGS = 16, 21, 32
# The rings of a buffer, of R records each: runs of coming and, beside them, as both are needed
# together, of leaving (number of the first flit, its time); from two RING_SIZE on, which is 2 R,
# packets behind the front one (packet, number of its first flit); then flits that a fork has sent
# by some branches (latest time, how many).
WRITES, LEAVES, RUN = 0, 2, 4
QUEUE, FORKS, RING_COUNT = 2, 3, 4
# An event: the next one in the same place of the wheel, or unused; its cycle; what and whom.
NEXT, WHEN, WHAT, WHOM, EVENT_COLUMNS = range(5)
# What: a requester, by its number, asks for an output, or it is free again (NOBODY); a reduction
# may start, a buffer is worth a look, a tail went in, a tail came out.
NOBODY, START, LOOK, INJECTED, EJECTED = range(6, 11)
# `packets`: the fields of `Packets`, the queue, and the row of its next delivery. `deliveries`.
CYCLE, SOURCE, FLITS, KIND, ROW_FIRST, ROW_LAST, ROW_STEP, COL_FIRST, COL_LAST, COL_STEP = range(10)
ROOT, JOINT, NEXT_IN_QUEUE, HEAD_INJECTED, TAIL_INJECTED, NEXT_DELIVERY = range(10, 16)
PACKET_COLUMNS = 16
UNICAST, MULTICAST, SUM = 0, 1, 2
DELIVERED, AT_NODE, HEAD_EJECTED, TAIL_EJECTED, DELIVERY_COLUMNS = range(5)
