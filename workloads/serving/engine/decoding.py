"""The decoding requests, advanced together.

All of them emit a token in every decode step, so who needs a block and who finishes is known when
a request joins. Two calendars and a running sum make a step cost the changes, not the batch, and
a stretch of steps cost what one does.
"""

import heapq
from collections.abc import Collection

from workloads.machine.kv_levels import BLOCK_TOKENS, blocks_of
from workloads.serving.load.request import Request


class DecodingSet:
    """Requests that emit one token a step, in the order in which they joined.

    ``step`` counts the steps taken, ``sequences`` the members; ``context_tokens`` is the sum of
    their stored tokens.
    """

    width = 1

    def __init__(self) -> None:
        self.step = 0
        self.sequences = 0
        self.context_tokens = 0
        self._members: dict[int, Request] = {}
        self._block_due: list[dict[int, Request]] = [{} for _ in range(BLOCK_TOKENS)]
        self._finishing: dict[int, dict[int, Request]] = {}
        self._finish_steps: list[int] = []

    @property
    def indices(self) -> Collection[int]:
        """The numbers of the members."""
        return self._members.keys()

    @property
    def last(self) -> Request:
        """The member that joined last."""
        return next(reversed(self._members.values()))

    def join(self, request: Request) -> None:
        """Add a request whose keys and values are stored and that has tokens left to emit."""
        request.joined_step = self.step
        self.sequences += 1
        self.context_tokens += request.to_prefill
        self._members[request.index] = request
        self._due(request)[request.index] = request
        last = self._last_step(request)
        if last not in self._finishing:
            self._finishing[last] = {}
            heapq.heappush(self._finish_steps, last)
        self._finishing[last][request.index] = request

    def leave(self, request: Request) -> int:
        """Remove a member; returns the blocks it holds and books the tokens it has emitted."""
        self._remove(request)
        self._finishing[self._last_step(request)].pop(request.index)
        return self._settle(request)

    @property
    def tokens_due(self) -> int:
        """Tokens that the next step emits."""
        return self.sequences

    @property
    def blocks_due(self) -> int:
        """Blocks that the next step needs: one for each member whose blocks are full."""
        return len(self._block_due[self.step % BLOCK_TOKENS])

    @property
    def due(self) -> list[Request]:
        """The members whose blocks are full."""
        return list(self._block_due[self.step % BLOCK_TOKENS].values())

    def blocks_due_in(self, steps: int) -> int:
        """Blocks that the next steps need in all, if nobody joins or leaves."""
        pages = self._block_due
        if steps == 1:
            return len(pages[self.step % BLOCK_TOKENS])
        periods, rest = divmod(steps, BLOCK_TOKENS)
        first = self.step % BLOCK_TOKENS
        # As the pages come round, twice.
        due = sum(map(len, (pages + pages)[first : first + rest]))
        return periods * self.sequences + due

    def steps_to_finish(self) -> int:
        """Steps until a member emits its last token; there is at least one member."""
        while not self._finishing[self._finish_steps[0]]:
            del self._finishing[heapq.heappop(self._finish_steps)]
        return self._finish_steps[0] - self.step

    def advance(self, steps: int = 1) -> list[tuple[Request, int]]:
        """Take steps, at most those to the next finish: in each, every member emits a token.

        Returns:
            The members that emitted their last token, now removed, and the blocks each held.
        """
        self.context_tokens += self.sequences * steps
        self.step += steps
        if not self._finish_steps or self._finish_steps[0] > self.step:
            return []
        finished = self._finishing.pop(heapq.heappop(self._finish_steps)).values()
        for request in finished:
            self._remove(request)
        return [(request, self._settle(request)) for request in finished]

    def _remove(self, request: Request) -> None:
        self.sequences -= 1
        del self._members[request.index]
        del self._due(request)[request.index]

    def _settle(self, request: Request) -> int:
        steps = self.step - request.joined_step
        stored = request.to_prefill + steps
        request.emitted += steps
        self.context_tokens -= stored
        return blocks_of(stored)

    def _due(self, request: Request) -> dict[int, Request]:
        """The calendar page of the steps in which a member's blocks are full."""
        return self._block_due[(request.joined_step - request.to_prefill) % BLOCK_TOKENS]

    def _last_step(self, request: Request) -> int:
        left = request.output_tokens - request.emitted
        return request.joined_step + left
