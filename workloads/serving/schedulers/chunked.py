"""Chunked prefill."""

from tlm.errors import InputError
from workloads.serving.schedulers.base import Chunk, Plan, Queue

DEFAULT_TOKEN_BUDGET = 512


class Chunked:
    """Stall-free batching as in Sarathi-Serve (OSDI 2024, algorithm 3).

    An iteration has a budget of tokens. Decoding requests come first, one token each or a draft and
    one more; prompts fill the rest, a started one before new ones, the last cut to what is left.
    """

    keeps_prompts = False

    def __init__(self, token_budget: int = DEFAULT_TOKEN_BUDGET) -> None:
        if token_budget < 1:
            raise InputError(f"token budget: found {token_budget}; allowed: 1 or more")
        self.token_budget = token_budget

    def plan(self, queue: Queue) -> Plan:
        """Prompt chunks within what the decoding requests leave of the budget."""
        left = self.token_budget - queue.decode_tokens
        return Plan(fill(queue, left)) if left > 0 else Plan()


def fill(queue: Queue, tokens: int) -> list[Chunk]:
    """Chunks of started and then of new prompts, ``tokens`` in all if there are as many."""
    chunks: list[Chunk] = []
    for request in queue.prefilling:
        if tokens <= 0:
            return chunks
        chunks.append(Chunk(request, min(request.left_to_prefill, tokens)))
        tokens -= chunks[-1].tokens
    while tokens > 0 and (admitted := queue.admit()) is not None:
        chunks.append(Chunk(admitted, min(admitted.left_to_prefill, tokens)))
        tokens -= chunks[-1].tokens
    return chunks
