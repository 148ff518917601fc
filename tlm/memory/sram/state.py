"""All that is known of the banks of an SRAM and of those that ask them.

A set has 32 bits a row, so that no sign is in the way: number n is bit n & 31 of row n >> 5.
"""

from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np

from tlm.memory.tables import Int64s

NEVER = 2**62


class Access(IntEnum):
    """Columns of an access."""

    CYCLE = 0  # in which it may ask
    REQUESTER = auto()
    FIRST_WORD = auto()
    WORDS = auto()
    NEXT = auto()  # access behind it in the queue of its requester, or -1
    SERVED_AT = auto()  # cycle of its last word


class Requester(IntEnum):
    """Rows of the requesters; the last two are lists."""

    HEAD = 0  # access that asks or is the next to, or -1
    TAIL = auto()  # the last one behind it
    BANKS_LEFT = auto()  # banks that it still asks
    LATER = auto()  # cycle, in `SramState.later`, from which it will ask, or NEVER
    BEGINNING = auto()  # requesters whose access begins in this cycle
    SERVED = auto()  # accesses served in the last cycle


class SramBank(IntEnum):
    """Rows of the banks."""

    TURN = 0  # requester whose turn it is
    WORDS_ASKED = auto()  # words asked of it so far
    ASKED = auto()  # the set of the banks that are asked, over all of them
    ASKERS = auto()  # requesters that ask it
    ASKER_BITS = auto()  # from here on their set


class Now(IntEnum):
    """Places of what changes with time."""

    CLOCK = 0  # cycle to simulate next
    QUEUED = auto()  # accesses that stand in the requesters' queues, or did
    DONE = auto()  # accesses that are served
    ASKING = auto()  # requesters that ask
    BEGINNING = auto()  # length of the list of that name


class SramState(NamedTuple):
    """All that is known of B banks and R requesters."""

    accesses: Int64s  # [n, Access]
    requesters: Int64s  # [Requester, R]
    banks: Int64s  # [Bank and a row for 32 requesters, B]
    wanted: Int64s  # [R, B]: words that a requester asks of a bank
    now: Int64s  # [Now]
    later: Int64s  # [R + 1]: heap of the cycles in which accesses of others begin


def new_state(banks: int, requesters: int) -> SramState:
    """Banks of which nothing has been asked yet."""
    state = SramState(
        accesses=_zeros(64, len(Access)),
        requesters=_zeros(len(Requester), requesters),
        banks=_zeros(SramBank.ASKER_BITS + (requesters + 31 >> 5), banks),
        wanted=_zeros(requesters, banks),
        now=_zeros(len(Now)),
        later=_zeros(requesters + 1),
    )
    state.requesters[[Requester.HEAD, Requester.TAIL]] = -1
    state.requesters[Requester.LATER] = NEVER
    return state


def _zeros(*shape: int) -> Int64s:
    return np.zeros(shape, dtype=np.int64)
