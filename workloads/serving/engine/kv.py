"""Paged key-value memory: blocks of 16 tokens, counted rather than placed.

A paged cache has no fragmentation between requests, so the number of free blocks is all that
decides admission and preemption.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import Protocol

from workloads.machine.kv_levels import BLOCK_TOKENS, blocks_of
from workloads.serving.load.request import Request

WATERMARK = 0.01


class Growth(Protocol):
    """The decoding requests as the memory sees them."""

    @property
    def width(self) -> int:
        """Tokens that a member stores in a step, at most."""
        ...

    @property
    def sequences(self) -> int:
        """Number of members."""
        ...

    @property
    def indices(self) -> Collection[int]:
        """The numbers of the members."""
        ...

    @property
    def blocks_due(self) -> int:
        """Blocks that the next step needs."""
        ...

    @property
    def due(self) -> Sequence[Request]:
        """The members that need them, each as often as it needs one."""
        ...

    def blocks_due_in(self, steps: int) -> int:
        """Blocks that the next steps need in all, if nobody joins or leaves."""
        ...


class KvCache(Protocol):
    """Where keys and values are kept."""

    @property
    def capacity_tokens(self) -> int:
        """Tokens that fit."""
        ...

    @property
    def peak_tokens(self) -> int:
        """Most tokens' worth of memory ever in use."""
        ...

    @property
    def spilled_tokens(self) -> int:
        """Tokens' worth of blocks that went to the second level."""
        ...

    def spilled_of(self, members: Growth) -> int | None:
        """Tokens' worth of the members' blocks in the second level; None: there is only one."""
        ...

    def most_tokens(self) -> int:
        """Tokens of the longest request that can be served alone."""
        ...

    def admit(self, request: Request, members: Growth, *, spare: bool) -> bool:
        """Take the blocks of a request's prompt; False, and nothing taken, if there is no room.

        Args:
            request: Who needs them.
            members: Who decodes; what their next step needs is left.
            spare: Leave 1 % of all blocks beyond that (vLLM's watermark, against preempting what
                was just admitted).
        """
        ...

    def steps(self, members: Growth, most: int) -> int:
        """Decode steps, ``most`` at most, that the members can take before memory runs out."""
        ...

    def grow(self, members: Growth, steps: int) -> None:
        """Take the blocks that the members' next steps need; there is room."""
        ...

    def release(self, request: Request, blocks: int) -> None:
        """Give back what a request holds: ``blocks`` in all."""
        ...


class BlockPool:
    """One level of memory for ``capacity_tokens`` tokens (whole blocks count).

    Attributes:
        total: Blocks.
        free: Of these, those that nobody holds.
        least_free: The fewest that ever were.
        watermark: That an admission leaves free while others run.
    """

    spilled_tokens = 0

    def __init__(self, capacity_tokens: int) -> None:
        self.total = capacity_tokens // BLOCK_TOKENS
        self.free = self.total
        self.least_free = self.total
        self.watermark = int(WATERMARK * self.total)

    @property
    def capacity_tokens(self) -> int:
        """Tokens that fit."""
        return self.total * BLOCK_TOKENS

    @property
    def peak_tokens(self) -> int:
        """Most tokens' worth of blocks ever in use."""
        return (self.total - self.least_free) * BLOCK_TOKENS

    def spilled_of(self, members: Growth) -> None:
        """There is one level."""

    def most_tokens(self) -> int:
        """Tokens of the longest request that can be served alone."""
        return self.capacity_tokens

    def admit(self, request: Request, members: Growth, *, spare: bool) -> bool:
        """Take the blocks of a request's prompt; False, and nothing taken, if there is no room."""
        blocks = blocks_of(request.to_prefill)
        if blocks > self.free - members.blocks_due - (self.watermark if spare else 0):
            return False
        self._take(blocks)
        return True

    def steps(self, members: Growth, most: int) -> int:
        """Decode steps, ``most`` at most, that the members can take before memory runs out."""
        # A member needs a block every so many tokens, the first at whichever.
        if members.sequences * (most * members.width // BLOCK_TOKENS + 1) <= self.free:
            return most
        if members.blocks_due_in(most) <= self.free:
            return most
        return bisect_right(range(1, most), self.free, key=members.blocks_due_in)

    def grow(self, members: Growth, steps: int) -> None:
        """Take the blocks that the members' next steps need; there is room."""
        if blocks := members.blocks_due_in(steps):
            self._take(blocks)

    def release(self, request: Request, blocks: int) -> None:
        """Give back what a request holds: ``blocks`` in all.

        Raises:
            RuntimeError: if more come back than are in use: the caller's books are wrong.
        """
        if not 0 <= blocks <= self.total - self.free:
            raise RuntimeError(f"{blocks} blocks returned with {self.total - self.free} in use")
        self.free += blocks

    def _take(self, blocks: int) -> None:
        if not 0 <= blocks <= self.free:
            raise RuntimeError(f"{blocks} blocks taken with {self.free} free")
        self.free -= blocks
        self.least_free = min(self.least_free, self.free)
