"""What waits for what in a mesh that stands still: its Verilog shows that, its model says why."""

from tlm.errors import InputError
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Packets
from tlm.interconnect.zero_load import NocTiming


def told_waiting(rows: int, cols: int, timing: NocTiming, packets: Packets) -> str:
    """What the model of a mesh says of packets with which the Verilog stands still.

    Args:
        rows: Rows of the mesh.
        cols: Columns.
        timing: What its routers were measured to be like.
        packets: All that were sent, in the order of their numbers.

    Returns:
        The packets that wait for each other in a circle; or that the model does not hang.
    """
    try:
        HandshakeMesh(rows, cols, timing, reductions=bool(packets.reduces.any())).simulate(packets)
    except DeadlockError as hang:
        return f"by its model {hang}"
    except InputError as error:
        return f"its model cannot be asked: {error}"
    return "its model delivers all packets"
