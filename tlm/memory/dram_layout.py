"""Layout of a DRAM channel's records, and the channel before its first request."""

import numpy as np

from tlm.memory import dram_state as d
from tlm.memory.devices import Device
from tlm.memory.dram_state import Int64s
from tlm.memory.policies import Kind, Policy

_TIMES = (
    "t_rcd_rd", "t_rcd_wr", "t_rp", "t_ras", "t_rc", "t_rrd_s", "t_rrd_l", "t_faw", "t_ccd_s",
    "t_ccd_l", "t_rtw", "t_wtr_s", "t_wtr_l", "t_rtp", "t_wtp", "t_rfc", "t_refi", "t_rp_ref",
    "t_rc_ref", "rl", "wl", "bl", "t_ppd", "activate_ticks",
)  # fmt: skip
_RULES = (
    "kind", "read_depth", "write_depth", "bank_depth", "response_depth", "pass_limit",
    "write_above", "write_below", "row_hit_cap", "drain_level",
)  # fmt: skip
_LONG_AGO = -(2**40)


def new_state(device: Device, policy: Policy, ports: int, grain: int, log_rows: int) -> Int64s:
    """All records of an idle channel at tick 0, without requests.

    Args:
        device: Shape and times.
        policy: Controller.
        ports: Requesters; what each may have outstanding is unbounded.
        grain: Requests taken from a requester in a row.
        log_rows: Commands that can be noted before the core stops; 0: none is noted.
    """
    slots, places = _places(policy, device.banks)
    front_places = max(policy.read_depth, policy.write_depth)
    responses = 1 << (policy.response_depth + slots).bit_length()
    queues = d.BANKS + device.banks * d.BANK_COLUMNS
    fronts = queues + 2 * device.banks * places
    first_port = fronts + 2 * front_places
    ring = first_port + ports * d.PORT_COLUMNS
    first_slot = ring + responses * d.RESPONSE_COLUMNS
    log = first_slot + slots * d.SLOT_COLUMNS
    m = np.zeros(log + log_rows * d.LOG_COLUMNS, dtype=np.int64)
    m[d.BANKS_END] = queues
    m[d.PORTS], m[d.PORTS_END] = first_port, ring
    m[d.RING], m[d.RING_MASK] = ring, responses - 1
    m[d.LOG], m[d.LOG_ROWS] = log, log_rows
    _set_constants(m, device, policy)
    m[d.GRAIN] = grain
    m[[d.COLUMN_AT, d.ROW_AT, d.RESPONSE_AT, d.SCHEDULE_AT]] = d.NEVER
    m[d.REFRESH_AT] = m[d.REFRESH_DUE] = device.t_refi
    m[d.WINDOW : d.WINDOW + 4] = _LONG_AGO
    m[[d.CLOCK, d.SHOWN, d.TAKEN, d.LAST_TAKEN]] = -1
    m[d.OLDEST] = d.NOBODY
    m[d.ROBIN] = m[d.LAST_BANK] = d.BANKS
    m[d.HOLDER], m[d.FREE_SLOT] = first_port, first_slot
    bank_table = m[d.BANKS : queues].reshape(-1, d.BANK_COLUMNS)
    bank_table[:, d.OPEN_ROW] = -1
    bank_table[:, d.ACTIVE] = d.NOBODY
    _set_queues(bank_table[:, d.QUEUE : d.WRITE_QUEUE], queues, places)
    _set_queues(bank_table[:, d.WRITE_QUEUE :], queues + device.banks * places, places)
    front_table = m[d.FRONT_READS : d.FRONT_WRITES + d.QUEUE_COLUMNS]
    _set_queues(front_table.reshape(-1, d.QUEUE_COLUMNS), fronts, front_places)
    port_table(m)[:, d.DEPTH] = d.NEVER
    slot_table = m[first_slot:log].reshape(-1, d.SLOT_COLUMNS)
    slot_table[:, d.NEXT_FREE] = first_slot + d.SLOT_COLUMNS * np.arange(1, slots + 1)
    return m


def port_table(m: Int64s) -> Int64s:
    """The ports' records, a view of shape (requesters, columns)."""
    return m[m[d.PORTS] : m[d.PORTS_END]].reshape(-1, d.PORT_COLUMNS)


def bank_addresses(numbers: Int64s) -> Int64s:
    """Where the records of banks are, by the banks' numbers; the same shape."""
    return d.BANKS + d.BANK_COLUMNS * numbers


def take_log(m: Int64s) -> Int64s:
    """The commands noted since the last call, shape (commands, columns); the log is empty then."""
    first, rows = int(m[d.LOG]), int(m[d.LOGGED])
    m[d.LOGGED] = 0
    return m[first : first + rows * d.LOG_COLUMNS].reshape(rows, d.LOG_COLUMNS).copy()


def _places(policy: Policy, banks: int) -> tuple[int, int]:
    """Requests that can wait in all, and in one queue of a bank."""
    buffers = policy.read_depth + policy.write_depth
    return {
        Kind.RTL: (policy.read_depth, policy.read_depth),
        Kind.RAMULATOR: (buffers + banks, max(policy.read_depth, policy.write_depth)),
        Kind.DRAMSIM3: (buffers + banks * policy.bank_depth, policy.bank_depth),
        Kind.DRAMSYS: (banks * policy.bank_depth, policy.bank_depth),
    }[policy.kind]


def _set_constants(m: Int64s, device: Device, policy: Policy) -> None:
    m[d.RCD_RD : d.RCD_RD + len(_TIMES)] = [getattr(device, name) for name in _TIMES]
    if policy.activate_ticks is not None:
        m[d.ACTIVATE_TICKS] = policy.activate_ticks
    if policy.half_clocks:
        m[d.EDGE_MASK] = device.edge_ticks - 1
    else:
        m[d.PPD] = 1
    m[d.BANK_BITS] = device.banks_per_group.bit_length() - 1
    m[d.GROUP_MASK] = device.banks_per_group * d.BANK_COLUMNS - 1
    m[d.KIND : d.KIND + len(_RULES)] = [getattr(policy, name) for name in _RULES]


def _set_queues(table: Int64s, first: int, places: int) -> None:
    """Empty queues, a row each; their places begin at an address."""
    table[:, [d.HIT, d.MISS]] = d.NOBODY
    table[:, d.PLACES] = first + places * np.arange(len(table))
