"""Keys and values in two levels, as in NpuSim (section 4.2): SRAM, and a ring in main memory.

In SRAM they are kept block by block. What does not fit there spills: the request gets a buffer for
its whole length in main memory, at the end of a ring, into which its further blocks go. A buffer's
place is free again once it and all before it are given up. Blocks stay where they were put, and a
decoding request reads each from there.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from workloads.machine.kv_levels import BLOCK_TOKENS, blocks_of
from workloads.serving.engine.kv import WATERMARK, Growth
from workloads.serving.load.request import Request


class Ring:
    """Buffers given out in order and taken back in order, whatever the order they are given up."""

    def __init__(self, blocks: int) -> None:
        self.total = blocks
        self.free = blocks
        self._buffers: deque[tuple[int, int]] = deque()
        self._given_up: set[int] = set()

    def give_out(self, owner: int, blocks: int) -> None:
        """A buffer at the end; there is room."""
        self.free -= blocks
        self._buffers.append((owner, blocks))

    def give_up(self, owner: int) -> None:
        """A buffer is needed no more."""
        self._given_up.add(owner)
        while self._buffers and self._buffers[0][0] in self._given_up:
            first, blocks = self._buffers.popleft()
            self._given_up.remove(first)
            self.free += blocks


class SpillingPool:
    """Memory of ``sram_tokens`` and, behind it, a ring of ``ring_tokens`` (whole blocks count)."""

    def __init__(self, sram_tokens: int, ring_tokens: int) -> None:
        self._sram = sram_tokens // BLOCK_TOKENS
        self._sram_free = self._sram
        self._ring = Ring(ring_tokens // BLOCK_TOKENS)
        self._watermark = int(WATERMARK * self._ring.total)
        self._buffers = 0
        self._buffer_of: dict[int, int] = {}
        self._spilled_by: dict[int, int] = {}
        self._used = 0
        self._most_used = 0
        self._spilled = 0

    @property
    def capacity_tokens(self) -> int:
        """Tokens that fit in both levels."""
        return (self._sram + self._ring.total) * BLOCK_TOKENS

    @property
    def peak_tokens(self) -> int:
        """Most tokens' worth of blocks ever in use; what buffers reserve beyond is not counted."""
        return self._most_used * BLOCK_TOKENS

    @property
    def spilled_tokens(self) -> int:
        """Tokens' worth of blocks that went to the ring."""
        return self._spilled * BLOCK_TOKENS

    @property
    def free_blocks(self) -> tuple[int, int]:
        """Free blocks of the SRAM and of the ring."""
        return self._sram_free, self._ring.free

    def spilled_of(self, members: Growth) -> int:
        """Tokens' worth of the members' blocks in the ring."""
        spilled_by = self._spilled_by
        if not spilled_by:
            return 0
        return sum([spilled_by.get(index, 0) for index in members.indices]) * BLOCK_TOKENS

    def most_tokens(self) -> int:
        """Tokens of the longest request that can be served alone."""
        return max(self._sram, self._ring.total) * BLOCK_TOKENS

    def admit(self, request: Request, members: Growth, *, spare: bool) -> bool:
        """Take the blocks of a request's prompt; False, and nothing taken, if there is no room."""
        # Who decodes is served first, so that who is refused now is refused until one ends.
        blocks, due = blocks_of(request.to_prefill), members.due
        here = min(blocks, max(0, self._sram_free - len(due)))
        buffer = _whole_length(request) if here < blocks else 0
        spare_blocks = self._watermark if spare and buffer else 0
        if self._ring.free - self._ring_needs(due) - buffer < spare_blocks:
            return False
        self._keep(here)
        if here < blocks:
            self._spill(request, blocks - here)
        return True

    def steps(self, members: Growth, most: int) -> int:
        """Decode steps, ``most`` at most, that the members can take before memory runs out.

        Past the SRAM it is those up to the first that needs a block, or that one.
        """
        if members.blocks_due_in(most) <= self._sram_free:
            return most
        if due := members.due:
            return int(self._ring_needs(due) <= self._ring.free)
        return bisect_left(range(1, most), 1, key=members.blocks_due_in)

    def grow(self, members: Growth, steps: int) -> None:
        """Take the blocks that the members' next steps need; there is room."""
        if (blocks := members.blocks_due_in(steps)) <= self._sram_free:
            self._keep(blocks)
            return
        for request in members.due:
            if self._sram_free:
                self._keep(1)
            else:
                self._spill(request, 1)

    def release(self, request: Request, blocks: int) -> None:
        """Give back what a request holds: ``blocks`` in all.

        Raises:
            RuntimeError: if more come back than are in use: the caller's books are wrong.
        """
        spilled = self._spilled_by.pop(request.index, 0)
        if request.index in self._buffer_of:
            self._ring.give_up(self._buffer_of.pop(request.index))
        self._used -= blocks
        self._sram_free += blocks - spilled
        if not 0 <= self._sram_free <= self._sram or self._used < 0:
            raise RuntimeError(f"{blocks} blocks returned, {spilled} of them spilled, not in use")

    def _ring_needs(self, due: Sequence[Request]) -> int:
        """Blocks of new buffers if those who need a block get one each, in order."""
        # A draft may need several blocks, which all go into the one buffer.
        beyond = {request.index: request for request in due[self._sram_free :]}
        return sum(
            _whole_length(request)
            for index, request in beyond.items()
            if index not in self._buffer_of
        )

    def _keep(self, blocks: int) -> None:
        self._sram_free -= blocks
        self._count(blocks)

    def _spill(self, request: Request, blocks: int) -> None:
        if request.index not in self._buffer_of:
            self._buffers += 1
            self._buffer_of[request.index] = self._buffers
            self._ring.give_out(self._buffers, _whole_length(request))
        self._spilled_by[request.index] = self._spilled_by.get(request.index, 0) + blocks
        self._spilled += blocks
        self._count(blocks)

    def _count(self, blocks: int) -> None:
        self._used += blocks
        self._most_used = max(self._most_used, self._used)


def _whole_length(request: Request) -> int:
    """Blocks of all that a request will ever store; its last token is emitted, never stored."""
    return blocks_of(request.prompt_tokens + request.output_tokens - 1)
