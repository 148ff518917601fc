"""Requesters in front of a DRAM channel: offers, turns, and answers in the order of their time."""

from collections.abc import Callable

from tlm.compiled import Address, address, compiled, inlined
from tlm.memory.dram import state
from tlm.memory.dram.state import Asked, Head, Port, Records, Response, Table


@compiled
def next_port(m: Records, port: Address) -> Address:
    """Whose turn it is after a port's."""
    port = address(port + state.PORT_COLUMNS)
    return port if port < m[Head.PORTS_END] else address(m[Head.PORTS])


@inlined
def port_in_turn(m: Records) -> Address:
    """Whose turn it is in this tick; ACCEPT_AT is for those who are asked to set."""
    port = address(m[Head.HOLDER])
    if m[Head.HELD] >= m[Head.GRAIN]:
        port = next_port(m, port)
        m[Head.HOLDER], m[Head.HELD] = port, 0
    m[Head.ACCEPT_AT] = state.NEVER
    return port


@inlined
def offered(m: Records, requests: Table, t: int, port: Address) -> int:
    """The request that a port offers, or NOBODY."""
    request = m[port + Port.NEXT]
    if request >= m[port + Port.STOP] or m[port + Port.OUTSTANDING] >= m[port + Port.DEPTH]:
        return state.NOBODY
    begin = max(m[port + Port.OFFER_FROM], requests[request, Asked.BEGIN_REQ])
    if begin > t:
        state.lower(m, Head.ACCEPT_AT, begin)
        return state.NOBODY
    return request


@compiled
def _may_offer_from(m: Records, port: Address, t: int) -> None:
    """A port's next request may be offered from a tick on."""
    m[port + Port.OFFER_FROM] = max(m[port + Port.OFFER_FROM], t)
    m[port + Port.TICKET] = m[Head.NEXT_TICKET]
    m[Head.NEXT_TICKET] += 1


@inlined
def take(m: Records, requests: Table, t: int, port: Address) -> None:
    """Take the request that a port offers."""
    request = m[port + Port.NEXT]
    begin = max(m[port + Port.OFFER_FROM], requests[request, Asked.BEGIN_REQ])
    requests[request, Asked.BEGIN_REQ] = begin
    requests[request, Asked.END_REQ] = t
    m[port + Port.NEXT] += 1
    m[port + Port.OUTSTANDING] += 1
    _may_offer_from(m, port, t + m[Head.OFFER_AFTER_TAKEN])
    if port != m[Head.HOLDER]:
        m[Head.HOLDER], m[Head.HELD] = port, 0
    m[Head.HELD] += 1
    m[Head.TAKEN] = request
    m[Head.ACCEPT_AT] = t + 1


@inlined
def accept(
    m: Records,
    requests: Table,
    t: int,
    has_room: Callable[[Records, Table, int], bool],
    enter: Callable[[Records, Table, int, int, int], None],
) -> None:
    """Take one request, of requesters in turn, if somebody offers one and there is room.

    ``has_room`` and ``enter`` are the controller's.
    """
    if m[Head.ACCEPT_AT] > t:
        return
    port = port_in_turn(m)
    for _ in range(m[Head.PORTS], m[Head.PORTS_END], state.PORT_COLUMNS):
        request = offered(m, requests, t, port)
        if request >= 0 and has_room(m, requests, request):
            take(m, requests, t, port)
            enter(m, requests, t, request, port)
            return
        port = next_port(m, port)


@compiled
def _response(m: Records, number: int) -> Address:
    """Where the ring holds a response."""
    return address(m[Head.RING] + (number & m[Head.RING_MASK]) * state.RESPONSE_COLUMNS)


@compiled
def respond(m: Records, time: int, request: int, port: int) -> None:
    """Have an answer at a time; answers leave in order of time."""
    first = m[Head.FIRST_RESPONSE]
    number = first + m[Head.RESPONSES]
    m[Head.RESPONSES] += 1
    place = _response(m, number)
    while number > first:
        before = _response(m, number - 1)
        if m[before + Response.TIME] <= time:
            break
        for field in range(state.RESPONSE_COLUMNS):
            m[place + field] = m[before + field]
        place = before
        number -= 1
    m[place + Response.TIME] = time
    m[place + Response.REQUEST] = request
    m[place + Response.PORT] = port
    if number == first and m[Head.SHOWN] < 0:
        m[Head.RESPONSE_AT] = time


@compiled
def take_response(m: Records, requests: Table, t: int) -> None:
    """The oldest answer, which is shown, is taken."""
    answer = _response(m, m[Head.FIRST_RESPONSE])
    port, request = address(m[answer + Response.PORT]), m[answer + Response.REQUEST]
    requests[request, Asked.END_RESP] = t
    if m[Head.RESPONSES] >= m[Head.RESPONSE_DEPTH]:
        state.lower(m, Head.COLUMN_AT, t + 1)
        state.lower(m, Head.ACCEPT_AT, t + 1)
    m[Head.FIRST_RESPONSE] += 1
    m[Head.RESPONSES] -= 1
    m[Head.LEFT] -= 1
    m[Head.SHOWN] = -1
    # Nobody shows the next while one is held back.
    held_back = requests[request, Asked.BEGIN_RESP] < t
    m[Head.SHOW_FROM] = t + 1 if held_back else t + m[Head.SHOW_AFTER]
    if m[port + Port.OUTSTANDING] == m[port + Port.DEPTH]:
        offer_from = t + m[Head.OFFER_AFTER_ANSWER]
        _may_offer_from(m, port, offer_from)
        state.lower(m, Head.ACCEPT_AT, offer_from)
    m[port + Port.OUTSTANDING] -= 1
    m[Head.RESPONSE_AT] = state.NEVER
    if m[Head.RESPONSES]:
        m[Head.RESPONSE_AT] = m[_response(m, m[Head.FIRST_RESPONSE]) + Response.TIME]
        if m[Head.BY_HAND]:
            m[Head.RESPONSE_AT] = max(m[Head.RESPONSE_AT], m[Head.SHOW_FROM])


@compiled
def show_responses(m: Records, requests: Table, t: int) -> None:
    """Answers whose time has come begin, and are taken at once if nobody takes them by hand."""
    while m[Head.RESPONSE_AT] <= t:
        request = m[_response(m, m[Head.FIRST_RESPONSE]) + Response.REQUEST]
        requests[request, Asked.BEGIN_RESP] = t
        if m[Head.BY_HAND]:
            m[Head.SHOWN] = request
            m[Head.RESPONSE_AT] = state.NEVER
        else:
            take_response(m, requests, t)
