"""The mesh at handshake level: every packet, grant and buffer of rtl/noc, compiled."""

from tlm.interconnect.handshake.deadlock import DeadlockError
from tlm.interconnect.handshake.mesh import HandshakeMesh

__all__ = ["DeadlockError", "HandshakeMesh"]
