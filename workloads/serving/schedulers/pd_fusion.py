"""Prefill and decoding fused by a budget."""

from heapq import heapreplace

from tlm.errors import InputError
from workloads.serving.schedulers.base import Chunk, Plan, Queue

DEFAULT_CHUNK_TOKENS = 256
DEFAULT_BUDGET_UNITS = 128
DEFAULT_CHUNK_UNITS = 32


class PdFusion:
    """The budget of NpuSim (section 4.3.2).

    A decoding request takes one unit of an iteration's budget, whether it drafts or not: units are
    counted in requests, as the paper knows no drafts. A prompt chunk of fixed size takes
    ``chunk_units``. Decoding requests come first; all of them run even if they exceed the
    budget, and then no prompt does. What they leave goes to chunks, first come first served; a
    prompt may get several. Each rank has such a budget. The paper gives no figures: the defaults
    are this project's.

    Args:
        chunk_tokens: Tokens of a chunk; the last of a prompt is shorter and costs as much.
        budget_units: Budget of an iteration.
        chunk_units: Price of a chunk.
        micro_batches: That pass a pipeline in an iteration, each with that budget. Decoding
            requests fill one after another, and chunks go to the others: a prompt gets no more of
            them than one has room for.
    """

    keeps_prompts = False

    def __init__(
        self,
        chunk_tokens: int = DEFAULT_CHUNK_TOKENS,
        budget_units: int = DEFAULT_BUDGET_UNITS,
        chunk_units: int = DEFAULT_CHUNK_UNITS,
        micro_batches: int = 1,
    ) -> None:
        if chunk_tokens < 1:
            raise InputError(f"token budget: found {chunk_tokens}; allowed: 1 or more")
        if not 1 <= chunk_units <= budget_units:
            raise InputError(
                f"chunk units: found {chunk_units}; allowed: 1 to the budget of {budget_units}"
            )
        self._chunk_tokens = chunk_tokens
        self._budget_units = budget_units
        self._chunk_units = chunk_units
        self._micro_batches = micro_batches

    def plan(self, queue: Queue) -> Plan:
        """Chunks for what the decoding requests leave of the budget."""
        most = self._budget_units // self._chunk_units
        chunks, loads = [], self._loads(queue, most)
        started = iter(tuple(queue.prefilling))
        while loads[0] < most and (request := next(started, None) or queue.admit()) is not None:
            pieces = min(most - loads[0], -(-request.left_to_prefill // self._chunk_tokens))
            tokens = min(request.left_to_prefill, pieces * self._chunk_tokens)
            chunks.append(Chunk(request, tokens))
            heapreplace(loads, loads[0] + pieces)
        return Plan(chunks)

    def _loads(self, queue: Queue, most: int) -> list[int]:
        """Of all micro-batches what is no room for chunks, in chunks, the least first."""
        decoding, budget = -(-queue.decoding // queue.ranks), self._budget_units
        loads = []
        for number in range(self._micro_batches):
            left = budget * (number + 1) - decoding
            loads.append(most - min(max(left, 0), budget) // self._chunk_units)
        return sorted(loads * queue.ranks)
