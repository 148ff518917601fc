"""What an iteration is made of, and the protocol of a model on a chip that prices it."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]


class Work(NamedTuple):
    """What iterations computed in all, recomputation and rejected drafts included.

    Tokens and (query token, visible token) pairs are counted once for each layer that computes
    them, as prompts may pass a part of the layers in an iteration.
    """

    token_layers: int
    pair_layers: int
    logit_rows: int


class Batch(NamedTuple):
    """The work of one iteration.

    Decoding requests are given by their number and the sum of their cached tokens, so that a batch
    is described in constant time; models take their contexts as equal.

    Attributes:
        prefills: (New tokens, tokens already in the cache) of each prompt chunk.
        decode_sequences: Decoding requests.
        decode_context_tokens: Their tokens in the cache before this iteration, summed.
        logit_rows: Tokens that pass the output head: those that give a next token.
        prefill_layers: The contiguous layers that compute ``prefills`` beside the decoding
            requests; the other layers compute the decoding requests only. None: all layers.
        decode_width: Tokens computed for each decoding request: 1, or a draft to be verified and
            the token after it.
    """

    prefills: tuple[tuple[int, int], ...]
    decode_sequences: int
    decode_context_tokens: int
    logit_rows: int
    prefill_layers: range | None = None
    decode_width: int = 1

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens computed."""
        return sum(new for new, _ in self.prefills)

    @property
    def decode_tokens(self) -> int:
        """Tokens computed for decoding requests."""
        return self.decode_sequences * self.decode_width

    @property
    def new_tokens(self) -> int:
        """Tokens computed, in the layers that compute prompts."""
        return self.prefill_tokens + self.decode_tokens

    @property
    def prefill_pairs(self) -> int:
        """(Query token, visible token) pairs of the prompt chunks under the causal mask."""
        return sum(new * context + new * (new + 1) // 2 for new, context in self.prefills)

    @property
    def decode_pairs(self) -> int:
        """(Query token, visible token) pairs of the decoding requests under the causal mask."""
        width = self.decode_width
        own = self.decode_sequences * (width * (width + 1) // 2)
        return self.decode_context_tokens * width + own

    @property
    def attention_pairs(self) -> int:
        """All pairs, in the layers that compute prompts."""
        return self.prefill_pairs + self.decode_pairs

    def work(self, layers: int) -> Work:
        """What the batch is on a model of ``layers`` layers."""
        filled = layers if self.prefill_layers is None else len(self.prefill_layers)
        tokens = pairs = 0
        for new, context in self.prefills:
            tokens += new
            pairs += new * context + new * (new + 1) // 2
        return Work(
            tokens * filled + self.decode_tokens * layers,
            pairs * filled + self.decode_pairs * layers,
            self.logit_rows,
        )


class IterationCost(NamedTuple):
    """Price of an iteration.

    Attributes:
        seconds: Its time, positive, host time included.
        energy_j: Its dynamic energy; None where the chip's profile has no figures for it.
        expert_bytes: Bytes of expert weights read, over all mixture-of-experts layers.
    """

    seconds: float
    energy_j: float | None
    expert_bytes: float


class DecodeCosts(NamedTuple):
    """Prices of a stretch of iterations that only decode, one entry an iteration."""

    seconds: Float64s
    energy_j: Float64s | None
    expert_bytes: Float64s


class ServingModel(Protocol):
    """A model on a chip, or on a pool of its units."""

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens whose keys and values fit beside the weights."""
        ...

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of a token, all layers."""
        ...

    @property
    def layers(self) -> int:
        """Layers of the model."""
        ...

    @property
    def static_power_w(self) -> float | None:
        """Power drawn whether or not anything is computed; None where there are no figures."""
        ...

    def cost(self, batch: Batch) -> IterationCost:
        """Price of a batch that is not empty."""
        ...

    def decode_costs(self, sequences: int, context_tokens: Int64s, width: int = 1) -> DecodeCosts:
        """Prices of iterations that only decode, each equal to ``cost`` of its batch.

        Args:
            sequences: Decoding requests, the same in all iterations.
            context_tokens: Of each iteration the cached tokens, summed over the requests.
            width: Tokens computed for each request; all of them pass the output head.
        """
        ...

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the chip's peak in ``span_s``."""
        ...
