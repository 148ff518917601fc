"""What an iteration is made of, and the protocol of a model on a chip that prices it."""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from workloads.models import Model, SlidingWindow

Float64s = NDArray[np.float64]
Truths = NDArray[np.bool_]
Int64s = NDArray[np.int64]


class Work(NamedTuple):
    """What iterations computed in all, recomputation and rejected drafts included.

    Tokens and (query token, visible token) pairs are counted once for each layer that computes
    them, as prompts may pass a part of the layers in an iteration, and layers with a sliding window
    compute fewer pairs.
    """

    token_layers: int
    pair_layers: int
    logit_rows: int


def macs_of(work: Work, model: Model) -> float:
    """Unpadded multiply-accumulates of ``work`` on a model."""
    return (
        work.token_layers * model.layer_macs_per_token / model.layers
        + work.pair_layers * model.attention_macs_per_pair / model.layers
        + work.logit_rows * model.head.weights
    )


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
        decode_sram_tokens: Of their tokens in the cache those that are in the tiles' SRAM; the rest
            is in the memory behind it.
    """

    prefills: tuple[tuple[int, int], ...]
    decode_sequences: int
    decode_context_tokens: int
    logit_rows: int
    prefill_layers: range | None = None
    decode_width: int = 1
    decode_sram_tokens: int = 0

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens computed."""
        tokens = 0
        for new, _ in self.prefills:
            tokens += new
        return tokens

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
        return sum([visible_pairs(new, context, None) for new, context in self.prefills])

    @property
    def decode_pairs(self) -> int:
        """(Query token, visible token) pairs of the decoding requests under the causal mask."""
        width = self.decode_width
        own = self.decode_sequences * (width * (width + 1) // 2)
        return self.decode_context_tokens * width + own

    def work(self, layers: int, window: SlidingWindow | None = None) -> Work:
        """What the batch is on a model of ``layers`` layers, some of which may have a window."""
        return work_of([self], layers, window)


def work_of(batches: Iterable[Batch], layers: int, window: SlidingWindow | None = None) -> Work:
    """What batches are on a model of ``layers`` layers, some of which may have a window."""
    everywhere = range(layers)
    windowed = 0 if window is None else window.count(everywhere)
    tokens = pairs = rows = 0
    for batch in batches:  # in one go: a run has many
        prefills, sequences, context, logit_rows, passed, width, _ = batch
        filled = layers if passed is None else len(passed)
        for new, before in prefills:
            tokens += new * filled
            pairs += (new * before + new * (new + 1) // 2) * filled
        tokens += sequences * width * layers
        pairs += (context * width + sequences * (width * (width + 1) // 2)) * layers
        rows += logit_rows
        if window is not None:
            there = window.count(everywhere if passed is None else passed)
            seen = sum([visible_pairs(*chunk, window.tokens) for chunk in prefills])
            pairs -= (batch.prefill_pairs - seen) * there
            pairs -= max(0, context - sequences * window.tokens) * width * windowed
    return Work(tokens, pairs, rows)


def visible_pairs(new: int, context: int, window: int | None) -> int:
    """(Query token, visible token) pairs of a chunk under the causal mask and a window."""
    if window is None or context + new <= window:
        return new * context + new * (new + 1) // 2
    growing = max(0, window - context)
    return growing * context + growing * (growing + 1) // 2 + (new - growing) * window


def in_sram(context_tokens: int, spilled_tokens: int | None) -> int:
    """Of the decoding requests' tokens in the cache those in SRAM; None: it has none of them."""
    # Spilled blocks count as full.
    return 0 if spilled_tokens is None else max(0, context_tokens - spilled_tokens)


def layers_in_sram(layers: int, context_tokens: Int64s, spilled_tokens: int | None) -> list[int]:
    """Layers that find tokens of the cache in SRAM, of stretches as `decode_costs` has them."""
    if spilled_tokens is None:
        return [0] * len(context_tokens)
    share = np.maximum(0, context_tokens - spilled_tokens) / np.maximum(1, context_tokens)
    kept: list[int] = np.rint(layers * share).astype(np.int64).tolist()
    return kept


class IterationCost(NamedTuple):
    """Price of an iteration.

    Attributes:
        seconds: Its time, positive, host time included.
        energy_j: Its dynamic energy; None where that is not known.
        expert_bytes: Bytes of expert weights read, over all mixture-of-experts layers.
        made_of: What it is counted as; nothing where nobody asks.
    """

    seconds: float
    energy_j: float | None
    expert_bytes: float
    made_of: Sequence[Hashable] = ()


class DecodeCosts(NamedTuple):
    """Prices of a stretch of iterations that only decode, in runs of alike ones.

    Attributes:
        seconds: Time of an iteration of each run.
        energy_j: Its dynamic energy; None where that is not known.
        times: Iterations of each run, one after the other.
        expert_bytes: Of every iteration: they compute as many tokens.
        made_of: What an iteration of each run is counted as; nothing where nobody asks.
    """

    seconds: Sequence[float]
    energy_j: Sequence[float | None]
    times: Sequence[int]
    expert_bytes: float
    made_of: Sequence[Sequence[Hashable]] = ()


class OfModel:
    """What prices of a model have of it, if all requests are in one place (`ServingModel`)."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def ranks(self) -> int:
        """All requests are in one place."""
        return 1

    @property
    def layers(self) -> int:
        """Layers of the model."""
        return self._model.layers

    @property
    def sliding_window(self) -> SlidingWindow | None:
        """The window that some of its layers see."""
        return self._model.sliding_window


class ServingModel(Protocol):
    """A model on a chip, or on a pool of its units."""

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens whose keys and values fit beside the weights."""
        ...

    @property
    def kv_sram_tokens(self) -> int | None:
        """Tokens whose keys and values have room in the tiles' SRAM; None: no tiles."""
        ...

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of a token, all layers."""
        ...

    @property
    def ranks(self) -> int:
        """Places that requests are dealt out to, each with a scheduler's budgets: dies, or 1."""
        ...

    @property
    def layers(self) -> int:
        """Layers of the model."""
        ...

    @property
    def sliding_window(self) -> SlidingWindow | None:
        """The window that some of the layers see; None: all layers see all tokens."""
        ...

    @property
    def static_power_w(self) -> float | None:
        """Power drawn whether or not anything is computed; None where there are no figures."""
        ...

    def cost(self, batch: Batch) -> IterationCost:
        """Price of a batch that is not empty."""
        ...

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """Prices of iterations that only decode, each equal to ``cost`` of its batch.

        Args:
            sequences: Decoding requests, the same in all iterations.
            context_tokens: Of each iteration the cached tokens, summed over the requests.
            width: Tokens computed for each request; all of them pass the output head.
            spilled_tokens: Of the cached tokens, in each iteration, those in the memory behind the
                SRAM that has the rest; None: all of them.
        """
        ...

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the chip's peak in ``span_s``."""
        ...
