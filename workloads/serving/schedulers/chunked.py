"""Chunked prefill."""

from tlm.errors import InputError
from workloads.serving.schedulers.base import Chunk, Queue

DEFAULT_TOKEN_BUDGET = 512


class Chunked:
    """Stall-free batching as in Sarathi-Serve (OSDI 2024, algorithm 3).

    An iteration has a budget of tokens. Decoding requests come first, one token each; prompts fill
    the rest, a started one before new ones, the last cut to what is left.
    """

    def __init__(self, token_budget: int = DEFAULT_TOKEN_BUDGET) -> None:
        if token_budget < 1:
            raise InputError(f"token budget: found {token_budget}; allowed: 1 or more")
        self.token_budget = token_budget

    def plan(self, queue: Queue) -> list[Chunk]:
        """Prompt chunks within what the decoding requests leave of the budget."""
        left = self.token_budget - queue.decoding
        chunks = []
        started = iter(tuple(queue.prefilling))
        while left > 0 and (request := next(started, None) or queue.admit()) is not None:
            tokens = min(request.left_to_prefill, left)
            chunks.append(Chunk(request, tokens))
            left -= tokens
        return chunks
