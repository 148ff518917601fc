"""Events of the mesh, and lists of what has to be looked at in a cycle."""

from tlm.compiled import compiled
from tlm.interconnect.handshake.records import (
    NEVER,
    ROUND,
    Address,
    FlitBuffer,
    Mesh,
    Output,
    Pending,
    Records,
    What,
)


@compiled
def schedule(m: Records, time: int, what: int, whom: int) -> None:
    """Put an event into the wheel.

    A wheel and no heap (`tlm.heap`): most events are few cycles ahead, and what one costs does not
    grow with the number of those that wait.
    """
    event = m[Mesh.UNUSED]
    assert event < m[Mesh.EVENTS_END]
    place = m[Mesh.WHEEL] + (time & (ROUND - 1))
    m[Mesh.UNUSED] = m[event + Pending.NEXT]
    m[event + Pending.NEXT] = m[place]
    m[event + Pending.WHEN] = time
    m[event + Pending.WHAT] = what
    m[event + Pending.WHOM] = whom
    m[place] = event
    m[Mesh.PENDING] += 1


@compiled
def report(m: Records, time: int, what: int, whom: int) -> None:
    """Tell the caller in the cycle in which it happens: this one, or one to come."""
    if time > m[Mesh.CLOCK]:
        schedule(m, time, what, whom)
        return
    place = m[Mesh.REPORTS] + 2 * m[Mesh.REPORTED]
    m[place], m[place + 1] = what, whom
    m[Mesh.REPORTED] += 1


@compiled
def look_at(m: Records, buffer: Address) -> None:
    """List a buffer of which more may be known."""
    if m[buffer + FlitBuffer.LISTED] == 0:
        m[buffer + FlitBuffer.LISTED] = 1
        m[m[Mesh.STACK] + m[Mesh.TOP]] = buffer
        m[Mesh.TOP] += 1


@compiled
def mark(m: Records, output: Address) -> None:
    """List an output that may have to be granted in this cycle."""
    if m[output + Output.LISTED] == 0:
        m[output + Output.LISTED] = 1
        m[m[Mesh.MARKED] + m[Mesh.MARKS]] = output
        m[Mesh.MARKS] += 1


@compiled
def ask(m: Records, time: int, output: Address, requester: int) -> None:
    """Stand in line at an output from a cycle on, this one at the earliest."""
    if time > m[Mesh.CLOCK]:
        schedule(m, time, requester, output)
    else:
        ask_now(m, output, requester)


@compiled
def ask_now(m: Records, output: Address, requester: int) -> None:
    """Stand in line at an output from this cycle on."""
    if m[output + Output.ASKING] == 0 and m[Mesh.CLOCK] < m[output + Output.FREE_FROM] < NEVER:
        schedule(m, m[output + Output.FREE_FROM], What.NOBODY, output)
    m[output + Output.WAITED] -= m[Mesh.CLOCK]
    m[output + Output.ASKING] |= 1 << m[Mesh.PLACE_OF + requester]
    mark(m, output)
