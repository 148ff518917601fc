"""Events of the mesh, and lists of what has to be looked at in a cycle."""

from tlm.compiled import compiled
from tlm.interconnect.handshake import records as at
from tlm.interconnect.handshake.records import Address, Records

# mypy: disable-error-code="no-any-return, return-value"
# What comes out of an array is no int to the type checker, as it is to Numba.


@compiled
def lowest(bits: int) -> int:
    """Number of the lowest bit that is set, of the first six; found without a branch."""
    bit = bits & -bits
    return (bit > 1) + (bit > 2) + (bit > 4) + (bit > 8) + (bit > 16)


@compiled
def schedule(m: Records, time: int, what: int, whom: int) -> None:
    """Put an event into the wheel."""
    event = m[at.UNUSED]
    assert event < m[at.EVENTS_END]
    place = m[at.WHEEL] + (time & (at.ROUND - 1))
    m[at.UNUSED] = m[event + at.NEXT]
    m[event + at.NEXT] = m[place]
    m[event + at.WHEN] = time
    m[event + at.WHAT] = what
    m[event + at.WHOM] = whom
    m[place] = event
    m[at.PENDING] += 1


@compiled
def report(m: Records, time: int, what: int, whom: int) -> None:
    """Tell the caller in the cycle in which it happens: this one, or one to come."""
    if time > m[at.CLOCK]:
        schedule(m, time, what, whom)
        return
    place = m[at.REPORTS] + 2 * m[at.REPORTED]
    m[place], m[place + 1] = what, whom
    m[at.REPORTED] += 1


@compiled
def look_at(m: Records, buffer: Address) -> None:
    """List a buffer of which more may be known."""
    if m[buffer + at.LISTED] == 0:
        m[buffer + at.LISTED] = 1
        m[m[at.STACK] + m[at.TOP]] = buffer
        m[at.TOP] += 1


@compiled
def mark(m: Records, output: Address) -> None:
    """List an output that may have to be granted in this cycle."""
    if m[output + at.LISTED_OUTPUT] == 0:
        m[output + at.LISTED_OUTPUT] = 1
        m[m[at.MARKED] + m[at.MARKS]] = output
        m[at.MARKS] += 1


@compiled
def ask(m: Records, time: int, output: Address, requester: int) -> None:
    """Stand in line at an output from a cycle on, this one at the earliest."""
    if time > m[at.CLOCK]:
        schedule(m, time, requester, output)
        return
    if m[output + at.ASKING] == 0 and m[at.CLOCK] < m[output + at.FREE_FROM] < at.NEVER:
        schedule(m, m[output + at.FREE_FROM], at.NOBODY, output)
    m[output + at.ASKING] |= 1 << m[at.PLACE_OF + requester]
    mark(m, output)
