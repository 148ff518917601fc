"""What stands behind a router's outputs: buffers that are read at a pace, and a tile.

They hold what a router promises: an output is never left in the middle of a multicast or of a
result for want of room, and one is begun only when there is room for all of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.rtl.benches.router_driver import Cycle, Kind, Router
from tests.rtl.benches.routes import LOCAL, PORTS


@dataclass(slots=True)
class Neighbours:
    """Buffers behind the outputs 1 to 4, for operands and for all else, and the tile.

    Attributes:
        router: The router.
        reads: Whether a place is freed, or the tile takes a flit, in a cycle; asked for each.
        held: Flits in the buffers by output.
        operands: Flits in the buffers for operands.
        seen: How often the last rooms were just enough, or a buffer was full.
    """

    router: Router
    reads: Callable[[], bool]
    held: list[int] = field(default_factory=lambda: [0] * PORTS)
    operands: list[int] = field(default_factory=lambda: [0] * PORTS)
    seen: dict[str, int] = field(default_factory=lambda: {"multicasts": 0, "results": 0, "full": 0})

    async def cycle(self, hold: int = 0) -> Cycle:
        """A cycle of the router, with what these buffers have room for."""
        depth = self.router.variant.depth
        tile = int(self.reads())
        outcome = await self.router.cycle(
            ready=tile | _with_room(self.held, depth),
            free=tuple(depth - held for held in self.held[1:]),
            hold=hold,
            operand_ready=tile | _with_room(self.operands, depth),
            operand_free=tuple(depth - held for held in self.operands[1:]),
        )
        for output, (number, flit) in outcome.offered.items():
            if output != LOCAL:
                self._judge(output, number, flit)
        for output in range(1, PORTS):
            reduces = output in outcome.taken and self._reduces(outcome.taken[output][0])
            for buffer, entering in ((self.held, not reduces), (self.operands, reduces)):
                read = buffer[output] > 0 and self.reads()
                buffer[output] += (output in outcome.taken and entering) - read
        return outcome

    def _reduces(self, number: int) -> bool:
        return self.router.sent[number].reduces

    def _judge(self, output: int, number: int, flit: int) -> None:
        packet, variant = self.router.sent[number], self.router.variant
        room = variant.depth - (self.operands if packet.reduces else self.held)[output]
        self.seen["full"] += room == 0
        if not variant.cut_through or packet.kind == Kind.UNICAST:
            return
        # A multicast may enter the output's own buffer on the strength of the places there.
        if packet.kind == Kind.MULTICAST and variant.output_depth:
            return
        assert room >= packet.flits - flit, f"{packet} at {output}, flit {flit}: {room} free"
        if flit == 0 and room < variant.depth:
            self.seen["results" if packet.reduces else "multicasts"] += 1


def _with_room(held: list[int], depth: int) -> int:
    return sum((held[output] < depth) << output for output in range(1, PORTS))
