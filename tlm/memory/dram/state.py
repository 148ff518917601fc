"""What is known of a DRAM channel while it runs: records in one array, a column a line.

All of it is in one int64 array, ``m``, but for the table of requests, which grows. A record is
named by its address, the index of its first column, and records name each other so:
``m[m[slot + Slot.BANK] + Bank.OPEN_ROW]``. layout.py lays them out. Times are ticks.
"""

from enum import IntEnum, auto
from typing import Annotated

from numba import types

from tlm.compiled import Numbers, compiled

Records = Annotated[Numbers[int], types.int64[::1]]
Table = Annotated[Numbers[tuple[int, int]], types.int64[:, ::1]]
NEVER = 2**62
NOBODY = -1  # where a slot could be named


class Head(IntEnum):
    """Columns of the first record, which is the channel's."""

    # Of the device: its times, in the words of `Device`.
    RCD_RD = 0
    RCD_WR = auto()
    RP = auto()
    RAS = auto()
    RC = auto()
    RRD_S = auto()
    RRD_L = auto()
    FAW = auto()
    CCD_S = auto()
    CCD_L = auto()
    RTW = auto()
    WTR_S = auto()
    WTR_L = auto()
    RTP = auto()
    WTP = auto()
    RFC = auto()
    REFI = auto()
    RP_REF = auto()
    RC_REF = auto()
    PPD = auto()
    RL = auto()
    WL = auto()
    BL = auto()
    ACTIVATE_TICKS = auto()
    # Of the device: its shape.
    EDGE_MASK = auto()  # ticks in a clock less one, where commands need the rising edge
    GROUP_MASK = auto()  # columns of a group's banks, less one
    BANKS_END = auto()
    # Of the controller and of who asks.
    RESPONSE_DEPTH = auto()  # responses under way or not taken
    OFFER_AFTER_TAKEN = auto()  # ticks from a request's taking to the next offer
    OFFER_AFTER_ANSWER = auto()  # ticks from an answer to the offer that waited for it
    SHOW_AFTER = auto()  # ticks from an answer to the next
    GRAIN = auto()  # requests taken from a requester in a row
    BY_HAND = auto()  # whether answers are taken by the caller, not at once
    # The clock, and the earliest ticks in which something may happen: too early, never too late.
    CLOCK = auto()
    COLUMN_AT = auto()  # a column command
    ROW_AT = auto()  # a row command
    ACCEPT_AT = auto()  # a request is taken
    RESPONSE_AT = auto()  # an answer begins
    REFRESH_AT = auto()  # a step of a refresh
    MOVE_AT = auto()  # a request goes on from a queue to another
    # Banks and buses; the earliest next commands as far as the channel goes.
    ANY_ACTIVATE = auto()
    ANY_PRECHARGE = auto()
    ANY_READ = auto()
    ANY_WRITE = auto()
    ANY_REFRESH = auto()
    ROW_BUS = auto()  # tick from which the row bus is free
    WINDOW_OLDEST = auto()  # which of the last four activates is the oldest
    OPEN_BANKS = auto()
    PENDING_REFRESH = auto()
    REFRESH_DUE = auto()
    OWED = auto()  # requests whose columns come before a refresh that is due
    # Requests and answers.
    LEFT = auto()  # requests that are not answered
    FREE_SLOT = auto()
    NEXT_AGE = auto()
    TAKEN = auto()  # request that this tick has taken, or -1
    FIRST_RESPONSE = auto()  # number of the oldest
    RESPONSES = auto()
    SHOW_FROM = auto()  # tick from which an answer may begin
    SHOWN = auto()  # request whose answer waits to be taken by hand, or -1
    HOLDER = auto()  # port whose turn it is
    HELD = auto()  # requests taken from it in a row
    NEXT_TICKET = auto()
    # Counts of what has been.
    COLUMNS = auto()
    HITS = auto()
    REFRESH_TICKS = auto()
    # Other tables.
    PORTS = auto()
    PORTS_END = auto()
    RING = auto()  # responses
    RING_MASK = auto()  # their number less one
    LOG = auto()
    LOG_ROWS = auto()  # 0 if commands are not noted
    LOGGED = auto()


class Queue(IntEnum):
    """Columns of a queue: requests that wait, in order of age."""

    COUNT = 0
    HIT = auto()  # the oldest that hits the open row, or NOBODY
    MISS = auto()  # the oldest that does not, or NOBODY
    PLACES = auto()  # where its places are, a slot each


class Bank(IntEnum):
    """Columns of a bank."""

    OPEN_ROW = 0  # or -1
    # The earliest next commands as far as it and its group go; others are those of the channel.
    ACTIVATE_FROM = auto()
    PRECHARGE_FROM = auto()
    READ_FROM = auto()
    WRITE_FROM = auto()
    SERVED = auto()  # columns since its activate
    OWN = auto()  # two columns of the controller
    QUEUE = 8
    WRITE_QUEUE = 12  # where a controller keeps writes apart


class Slot(IntEnum):
    """Columns of a request that waits."""

    REQUEST = 0
    AGE = auto()
    WRITE = auto()
    BANK = auto()
    ROW = auto()
    COLUMN = auto()
    PORT = auto()
    NEXT_FREE = auto()


class Port(IntEnum):
    """Columns of a requester."""

    NEXT = 0  # the first request not yet taken
    STOP = auto()  # behind its last
    OUTSTANDING = auto()  # taken and not answered
    DEPTH = auto()  # most of these
    OFFER_FROM = auto()  # tick from which the next may be offered
    TICKET = auto()  # number of the event that set it, a request taken or an answer


class Response(IntEnum):
    """Columns of a response in the ring, in which they are in order of time."""

    TIME = 0
    REQUEST = auto()
    PORT = auto()


class Asked(IntEnum):
    """Columns of the table of requests, shape (n, columns)."""

    WRITE = 0
    BANK = auto()
    ROW = auto()
    COLUMN = auto()
    BEGIN_REQ = auto()  # until it is taken, the tick before which it is not offered
    END_REQ = auto()
    BEGIN_RESP = auto()
    END_RESP = auto()


class Logged(IntEnum):
    """Columns of a command in the log; -1 where there is none."""

    TICK = 0
    KIND = auto()  # a `DramCommand`
    GROUP = auto()
    BANK = auto()  # in the group
    ROW = auto()
    COLUMN = auto()
    REQUEST = auto()


QUEUE_COLUMNS = len(Queue)
BANK_COLUMNS = 16  # two lines of a cache
SLOT_COLUMNS = len(Slot)
PORT_COLUMNS = len(Port)
RESPONSE_COLUMNS = len(Response)
LOG_COLUMNS = len(Logged)
# More of the first record: ticks of the last four activates; queues of reads and of writes in front
# of the banks'; the controller's own columns.
WINDOW = len(Head)
FRONT_READS = WINDOW + 4
OWN = FRONT_READS + 2 * QUEUE_COLUMNS
OWN_COLUMNS = 12
# The banks stand behind the first record, so that their addresses are known to the compiler.
BANKS = -(-(OWN + OWN_COLUMNS) // 8) * 8  # whole lines of a cache


@compiled
def lower(m: Records, which: int, tick: int) -> None:
    """Look at something in a tick, at the latest; ``which``: the column of its next one."""
    m[which] = min(m[which], tick)
