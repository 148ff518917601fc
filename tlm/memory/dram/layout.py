"""Layout of a DRAM channel's records, and the channel before its first request."""

from dataclasses import fields
from itertools import accumulate

import numpy as np

from tlm.memory.dram import state
from tlm.memory.dram.controllers.controller import Controller
from tlm.memory.dram.device import Device
from tlm.memory.dram.state import Bank, Head, Port, Queue, Slot
from tlm.memory.tables import Int64s

_LONG_AGO = -(2**40)


def new_state(
    device: Device, controller: Controller, ports: int, grain: int, log_rows: int
) -> Int64s:
    """All records of an idle channel at tick 0, without requests.

    Args:
        device: Shape and times.
        controller: Its controller.
        ports: Requesters; what each may have outstanding is unbounded.
        grain: Requests taken from a requester in a row.
        log_rows: Commands that can be noted before the core stops; 0: none is noted.
    """
    device = controller.kept(device)
    room = controller.places(device.banks)
    responses = 1 << (controller.response_depth + room.total).bit_length()
    queues = state.BANKS + device.banks * state.BANK_COLUMNS
    sizes = (
        device.banks * room.bank, device.banks * room.bank, 2 * room.front,
        ports * state.PORT_COLUMNS, responses * state.RESPONSE_COLUMNS,
        room.total * state.SLOT_COLUMNS, log_rows * state.LOG_COLUMNS,
    )  # fmt: skip
    begins = list(accumulate(sizes, initial=queues))
    reads, writes, fronts, first_port, ring, first_slot, log, end = begins
    m = np.zeros(end, dtype=np.int64)
    _set_head(m, device, controller)
    m[Head.GRAIN] = grain
    m[Head.BANKS_END] = queues
    m[Head.PORTS], m[Head.PORTS_END], m[Head.HOLDER] = first_port, ring, first_port
    m[Head.RING], m[Head.RING_MASK] = ring, responses - 1
    m[Head.LOG], m[Head.LOG_ROWS] = log, log_rows
    m[Head.FREE_SLOT] = first_slot
    bank_table = m[state.BANKS : queues].reshape(-1, state.BANK_COLUMNS)
    bank_table[:, Bank.OPEN_ROW] = -1
    bank_table[:, Bank.OWN : Bank.QUEUE] = state.NOBODY
    _set_queues(bank_table[:, Bank.QUEUE : Bank.WRITE_QUEUE], reads, room.bank)
    _set_queues(bank_table[:, Bank.WRITE_QUEUE :], writes, room.bank)
    front_table = m[state.FRONT_READS : state.OWN].reshape(-1, state.QUEUE_COLUMNS)
    _set_queues(front_table, fronts, room.front)
    port_table(m)[:, Port.DEPTH] = state.NEVER
    slot_table = m[first_slot:log].reshape(-1, state.SLOT_COLUMNS)
    numbers = np.arange(1, room.total + 1)
    slot_table[:, Slot.NEXT_FREE] = first_slot + state.SLOT_COLUMNS * numbers
    return m


def port_table(m: Int64s) -> Int64s:
    """The ports' records, a view of shape (requesters, columns)."""
    return m[m[Head.PORTS] : m[Head.PORTS_END]].reshape(-1, state.PORT_COLUMNS)


def take_log(m: Int64s) -> Int64s:
    """The commands noted since the last call, shape (commands, columns); the log is empty then."""
    first, rows = int(m[Head.LOG]), int(m[Head.LOGGED])
    m[Head.LOGGED] = 0
    return m[first : first + rows * state.LOG_COLUMNS].reshape(rows, state.LOG_COLUMNS).copy()


def _set_head(m: Int64s, device: Device, controller: Controller) -> None:
    """Columns begin as what the device or the controller has of their names."""
    assert max(controller.own) < state.OWN + state.OWN_COLUMNS, "too many columns of a controller"
    known = {field.name.removeprefix("t_"): getattr(device, field.name) for field in fields(device)}
    for column in (*Head, *controller.own):
        name = column.name.lower()
        m[column] = known.get(name, getattr(controller, name, 0))
    m[Head.EDGE_MASK] = device.edge_ticks - 1
    m[Head.GROUP_MASK] = device.banks_per_group * state.BANK_COLUMNS - 1
    m[[Head.COLUMN_AT, Head.ROW_AT, Head.RESPONSE_AT, Head.MOVE_AT]] = state.NEVER
    m[[Head.REFRESH_AT, Head.REFRESH_DUE]] = device.t_refi
    m[state.WINDOW : state.WINDOW + 4] = _LONG_AGO
    m[[Head.CLOCK, Head.SHOWN, Head.TAKEN]] = -1


def _set_queues(table: Int64s, first: int, places: int) -> None:
    """Empty queues, a row each; their places begin at an address."""
    table[:, [Queue.HIT, Queue.MISS]] = state.NOBODY
    table[:, Queue.PLACES] = first + places * np.arange(len(table))
