"""Layered prefill."""

from tlm.errors import InputError
from workloads.serving.schedulers.base import Chunk, Plan, Queue
from workloads.serving.schedulers.chunked import fill

DEFAULT_WAVEFRONT_TOKENS = 8192
_MOST_TOKENS_OF = ((512, 1), (1024, 2), (2048, 4), (4096, 8))
_MOST_GROUPS = 16


class Layered:
    """Prompts move through groups of layers, one group an iteration (the layered-prefill paper).

    The prompts under way are a wavefront. While it moves nothing is admitted, and all decoding
    requests emit a token in every iteration, beside the wavefront in its group of layers and alone
    in the others. When it has passed the last group the next is formed, first come first served,
    of the rest of a prompt that was cut and then of new ones, up to ``wavefront_tokens`` on each
    rank; the last may be cut, which makes a hybrid with chunked prefill. Decoding requests take
    nothing of it.

    The rules, preemption of decoding requests only among them, are those of the authors' public
    engine; its groups are the paper's one in 512 tokens, rounded up to a power of 2.

    Args:
        groups: Groups of layers; None: 1 up to 512 tokens, 2 up to 1024, 4 up to 2048, 8 up to
            4096, else 16. Tokens are those of the fullest rank. There are never more than layers.
        wavefront_tokens: Most tokens of a rank that move together.
    """

    keeps_prompts = True

    def __init__(
        self, groups: int | None = None, wavefront_tokens: int = DEFAULT_WAVEFRONT_TOKENS
    ) -> None:
        if groups is not None and groups < 1:
            raise InputError(f"layer groups: found {groups}; allowed: 1 or more")
        if wavefront_tokens < 1:
            raise InputError(f"token budget: found {wavefront_tokens}; allowed: 1 or more")
        self._fixed_groups = groups
        self._wavefront_tokens = wavefront_tokens
        self._chunks: list[Chunk] = []
        self._groups = 0
        self._next_group = 0

    def plan(self, queue: Queue) -> Plan:
        """The wavefront in its next group of layers."""
        if self._next_group == self._groups:
            self._chunks = fill(queue, self._wavefront_tokens, queue.ranks)
            self._groups = self._groups_of(queue)
            self._next_group = 0
        if not self._chunks:
            return Plan()
        first, end = (
            queue.layers * group // self._groups
            for group in (self._next_group, self._next_group + 1)
        )
        self._next_group += 1
        return Plan(self._chunks, range(first, end))

    def _groups_of(self, queue: Queue) -> int:
        if not self._chunks:
            return 0
        lengths = [chunk.tokens for chunk in self._chunks]
        tokens = max(*lengths, -(-sum(lengths) // queue.ranks))
        by_length = (groups for most, groups in _MOST_TOKENS_OF if tokens <= most)
        return min(queue.layers, self._fixed_groups or next(by_length, _MOST_GROUPS))
