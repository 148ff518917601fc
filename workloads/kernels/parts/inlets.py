"""Blocks on their way between off-chip memory and the tiles that hand them on, or made them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tlm.interconnect.packets import TileSet
from tlm.program import Load, Operation, Store, Token
from tlm.program.data import Buffer
from workloads.kernels.parts.passes import Passes


@dataclass(frozen=True, slots=True)
class Inlet:
    """Brings blocks into buffer ``NAME.in`` of some tiles, which send each on before the next.

    What sends a block takes ``NAME.in.there`` and gives ``NAME.in.free``; of several transfers the
    first takes and the last gives.

    Attributes:
        name: What is brought.
        tiles: Where.
        sources: Buffers in off-chip memory, in the order in which they are sent on.
        flits: Length of a block.
        ahead: Whether a block is asked for when the one before it has been sent on; else only when
            it is its turn.
    """

    name: str
    tiles: Sequence[TileSet]
    sources: Sequence[str]
    flits: int
    ahead: bool

    def first(self) -> Iterator[Operation]:
        """To do before anything is sent on."""
        if self.ahead:
            yield from self._load(0)

    def before(self, number: int) -> Iterator[Operation]:
        """To do before a block is sent on."""
        if not self.ahead:
            yield from self._load(number)

    def after(self, number: int) -> Iterator[Operation]:
        """To do when a block has been sent on."""
        if self.ahead:
            yield from self._load(number + 1)

    def _load(self, number: int) -> Iterator[Operation]:
        for tiles in self.tiles if number < len(self.sources) else ():
            yield Load(
                tiles,
                self.flits,
                takes=(f"{self.name}.in.free",),
                arrivals=(f"{self.name}.in.there",),
                source=self.sources[number],
                target=f"{self.name}.in",
                label=self.name,
            )


def inlet_tokens(names: Sequence[str]) -> dict[str, Token]:
    """Tokens of inlets."""
    there = {f"{name}.in.there": Token() for name in names}
    return there | {f"{name}.in.free": Token(initial=1) for name in names}


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
