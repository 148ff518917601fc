"""Memory controllers: how they queue requests and which command they choose, each with its source.

All share the banks, the times and the buses of tlm/memory/dram_state.py. What they do differently
is told by `Kind`, in the words of the choice functions of tlm/memory/dram_choice.py.
"""

from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    """Mechanisms.

    RTL: one queue; FR-FCFS that keeps rows which are waited for; an oldest request that has been
    passed too often becomes urgent. A row and a column command are chosen at once. After
    rtl/memory/README.md.

    RAMULATOR: a read and a write buffer. The mode decides which of them is served: writes from
    above 0.8 of their buffer, or without reads, down to below 0.2. Column bus first, then row bus;
    on each the oldest request whose next command is ready, rows with hits unprotected. A request
    leaves its buffer at its activate, and its column comes before those of the buffer; its bank is
    not closed before that. A write is answered by its command, a read of a waiting write by that
    write; a write to an address that waits is absorbed. A refresh due stops both buffers, and when
    the activated requests are served, all rows are closed at once. Who is answered offers in the
    same tick; a request is looked at in the tick after it is taken. After the HBM controllers
    and the FRFCFS scheduler of CMU-SAFARI/ramulator2, version 2.1.

    DRAMSIM3: a read queue and a write buffer feed a queue a bank, a transaction a tick, in order
    but for those whose bank queue is full; a request moves in the tick in which it is taken, and
    its first command comes in the next. Who is answered offers in the next tick. Writes are
    answered when taken; they are moved when the buffer is full, or above 8 with all bank queues
    empty, until those there at that time are gone. Round robin over banks: the first command ready,
    be it row or column, and in the same tick one more if the next bank in turn with a ready one has
    it for the other bus. In a bank queue the first ready in order; its oldest closes the row if
    nobody waits for it or after 4 columns. A write that waits for a read in front of the queues
    ends the drain, and a read moves next, where the simulator would begin the same drain for ever.
    A refresh due stops all, and rows are closed one by one. Reads of one address are not
    merged here. After umd-memsys/DRAMsim3.

    DRAMSYS: a buffer a bank; the bank's oldest hit, or else its oldest request, asks for its
    command. A bus goes to the command that would end first, then to the oldest request, and stays
    idle if that one is not ready. A request that fills its bank's buffer stops those behind it.
    Requesters are served in the order in which they began to offer. An answer, the request that
    follows it and that one's first command may fall in one tick, and a column makes place for a
    request that may have its row command in the same tick. A refresh due stops all, and all rows
    are closed at once. After tukl-msd/DRAMSys with FrFcfs, Bankwise, Oldest, Fifo, AllBank, Simple.
    """

    RTL = 0
    RAMULATOR = 1
    DRAMSIM3 = 2
    DRAMSYS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A controller.

    Attributes:
        kind: Its mechanism.
        read_depth: Places for reads that wait; of a single queue, for all requests.
        write_depth: Places for writes that wait.
        bank_depth: Places of a bank's queue, where there is one.
        response_depth: Responses under way or not yet taken.
        pass_limit: Requests served before the oldest after which it is urgent.
        write_above: Writes above which they are served: 0.8 of 32, rounded down.
        write_below: Writes below which reads are served again: 0.2 of 32, rounded up.
        row_hit_cap: Columns after which a row may be closed in spite of hits.
        drain_level: Writes above which they are moved if the bank queues are empty.
        activate_ticks: Ticks for which an activate holds the row bus; None: the device's.
        half_clocks: Whether the rules of a device with two ticks a clock are kept, the rising edge
            and tPPD. DRAMsim3's and DRAMSys' rules of HBM know neither, whatever table of times
            they are given.
    """

    kind: Kind
    read_depth: int = 32
    write_depth: int = 32
    bank_depth: int = 8
    response_depth: int = 64
    pass_limit: int = 1 << 40
    write_above: int = 25
    write_below: int = 7
    row_hit_cap: int = 4
    drain_level: int = 8
    activate_ticks: int | None = None
    half_clocks: bool = True


RTL = Policy(kind=Kind.RTL, response_depth=16, pass_limit=32)
POLICIES = {
    "ramulator": Policy(kind=Kind.RAMULATOR),
    "dramsim3": Policy(kind=Kind.DRAMSIM3, activate_ticks=1, half_clocks=False),
    "dramsys": Policy(kind=Kind.DRAMSYS, activate_ticks=2, half_clocks=False),
}
