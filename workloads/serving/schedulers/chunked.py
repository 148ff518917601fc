"""Chunked prefill."""

from heapq import heapreplace

from tlm.errors import InputError
from workloads.serving.schedulers.base import Chunk, Plan, Queue

DEFAULT_TOKEN_BUDGET = 512


class Chunked:
    """Stall-free batching as in Sarathi-Serve (OSDI 2024, algorithm 3).

    An iteration has a budget of tokens, which is that of each rank and of each micro-batch there.
    Decoding requests come first, one token each or a draft and one more; prompts fill the rest, a
    started one before new ones, the last cut to what is left.

    Args:
        token_budget: Tokens of an iteration, on a rank or of a micro-batch.
        micro_batches: That pass a pipeline in an iteration.
    """

    keeps_prompts = False

    def __init__(self, token_budget: int = DEFAULT_TOKEN_BUDGET, micro_batches: int = 1) -> None:
        if token_budget < 1:
            raise InputError(f"token budget: found {token_budget}; allowed: 1 or more")
        self.token_budget, self.micro_batches = token_budget, micro_batches

    def plan(self, queue: Queue) -> Plan:
        """Prompt chunks within what the decoding requests leave of the budget."""
        lots = queue.ranks * self.micro_batches
        left = self.token_budget - -(-queue.decode_tokens // lots)
        return Plan(fill(queue, left, lots)) if left > 0 else Plan()


def fill(queue: Queue, tokens: int, lots: int) -> list[Chunk]:
    """Chunks of started and then of new prompts, ``tokens`` in each lot if there are as many.

    A prompt goes to the lot with the fewest tokens, and is cut to what is left there.
    """
    chunks, loads = [], [0] * lots
    started = iter(tuple(queue.prefilling))
    while (room := tokens - loads[0]) > 0:
        request = next(started, None) or queue.admit()
        if request is None:
            break
        taken = min(request.left_to_prefill, room)
        chunks.append(Chunk(request, taken))
        heapreplace(loads, loads[0] + taken)
    return chunks
