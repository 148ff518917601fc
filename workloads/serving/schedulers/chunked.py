"""Chunked prefill."""

from tlm.errors import InputError
from workloads.serving.schedulers.base import Chunk, Plan, Queue

DEFAULT_TOKEN_BUDGET = 512


class Chunked:
    """Stall-free batching as in Sarathi-Serve (OSDI 2024, algorithm 3).

    An iteration has a budget of tokens. Decoding requests come first, one token each or a draft and
    one more; prompts fill the rest, a started one before new ones, the last cut to what is left.

    Args:
        token_budget: Tokens of an iteration, or of each micro-batch of one.
        micro_batches: That pass a pipeline in an iteration; no chunk is longer than one of them.
    """

    keeps_prompts = False

    def __init__(self, token_budget: int = DEFAULT_TOKEN_BUDGET, micro_batches: int = 1) -> None:
        if token_budget < 1:
            raise InputError(f"token budget: found {token_budget}; allowed: 1 or more")
        self.token_budget, self._micro_batches = token_budget, micro_batches

    def plan(self, queue: Queue) -> Plan:
        """Prompt chunks within what the decoding requests leave of the budget."""
        left = self.token_budget * self._micro_batches - queue.decode_tokens
        return Plan(fill(queue, left, self.token_budget)) if left > 0 else Plan()


def fill(queue: Queue, tokens: int, longest: int | None = None) -> list[Chunk]:
    """Chunks of started and then of new prompts, ``tokens`` in all if there are as many."""
    chunks, longest = [], longest or tokens
    started = iter(tuple(queue.prefilling))
    while tokens > 0 and (request := next(started, None) or queue.admit()) is not None:
        chunk = Chunk(request, min(request.left_to_prefill, tokens, longest))
        chunks.append(chunk)
        tokens -= chunk.tokens
    return chunks
