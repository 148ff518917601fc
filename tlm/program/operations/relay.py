"""Vectors that the tiles of a line add up, word by word on the way."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program.arithmetic import Integers, wrap
from tlm.program.lines import Placement
from tlm.program.operations.base import Operation, Tile, Trees, Unicasts, indices
from tlm.program.operations.collectives import Collective


@dataclass(frozen=True, slots=True)
class Relay(Collective):
    """The members of each root's segment stream a sum to it, one after the other.

    The outermost tile of either side sends its words one a cycle to the next member inwards. Each
    adds its own to those that come, and passes every word on at once; a word is a packet of one
    flit. The root, which is a member, adds what both sides bring. So the network only carries
    unicasts, and the tiles' interfaces combine.

    A member begins on its own, when it has taken ``takes`` and its part of ``slots`` is known; it
    gives ``gives`` when its last word has left. The root gives these, and ``arrivals``, when it has
    added the last word.

    Attributes:
        stage_cycles: From a word's arrival at a tile to its leaving, its sum included.
    """

    stage_cycles: int = 1

    inwards: ClassVar[bool] = True

    @property
    def own_cycles(self) -> tuple[int, ...]:
        """See `Collective`."""
        return (self.stage_cycles,)

    def moves(self) -> Iterator[Unicasts | Trees]:
        """See `Transfer`: from each member to the next one inwards."""
        members = indices(self.segment)
        for place, lines in self.roots_by_place():
            sources = members[members != place]
            if len(sources):
                inwards = sources + np.sign(place - sources) * self.segment.step
                yield self.unicasts(lines, sources, inwards)

    @property
    def longest_hops(self) -> int:
        """See `Operation`."""
        return self.segment.step if len(self.segment) > 1 else 0

    def on_lines(self, lines: Placement) -> Iterator[tuple[Operation, list[TileSet]]]:
        """See `Operation`; the next member has to be as far as before everywhere."""
        for piece, passed in Collective.on_lines(self, lines):
            if passed:
                raise InputError("a relay passes lines out of use; allowed: none between its tiles")
            yield piece, passed

    def neighbours(self, tile: Tile, root: Tile) -> tuple[list[Tile], Tile | None]:
        """Members from which words come to a tile, and to which it sends; None: it is the root."""
        (line, place), (_, end), step = self.on_grid(*tile), self.on_grid(*root), self.segment.step
        outer = [
            self.on_grid(line, at)
            for at in (place - step, place + step)
            if at in self.segment and (at - place) * (place - end) >= 0
        ]
        inner = place + (step if end > place else -step)
        return outer, None if place == end else self.on_grid(line, inner)

    def combined(self, blocks: list[Integers], bits: int) -> Integers:
        """See `Transfer`."""
        return wrap(np.sum(blocks, axis=0), bits)

    def _combining_fault(self) -> str | None:
        if self.stage_cycles < 1:
            return f"stage_cycles is {self.stage_cycles}; allowed: 1 or more"
        outside = [place for place in self.root_lines[1].tolist() if place not in self.segment]
        if outside:
            return f"a root lies at {outside[0]}; allowed: members of the segment"
        return None
