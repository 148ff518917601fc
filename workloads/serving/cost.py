"""What an iteration is made of and what its time depends on."""

from typing import NamedTuple, Protocol


class Batch(NamedTuple):
    """The work of one iteration.

    ``prefills`` holds (new tokens, tokens already in the cache) of each prompt chunk. Decoding
    requests, one new token each, are given by their number and the sum of their cached tokens, so
    that a batch is described in constant time; models take their contexts as equal.
    ``logit_rows`` counts the tokens that pass the output head: those that give a next token.
    """

    prefills: tuple[tuple[int, int], ...]
    decode_sequences: int
    decode_context_tokens: int
    logit_rows: int

    @property
    def new_tokens(self) -> int:
        """Tokens computed in the iteration."""
        return sum(new for new, _ in self.prefills) + self.decode_sequences

    @property
    def attention_pairs(self) -> int:
        """(Query token, visible token) pairs under the causal mask."""
        prefill = sum(new * context + new * (new + 1) // 2 for new, context in self.prefills)
        return prefill + self.decode_context_tokens + self.decode_sequences


class IterationCost(Protocol):
    """Time of an iteration."""

    def seconds(self, batch: Batch) -> float:
        """Time of a batch that is not empty, positive."""
        ...


class Work(NamedTuple):
    """What the iterations of a run computed in all, recomputation included."""

    tokens: int
    logit_rows: int
    attention_pairs: int


class ServingModel(IterationCost, Protocol):
    """A model on a chip: iteration times, room for keys and values, peak."""

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens whose keys and values fit beside the weights."""
        ...

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the chip's peak in ``span_s``."""
        ...
