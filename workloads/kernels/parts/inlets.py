"""Blocks on their way between off-chip memory and the tiles that hand them on, or made them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tlm.interconnect.packets import TileSet
from tlm.program import Load, Operation, Store, Token
from tlm.program.data import Buffer
from workloads.kernels.parts.passes import Passes


@dataclass(frozen=True, slots=True)
class Inlet:
    """Brings blocks into buffer ``NAME.in`` of some tiles, which send each on in turn.

    What sends a block takes ``NAME.in.there`` and gives ``NAME.in.free``; of several transfers the
    first takes and the last gives. Two buffers are ``NAME.in`` and ``NAME.in.1``, and so are their
    tokens.

    Attributes:
        name: What is brought.
        tiles: Where.
        sources: Buffers in off-chip memory, in the order in which they are sent on.
        flits: Length of a block.
        ahead: Whether a block is asked for when the one before it has been sent on; else only when
            it is its turn.
        buffers: For blocks that are asked for ``ahead``: 1 or 2.
    """

    name: str
    tiles: Sequence[TileSet]
    sources: Sequence[str]
    flits: int
    ahead: bool
    buffers: int = 1

    def buffer(self, number: int) -> str:
        """The buffer into which a block comes."""
        slot = number % self.buffers
        return f"{self.name}.in.{slot}" if slot else f"{self.name}.in"

    def first(self) -> Iterator[Operation]:
        """To do before anything is sent on."""
        for number in range(self.buffers if self.ahead else 0):
            yield from self.ask(number)

    def before(self, number: int) -> Iterator[Operation]:
        """To do before a block is sent on."""
        if not self.ahead:
            yield from self.ask(number)

    def after(self, number: int) -> Iterator[Operation]:
        """To do when a block has been sent on."""
        if self.ahead:
            yield from self.ask(number + self.buffers)

    def ask(self, number: int) -> Iterator[Operation]:
        """Load a block; nothing behind the last one."""
        buffer = self.buffer(number)
        for tiles in self.tiles if number < len(self.sources) else ():
            yield Load(
                tiles,
                self.flits,
                takes=(f"{buffer}.free",),
                arrivals=(f"{buffer}.there",),
                source=self.sources[number],
                target=buffer,
                label=self.name,
            )


def inlet_tokens(names: Sequence[str], buffers: int = 1) -> dict[str, Token]:
    """Tokens of inlets of so many buffers."""
    firsts = [f"{name}.in" for name in names]
    every = [*firsts, *(f"{first}.1" for first in firsts if buffers > 1)]
    there = {f"{buffer}.there": Token() for buffer in every}
    return there | {f"{buffer}.free": Token(initial=1) for buffer in every}


def store_totals(passes: Passes, state: int, target: str, flits: int) -> Iterator[Operation]:
    """The sums of a stream's rows go to off-chip memory, from a copy: the next stream has its own.

    Args:
        passes: On the tiles that store theirs.
        state: Buffers of the stream.
        target: Where to.
        flits: Their length.
    """
    there, free = "total.to.there", "total.to.free"
    yield passes("scale", f"total.{state}", "total.to", takes=(free,), gives=(there,))
    yield Store(
        passes.tiles,
        flits,
        takes=(there,),
        gives=(free,),
        source="total.to",
        target=target,
        label=passes.label,
    )


def outlet_tokens() -> dict[str, Token]:
    """Tokens of `store_totals`."""
    return {"total.to.there": Token(), "total.to.free": Token(initial=1)}


def staging(buffers: dict[str, Buffer], first: dict[str, str]) -> dict[str, Buffer]:
    """Buffers of inlets, and of `store_totals`; ``first`` names a buffer that is as large."""
    return {f"{name}.in": buffers[like] for name, like in first.items()} | {
        "total.to": buffers["total.0"]
    }
