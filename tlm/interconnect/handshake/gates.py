"""Between router and tile, where the tile says of each flit when it moves."""

from tlm.compiled import compiled
from tlm.interconnect.handshake.events import look_at, schedule
from tlm.interconnect.handshake.flits import free_place_from
from tlm.interconnect.handshake.places import buffer_of
from tlm.interconnect.handshake.records import (
    NEVER,
    Address,
    FlitBuffer,
    Mesh,
    Node,
    Packet,
    Records,
    Table,
    What,
)
from tlm.interconnect.packets import PacketKind


@compiled
def taken(m: Records, node: Address, buffer: Address, flit: int, time: int) -> bool:
    """Whether the tile takes a flit of a buffer's packet now; else it is offered from ``time``."""
    if m[node + Node.TAKES] != 0:
        m[node + Node.TAKES] = 0
        return True
    if time <= m[Mesh.CLOCK]:
        m[Mesh.PENDING] += int(m[node + Node.OFFERED] == 0)
        m[node + Node.OFFERED], m[node + Node.OFFERED_FLIT] = buffer, flit
    elif m[node + Node.OFFER_AT] != time:
        m[node + Node.OFFER_AT] = time
        schedule(m, time, What.LOOK, buffer)
    return False


@compiled
def offered_flit(m: Records, node: Address) -> tuple[int, int]:
    """Packet, and place in it, of the flit that is offered to a tile."""
    buffer = m[node + Node.OFFERED]
    return m[buffer + FlitBuffer.FRONT_PACKET], m[node + Node.OFFERED_FLIT]


@compiled
def take_flit(m: Records, node: Address) -> None:
    """The tile takes in this cycle what it is offered."""
    m[node + Node.TAKES] = 1
    look_at(m, m[node + Node.OFFERED])
    m[node + Node.OFFERED] = 0
    m[Mesh.PENDING] -= 1


@compiled
def room_for_flit(m: Records, packets: Table, node: Address) -> int:
    """Cycle from which the router takes a flit of the tile's front packet; NEVER: not known yet."""
    if m[node + Node.QUEUE_HEAD] < 0:
        return NEVER
    combined = packets[m[node + Node.QUEUE_HEAD], Packet.KIND] >= PacketKind.SUM
    buffer = buffer_of(m, node, m[Mesh.OPERAND_SLOT] if combined else 0)
    return free_place_from(m, buffer)


@compiled
def put_in_flit(m: Records, node: Address) -> None:
    """The tile puts a flit in in this cycle."""
    m[node + Node.PUTS_IN] = 1
    look_at(m, buffer_of(m, node, 0))
