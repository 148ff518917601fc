"""How much memory a run of the loosely-timed engine takes, and whether there is so much."""

from tlm.engines.lt.contention.multicast_network import (
    NODE_COLUMNS,
    QUEUE_NUMBERS,
    TREE_COLUMNS,
    WHEEL_SIZE,
)
from tlm.engines.lt.contention.multicasts import most_under_way
from tlm.engines.lt.cycle_tables import TABLES
from tlm.engines.lt.state import TileSlot
from tlm.engines.outcome import OUTCOME_BYTES_PER_TILE
from tlm.interconnect.unicast_network import (
    BUFFER_COLUMNS,
    PORTS,
    TRANSFER_COLUMNS,
    WAY_COLUMNS,
)
from tlm.program import Program
from tlm.room import hold_room

_TIME_BYTES = 4
_SPENT_CYCLES_BYTES = 2 * 8
_NUMBER_BYTES = 8
_LINKS_BYTES = _TIME_BYTES * (NODE_COLUMNS + QUEUE_NUMBERS) + _NUMBER_BYTES
_TREE_BYTES = _NUMBER_BYTES * TREE_COLUMNS


def needed_bytes(program: Program) -> int:
    """Most memory that a run takes: its times, tables of cycles, and outcome."""
    units = sum(token.depth for token in program.tokens.values())
    times = _TIME_BYTES * (TileSlot.FIRST_TOKEN + units + TABLES)
    tile = times + _SPENT_CYCLES_BYTES + 2 * OUTCOME_BYTES_PER_TILE
    return program.rows * program.cols * tile


def check_links_memory(program: Program, limit_bytes: int | None) -> None:
    """Hold that there is memory for a network, too, beside the run that is in memory already.

    Args:
        program: What runs.
        limit_bytes: What the run may take; None: what the machine has to spare.

    Raises:
        InputError: with both figures, if there is not.
    """
    rows, cols = program.rows, program.cols
    under_way = most_under_way(rows, cols)
    operation = _TIME_BYTES * rows * cols + _TREE_BYTES * max(rows, cols)
    needed = rows * cols * _LINKS_BYTES + under_way * operation + _NUMBER_BYTES * WHEEL_SIZE
    _hold_more(program, "multicasts meet", needed, limit_bytes)


def check_ordered_memory(
    program: Program, routers: int, rows: int, arrivals: int, limit_bytes: int | None
) -> None:
    """Hold that there is memory for a network through which blocks and multicasts go, too.

    Args:
        program: What runs.
        routers: Of tiles and of channels.
        rows: So many requests, roots, operands and works go together; each waits for few others.
        arrivals: Places for what comes to tiles.
        limit_bytes: What the run may take; None: what the machine has to spare.

    Raises:
        InputError: with both figures, if there is not.
    """
    needed = routers * _LINKS_BYTES + 2 * rows * _TREE_BYTES
    needed += arrivals * (2 * _TIME_BYTES + _NUMBER_BYTES)
    _hold_more(program, "blocks share links", needed, limit_bytes)


def check_shared_memory(
    program: Program, transfers: int, most_packets: int, limit_bytes: int | None
) -> None:
    """Hold that there is memory for links that transfers share, too.

    Args:
        program: What runs.
        transfers: So many go together; each waits for two or three others.
        most_packets: In a buffer.
        limit_bytes: What the run may take; None: what the machine has to spare.

    Raises:
        InputError: with both figures, if there is not.
    """
    # Of each packet in a buffer there may be an event, too.
    port = WAY_COLUMNS + BUFFER_COLUMNS + 2 * most_packets
    numbers = program.rows * program.cols * PORTS * port + 3 * transfers * TRANSFER_COLUMNS
    _hold_more(program, "sends share links", numbers * _NUMBER_BYTES, limit_bytes)


def _hold_more(program: Program, why: str, needed: int, limit_bytes: int | None) -> None:
    """Hold that there is room beside a run's own, which counts if there is a limit."""
    own = 0 if limit_bytes is None else needed_bytes(program)
    what = f"{program.rows} x {program.cols} tiles whose {why} at level lt"
    hold_room(what, own + needed, limit_bytes)


def check_memory(program: Program, limit_bytes: int | None) -> None:
    """Hold that a run fits into memory.

    Args:
        program: What is to run.
        limit_bytes: What it may take; None: what the machine has to spare.

    Raises:
        InputError: with both figures, if it does not.
    """
    what = f"{program.rows} x {program.cols} tiles with {len(program.tokens)} tokens at level lt"
    hold_room(what, needed_bytes(program), limit_bytes)
