"""Banks and buses of a DRAM channel: from when on a command may come, and what it does.

Each line that raises an earliest tick is a row of the table in standard.py.
"""

from tlm.compiled import Address, address, compiled
from tlm.memory.dram import state
from tlm.memory.dram.standard import DramCommand
from tlm.memory.dram.state import Bank, Head, Logged, Records, Slot


@compiled
def column_from(m: Records, t: int, bank: Address, write: int) -> int:
    """Earliest read or write of a bank's open row, from tick t on."""
    edge = m[Head.EDGE_MASK]
    return (max(t, m[bank + Bank.READ_FROM + write], m[Head.ANY_READ + write]) + edge) & ~edge


@compiled
def activate_from(m: Records, t: int, bank: Address) -> int:
    """Earliest activate of a closed bank, from tick t on."""
    edge = m[Head.EDGE_MASK]
    ready = max(t, m[bank + Bank.ACTIVATE_FROM], m[Head.ANY_ACTIVATE], m[Head.ROW_BUS])
    return (ready + edge) & ~edge


@compiled
def precharge_from(m: Records, t: int, bank: Address) -> int:
    """Earliest precharge of an open bank, from tick t on."""
    return max(t, m[bank + Bank.PRECHARGE_FROM], m[Head.ANY_PRECHARGE], m[Head.ROW_BUS])


@compiled
def row_from(m: Records, t: int, bank: Address) -> int:
    """Earliest command that opens a bank for another row, from tick t on."""
    return activate_from(m, t, bank) if m[bank + Bank.OPEN_ROW] < 0 else precharge_from(m, t, bank)


@compiled
def _delay_group(m: Records, bank: Address, command: int, time: int) -> None:
    """No bank of the group has this next command before a time; ``command``: its column."""
    first = bank - ((bank - state.BANKS) & m[Head.GROUP_MASK])
    for place in range(first, first + m[Head.GROUP_MASK], state.BANK_COLUMNS):
        other = address(place)
        m[other + command] = max(m[other + command], time)


@compiled
def _log(m: Records, t: int, kind: int, bank: int, row: int, column: int, request: int) -> None:
    """Note a command, if commands are noted; bank -1: to all of them."""
    if m[Head.LOG_ROWS] == 0:
        return
    place = m[Head.LOG] + m[Head.LOGGED] * state.LOG_COLUMNS
    m[Head.LOGGED] += 1
    group = within = -1
    if bank >= 0:
        group, within = divmod(bank - state.BANKS, m[Head.GROUP_MASK] + 1)
        within //= state.BANK_COLUMNS
    m[place + Logged.TICK], m[place + Logged.KIND] = t, kind
    m[place + Logged.GROUP], m[place + Logged.BANK] = group, within
    m[place + Logged.ROW], m[place + Logged.COLUMN] = row, column
    m[place + Logged.REQUEST] = request


@compiled
def activate(m: Records, t: int, bank: Address, row: int) -> None:
    """Open a row."""
    m[bank + Bank.OPEN_ROW] = row
    m[bank + Bank.SERVED] = 0
    m[bank + Bank.ACTIVATE_FROM] = t + m[Head.RC]
    m[bank + Bank.PRECHARGE_FROM] = t + m[Head.RAS]
    m[bank + Bank.READ_FROM] = max(m[bank + Bank.READ_FROM], t + m[Head.RCD_RD])
    m[bank + Bank.WRITE_FROM] = max(m[bank + Bank.WRITE_FROM], t + m[Head.RCD_WR])
    _delay_group(m, bank, Bank.ACTIVATE_FROM, t + m[Head.RRD_L])
    place = m[Head.WINDOW_OLDEST]
    m[state.WINDOW + place] = t
    m[Head.WINDOW_OLDEST] = place = (place + 1) & 3
    m[Head.ANY_ACTIVATE] = max(t + m[Head.RRD_S], m[state.WINDOW + place] + m[Head.FAW])
    m[Head.ANY_REFRESH] = max(m[Head.ANY_REFRESH], t + m[Head.RC_REF])
    m[Head.ROW_BUS] = t + m[Head.ACTIVATE_TICKS]
    m[Head.OPEN_BANKS] += 1
    _log(m, t, DramCommand.ACTIVATE, bank, row, -1, -1)


@compiled
def _close(m: Records, t: int, bank: Address) -> None:
    m[bank + Bank.OPEN_ROW] = -1
    m[bank + Bank.ACTIVATE_FROM] = max(m[bank + Bank.ACTIVATE_FROM], t + m[Head.RP])
    m[Head.ANY_PRECHARGE] = t + m[Head.PPD]
    m[Head.ANY_REFRESH] = max(m[Head.ANY_REFRESH], t + m[Head.RP_REF])
    m[Head.ROW_BUS] = t + 1
    m[Head.OPEN_BANKS] -= 1


@compiled
def precharge(m: Records, t: int, bank: Address) -> None:
    """Close a bank's row."""
    _close(m, t, bank)
    _log(m, t, DramCommand.PRECHARGE, bank, -1, -1, -1)


@compiled
def precharge_all(m: Records, t: int) -> int:
    """Close all rows at once, if that may be; the earliest tick in which it may."""
    ready = max(m[Head.ANY_PRECHARGE], m[Head.ROW_BUS])
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        if m[bank + Bank.OPEN_ROW] >= 0:
            ready = max(ready, m[bank + Bank.PRECHARGE_FROM])
    if ready > t:
        return ready
    for record in range(state.BANKS, m[Head.BANKS_END], state.BANK_COLUMNS):
        bank = address(record)
        if m[bank + Bank.OPEN_ROW] >= 0:
            _close(m, t, bank)
    _log(m, t, DramCommand.PRECHARGE_ALL, -1, -1, -1, -1)
    return ready


@compiled
def refresh(m: Records, t: int) -> int:
    """Refresh closed banks, if that may be; the earliest tick from t on in which it may."""
    edge = m[Head.EDGE_MASK]
    ready = (max(t, m[Head.ANY_REFRESH], m[Head.ROW_BUS]) + edge) & ~edge
    if ready > t:
        return ready
    m[Head.ANY_ACTIVATE] = max(m[Head.ANY_ACTIVATE], t + m[Head.RFC])
    m[Head.ANY_REFRESH] = t + m[Head.RFC]
    m[Head.ROW_BUS] = t + 1
    m[Head.REFRESH_TICKS] += t + m[Head.RFC] - m[Head.REFRESH_DUE]
    _log(m, t, DramCommand.REFRESH, -1, -1, -1, -1)
    return ready


@compiled
def column(m: Records, t: int, slot: Address) -> None:
    """Read or write the burst of the request in a slot."""
    bank, write = address(m[slot + Slot.BANK]), m[slot + Slot.WRITE]
    if write:
        m[bank + Bank.PRECHARGE_FROM] = max(m[bank + Bank.PRECHARGE_FROM], t + m[Head.WTP])
        _delay_group(m, bank, Bank.READ_FROM, t + m[Head.WTR_L])
        _delay_group(m, bank, Bank.WRITE_FROM, t + m[Head.CCD_L])
        m[Head.ANY_READ] = max(m[Head.ANY_READ], t + m[Head.WTR_S])
        m[Head.ANY_WRITE] = max(m[Head.ANY_WRITE], t + m[Head.CCD_S])
    else:
        m[bank + Bank.PRECHARGE_FROM] = max(m[bank + Bank.PRECHARGE_FROM], t + m[Head.RTP])
        _delay_group(m, bank, Bank.READ_FROM, t + m[Head.CCD_L])
        m[Head.ANY_READ] = max(m[Head.ANY_READ], t + m[Head.CCD_S])
        m[Head.ANY_WRITE] = max(m[Head.ANY_WRITE], t + m[Head.RTW])
    m[Head.COLUMNS] += 1
    m[Head.HITS] += m[bank + Bank.SERVED] > 0
    m[bank + Bank.SERVED] += 1
    row, place = m[slot + Slot.ROW], m[slot + Slot.COLUMN]
    _log(m, t, DramCommand.READ + write, bank, row, place, m[slot + Slot.REQUEST])
