"""Records of the compiled mesh: all that is known of it, in one array.

A record is named by its address, the index of its first column, and records name each other so:
``m[m[buffer + at.NODE] + at.ROW]``. state.py lays them out. Beside the array are the packets and
what was delivered, tables that grow.

Ports are 0 local, 1 north, 2 east, 3 south, 4 west. A node's buffers have slots: 0 to 4 the inputs,
5 to 9 their buffers for operands of reductions, unless these share the inputs', 10 the registers
behind the reduction unit, 11 to 15 the outputs' buffers; a mesh without reductions and output
buffers has the first five only. At an output the inputs, and as number 5 the registers behind the
unit, are the requesters.
"""

from typing import Annotated

import numpy as np
from numba import types
from numpy.typing import NDArray

Int32s = NDArray[np.int32]
Records = Annotated[Int32s, types.int32[::1]]
Table = Annotated[Int32s, types.int32[:, ::1]]
# Times are 32 bits wide, as all columns: half of the memory is twice of what caches hold.
LATEST, NEVER, LONG_AGO = 2**30, 2**31 - 1, -(2**30)
PORTS = 5
OPERANDS, RESULT, OUTPUTS, SLOTS = 5, 10, 11, 16
ROUND = 1024  # cycles of the wheel

# Records are padded to whole lines of a cache, of 16 columns.

# The first record: the clock; events pending, and the first unused one; deliveries that are owed;
# whether the caller wants reports, and how many there are; outputs, units and buffers listed to be
# looked at; then lengths: a buffer's places, an output's, R - 1 where rings have R places,
# registers of the reduction unit; three switches; where tables begin; how many buffers there are,
# and lengths of records; kinds of forks and arbiters; cycles that an output idles after a tail,
# from flit to flit on a link and in a reduction unit; first slot of the buffers for operands;
# whether an output is held only from the first flit on; places in line by requester, and requesters
# by place; and the length of the buffer of an output to a tile.
CLOCK, PENDING, UNUSED, OWED, REPORTING, REPORTED, MARKS, STARTS, TOP = range(9)
DEPTH, OUTPUT_DEPTH, MASK, REGISTERS, Y_FIRST, CUT_THROUGH, LOOPBACK = range(9, 16)
WHEEL, MARKED, STARTING, STACK, REPORTS, NODES, OUTPUT_RECORDS, BUFFER_RECORDS = range(16, 24)
BUFFER_COUNT, BUFFER_SIZE, RING_SIZE, EVENTS_END = range(24, 28)
FORK, ARBITER, TURNAROUND, LINK_INTERVAL, UNIT_INTERVAL, OPERAND_SLOT = range(28, 34)
LATE_LOCK, PLACE_OF, AT_PLACE, TILE_DEPTH, HEADER_COLUMNS = 34, 35, 41, 47, 48
# Kinds of forks and of arbiters, as `zero_load.FORKS` and `ARBITERS`.
OWN_PACE, FLIT_BY_FLIT, LOCKSTEP = range(3)
ROUND_ROBIN, FIXED, TREE = range(3)
# A node: its number, place, first buffer and first output. The tile: packet to send or being sent,
# or -1, and the last that waits behind it; flits of it that went in, and when the last went; when
# the head of the packet that is coming out came.
NUMBER, ROW, COL, BUFFERS, NODE_OUTPUTS = range(5)
QUEUE_HEAD, QUEUE_TAIL, QUEUE_SENT, QUEUE_LAST, HEAD_OUT = range(5, 10)
# Its reduction unit: reduction in it, or -1; a bit an input for its operands; flits combined, and
# when the last was; cycle from which it is free; a bit an input for who is first in line; cycle of
# the next start, or -1, or DUE: in this one; and, an output each, flits of the reductions started.
UNIT, UNIT_INPUTS, UNIT_DONE, UNIT_LAST, UNIT_FREE_FROM, UNIT_PREFERRED, START_AT = range(10, 17)
STARTED, NODE_COLUMNS = 17, 32
DUE = -2
# An output: its node and port, the input behind its link, or 0; requester that holds it, or -1;
# cycle from which it is free, NEVER while that is not known; a bit a requester for those that wait,
# and for who is first in line; whether it is listed; flits that went through of unicasts and
# multicasts, and of results; cycle in which its holder is looked at again for room; when the last
# flit went over its link; cycle in which it is looked at again for a first flit's room.
OUT_NODE, PORT, BEHIND, OWNER, FREE_FROM, ASKING, PREFERRED, LISTED_OUTPUT = range(8)
THROUGH, RESULTS_THROUGH, LOOK_AT, LINK_LAST, ROOM_AT = range(8, 13)
OUTPUT_COLUMNS = 16
# A buffer: its node and slot; the output that feeds it, or 0; its places; cycles from a flit's
# coming to its leaving for a link; cycles from a flit's leaving until its place can be filled.
# Flits (numbered from 0) whose coming is known and whose leaving by all branches is, and in how
# many runs; ring place of the packet at the front, and how many there are; cycle from which the
# front one shows its header; a bit an output (for an operand: an input that brings a partner) for
# the branches it needs and for those that hold their output; whether it is listed. Up to here what
# every hop needs, in one line of a cache; then, an output each, the flits sent and when the last
# went (before the first: the grant, less one); cycles from a flit's coming to its leaving for the
# tile. Then the rings.
NODE, SLOT, FEEDER, PLACES, LATENCY, RETURN = range(6)
WRITTEN, WRITE_RUNS, LEFT, LEAVE_RUNS, FRONT, PACKETS, SHOWN_FROM = range(6, 13)
NEEDED, GRANTED, LISTED, SENT, LAST_SENT, EJECTION, RINGS = 13, 14, 15, 16, 21, 26, 32
# The rings of a buffer, of R records each: runs of coming and, beside them, as both are needed
# together, of leaving (number of the first flit, its time); from two RING_SIZE on, which is 2 R,
# packets (packet, number of its first flit); then flits that a fork has sent by some branches
# (latest time, how many).
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
