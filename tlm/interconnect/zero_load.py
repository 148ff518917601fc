"""Closed forms of the network without contention: the `perf` level, and the arithmetic of `lt`.

The laws are those of rtl/noc/router.sv; their constants are measured (calibration/experiments).
"""

from dataclasses import dataclass

from tlm.errors import InputError


@dataclass(frozen=True, slots=True)
class NocTiming:
    """What the timing of a mesh is made of.

    Attributes:
        hop_cycles: From the write into a router's buffer to the write into the next one.
        ejection_cycles: From the write into the last router's buffer to the tile's port.
        fifo_depth: Flits that a router's input buffer holds.
        multicast_gap_cycles: Idle cycles between multicast packets as long as the buffer.
        flit_bytes: Payload of a flit.
        output_depth: Flits that a router's output buffers; 0 without.
        reduce_cycles: From the meeting of operands to their result.
        y_first: Packets go along the column first.
        cut_through: A multicast branch and a reduction wait for room for the whole packet.
        loopback: A tile in the destinations of its own multicast gets a copy.
    """

    hop_cycles: int
    ejection_cycles: int
    fifo_depth: int
    multicast_gap_cycles: int
    flit_bytes: int
    output_depth: int = 0
    reduce_cycles: int = 1
    y_first: bool = False
    cut_through: bool = True
    loopback: bool = True

    def __post_init__(self) -> None:
        """Hold that it can be built.

        Raises:
            InputError: naming the field.
        """
        buffered = int(self.output_depth > 0)
        least = {
            "hop_cycles": 1 + buffered,
            "ejection_cycles": 1 + buffered,
            "fifo_depth": 1,
            "multicast_gap_cycles": 0,
            "flit_bytes": 1,
            "output_depth": 0,
            "reduce_cycles": 0,
        }
        for name, allowed in least.items():
            if getattr(self, name) < allowed:
                raise InputError(f"{name}: found {getattr(self, name)}; allowed: {allowed} or more")

    def head_cycles(self, hops: int) -> int:
        """From the head flit's injection handshake to its ejection handshake."""
        return self.ejection_cycles + hops * self.hop_cycles

    def unicast_cycles(self, hops: int, flits: int) -> int:
        """From the head flit's injection handshake to the tail flit's ejection handshake."""
        return self.head_cycles(hops) + flits - 1

    def multicast_cycles(self, hops: int, flits: int) -> int:
        """The same for a multicast whose farthest destination is ``hops`` away.

        A transfer longer than a buffer is cut into packets as long as one, and a rest; each full
        packet but the first waits until the buffer behind it is empty. The rest finds room enough.
        """
        full_packets = flits // self.fifo_depth
        waits = max(full_packets - 1, 0) * self.multicast_gap_cycles if hops else 0
        return self.unicast_cycles(hops, flits) + waits

    def reduction_cycles(self, hops: int, flits: int) -> int:
        """The same for a reduction whose farthest operand is ``hops`` from the root.

        All operands are offered together. Each packet but the first of a transfer that is cut waits
        until the buffer behind has room for all of it.
        """
        per_hop = self.hop_cycles + self.reduce_cycles
        full, rest = divmod(flits, self.fifo_depth)
        waits = max(full - 1, 0) * per_hop
        if full and rest:
            waits += max(rest + per_hop - self.fifo_depth, 0)
        latency = self.ejection_cycles + self.reduce_cycles + hops * per_hop + flits - 1
        return latency + (waits if hops else 0)
