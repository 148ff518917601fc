"""Sums along lines of tiles by streams: a word passes a tile while the next one comes.

Chains run inwards to their roots, and each tile adds its own words to those that come
(`tlm.program.Relay`). In one level the whole line is a chain. In two, as in WaferLLM's K-tree, it
is cut into groups of G tiles side by side; chains sum up each group at its tile G // 2, and another
chain joins these roots, at the middle one of them. A routing stage costs beta beside its links, and
the length of a block counts once a level.

On P tiles in P / G groups of G, with r = floor(G / 2) and the root at floor(P / G / 2) G + r, a
word goes through max(r, G - 1 - r) + max(floor(P / G / 2), P / G - 1 - floor(P / G / 2)) stages.
Where G does not divide P the last group has the rest: half a group at least, half of one too many
at most. So the groups' roots are evenly spaced.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.transfer_times import arrival_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Buffer, Engine, Operation, Relay, Token, Work
from workloads.kernels.parts.line import Lines
from workloads.kernels.parts.relayed import RelayedParts


class Chain(NamedTuple):
    """Evenly spaced places of a line, and the one at which their words meet."""

    segment: range
    root: int

    @property
    def sides(self) -> tuple[int, int]:
        """Stages on either side of the root."""
        before = (self.root - self.segment[0]) // self.segment.step
        return before, len(self.segment) - 1 - before

    @property
    def stages(self) -> int:
        """Stages of the longer side."""
        return max(self.sides)


@dataclass(frozen=True)
class Tree:
    """Groups of a line, and the chain of their roots; a line of one group has no such chain."""

    groups: tuple[Chain, ...]
    roots: Chain | None

    @cached_property
    def sides(self) -> tuple[tuple[int, int], ...]:
        """Of each group, stages on either side of its root."""
        return tuple(group.sides for group in self.groups)

    @property
    def root(self) -> int:
        """Where the sum is."""
        return self.groups[0].root if self.roots is None else self.roots.root

    @property
    def stages(self) -> int:
        """Routing stages on the longest way."""
        above = 0 if self.roots is None else self.roots.stages
        return max(group.stages for group in self.groups) + above

    def hops(self, length: int) -> int:
        """Links of an all-reduction: to the root from the farther end of the line, and back."""
        return 2 * max(self.root, length - 1 - self.root)


def whole_line(length: int, root: int) -> Tree:
    """One chain (WaferLLM's pipeline has its root at the end)."""
    return Tree((Chain(range(length), root),), None)


def tree_of(length: int, size: int) -> Tree:
    """Groups of some size, the last of which has the rest."""
    middle = size // 2
    count = _count(length, size)
    bounds = [*range(0, count * size, size)[:count], length]
    groups = tuple(
        Chain(range(first, last), first + middle)
        for first, last in zip(bounds, bounds[1:], strict=False)
    )
    if count == 1:
        return Tree(groups, None)
    places = range(middle, groups[-1].root + 1, size)
    return Tree(groups, Chain(places, places[count // 2]))


def tree_of_groups(length: int, count: int) -> Tree:
    """A tree of some number of groups.

    Raises:
        InputError: if evenly spaced groups cannot be so many.
    """
    sizes = {_count(length, size): size for size in range(length, 0, -1)}
    if count not in sizes:
        near = [min(sizes, key=lambda each: (abs(each - count), each))]
        raise InputError(
            f"--groups: found {count} evenly spaced groups of {length} tiles; allowed beside it: "
            f"{near[0]}"
        )
    exact = length % count == 0
    return tree_of(length, length // count if exact else sizes[count])


@lru_cache(1024)
def best_tree(length: int, beta: int, alpha: int) -> Tree:
    """The tree of the least latency: ``beta`` cycles a stage and ``alpha`` a hop.

    Of equals that with the larger groups, which needs fewer roots.
    """
    # Of trees of all sizes, without making them: the last group is the longest.
    size = np.arange(length, 0, -1)
    count, middle = _count(length, size), size // 2
    last = length - (count - 1) * size
    stages = np.maximum(middle, last - 1 - middle) + count // 2
    root = middle + count // 2 * size
    latency = 2 * np.maximum(root, length - 1 - root) * alpha + stages * beta
    return tree_of(length, int(size[np.argmin(latency)]))


def _count(length: int, size: Any) -> Any:
    """Groups of some size up to the length, or of each of some sizes, if each has its root."""
    return (length - 1 - size // 2) // size + 1


@dataclass(frozen=True, slots=True)
class StreamedSum:
    """A (all-)reduction of sums along lines, by streams.

    Attributes:
        lines: The lines.
        tree: How the chains lie on each.
        name: First part of the names of its tokens.
        value: Buffer of the parts, and of the sum.
        there: Token of the parts; given again where the sum is.
        flits: Length of a part.
        stage_cycles: From a word's arrival at a tile to its leaving.
        fixed_cycles: Of an all-reduction, beside its streams.
        parts: How parts go on tiles that store before they pass on; None: word by word.
    """

    lines: Lines
    tree: Tree
    name: str
    value: str
    there: str
    flits: int
    stage_cycles: int
    fixed_cycles: int = 0
    parts: RelayedParts | None = None

    def tokens(self) -> dict[str, Token]:
        """Tokens that the program needs for it, beside ``there``."""
        return {f"{self.name}.group": Token(), f"{self.name}.total": Token()}

    def buffers(self, part: Buffer) -> dict[str, Buffer]:
        """It needs none beside that of the parts: roots keep sums there."""
        return {}

    def reduce(self) -> Iterator[Operation]:
        """The sum at the root of every line, with token ``NAME.total``."""
        group, total = f"{self.name}.group", f"{self.name}.total"
        for chain in self.tree.groups:
            yield self._chain(chain, self.there, total if self.tree.roots is None else group)
        if self.tree.roots is not None:
            yield self._chain(self.tree.roots, group, total)

    def all_reduce(self) -> Iterator[Operation]:
        """The sum everywhere, where the parts were."""
        yield from self.reduce()
        root, total = self.tree.root, f"{self.name}.total"
        if self.fixed_cycles:
            tiles = self.lines.tiles(range(root, root + 1))
            yield Work(
                Engine.CONTROL,
                tiles,
                self.fixed_cycles,
                takes=(total,),
                gives=(total,),
                label=self.name,
            )
        yield self.lines.multicast(
            root,
            self.flits,
            takes=(total,),
            arrivals=(self.there,),
            source=self.value,
            target=self.value,
            label=self.name,
        )

    def _chain(self, chain: Chain, takes: str, arrives: str) -> Relay:
        return self.lines.relay(
            chain.root,
            chain.segment,
            self.flits,
            takes=(takes,),
            arrivals=(arrives,),
            source=self.value,
            target=self.value,
            stage_cycles=self.stage_cycles,
            label=self.name,
        )


def streamed_reduce_cycles(streamed: StreamedSum, timing: NocTiming) -> int:
    """Cycles until the sum is at the root, all parts being there at the same time."""
    tree = streamed.tree
    alike = dict(zip(tree.sides, tree.groups, strict=True))
    cycles = {sides: _group_cycles(streamed, chain, timing) for sides, chain in alike.items()}
    ends = [cycles[sides] for sides in tree.sides]
    return ends[0] if tree.roots is None else _chain_cycles(streamed, tree.roots, ends, timing)


def streamed_all_reduce_cycles(streamed: StreamedSum, timing: NocTiming) -> int:
    """Cycles until the sum is everywhere."""
    root, length = streamed.tree.root, streamed.lines.length
    far = max(root, length - 1 - root)
    back = arrival_cycles(timing, far, streamed.flits, multicast=True)
    return streamed_reduce_cycles(streamed, timing) + streamed.fixed_cycles + back


def _group_cycles(streamed: StreamedSum, chain: Chain, timing: NocTiming) -> int:
    """When the root of a chain has added the last words; its members begin at once."""
    if streamed.parts is not None:
        return _chain_of_parts_cycles(streamed.parts, chain, [0] * len(chain.segment), timing)
    stage, word = streamed.stage_cycles, arrival_cycles(timing, chain.segment.step, 1)
    comes = [stages * (word + stage) - stage for stages in chain.sides if stages]
    return _root_cycles(streamed, 0, comes)


def _chain_cycles(streamed: StreamedSum, chain: Chain, begin: list[int], timing: NocTiming) -> int:
    """The same if its members begin at some times."""
    if streamed.parts is not None:
        return _chain_of_parts_cycles(streamed.parts, chain, begin, timing)
    word, comes = arrival_cycles(timing, chain.segment.step, 1), []
    for side in _inwards(chain):
        leaves = begin[side[0]]
        for place in side[1:-1]:
            leaves = max(begin[place], leaves + word + streamed.stage_cycles)
        comes.append(leaves + word)
    return _root_cycles(streamed, begin[chain.sides[0]], comes)


def _root_cycles(streamed: StreamedSum, begin: int, comes: list[int]) -> int:
    """The same from when the first words of each side come."""
    if not comes:
        return begin + streamed.flits - 1
    # Both sides share the root's port: a word a cycle.
    first = max(max(comes), min(comes) + streamed.flits) if len(comes) > 1 else comes[0]
    return max(begin, first + streamed.stage_cycles) + streamed.flits - 1


def _chain_of_parts_cycles(
    parts: RelayedParts, chain: Chain, begin: list[int], timing: NocTiming
) -> int:
    """The same of parts that are stored at every tile: the first one's way, then one by one."""
    hops, sides = chain.segment.step, _inwards(chain)
    way = arrival_cycles(timing, hops, parts.flits)
    comes = []
    for side in sorted(sides, key=len):  # the root adds what the shorter side brings first
        leaves = begin[side[0]]
        for place in side[1:-1]:
            leaves = max(begin[place], leaves + way) + parts.add_cycles
        comes.append(leaves + way)
    done = begin[chain.sides[0]]
    if not sides:
        return done
    for come in comes:
        done = max(done, come) + parts.add_cycles
    return done + (parts.count - 1) * parts.pace_cycles(timing, hops, len(sides))


def _inwards(chain: Chain) -> list[range]:
    """Members of either side by their numbers, from the outermost to the root."""
    before, after = chain.sides
    sides = range(before + 1), range(before + after, before - 1, -1)
    return [side for side in sides if len(side) > 1]
