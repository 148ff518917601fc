"""Iteration time of a transformer on GPUs under tensor parallelism: a roofline of kernels.

Kernels run one after another, each for the longer of its arithmetic and its memory traffic, at
the shares of the peaks that the profile names:

- linear layers on all tokens of the iteration;
- grouped products of the experts: as many experts are read as the tokens need
  (``workloads.serving.experts``), tokens are gathered to them and their results summed;
- attention of each prompt chunk, and of the decoding requests together;
- norms, residuals, rotary embedding and activation functions: their memory traffic;
- two all-reduces a layer;
- the output head.

To these come the host's time an iteration and a fixed time for each layer with experts (routing,
sorting, many small launches). A layer that computes prompts computes them and the decoding requests
together; other layers the decoding requests alone. Activations are of 2 bytes.

Not modelled: losses from sizes that do not fill a kernel's tiles, overlap between kernels, memory
for activations, variation from iteration to iteration.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tlm.chips.gpu import Gpu
from tlm.errors import InputError
from workloads.models import Linear, Model
from workloads.serving.cost import Batch, DecodeCosts, Int64s, IterationCost, Work
from workloads.serving.energy import Traffic, traffic_energy_j
from workloads.serving.experts import busiest_share, distinct_experts
from workloads.serving.kv import BLOCK_TOKENS

_ELEMENT_BYTES = 2
# Activations of one hidden element in a layer: two norms and two residual sums, each reading two
# and writing two.
_PASSES_PER_HIDDEN = 8
# Of an element of queries, keys and values: read and written by the rotary embedding.
_PASSES_PER_HEAD = 2
# Of an element of a feed-forward network's width: gate and up read, their product written.
_PASSES_PER_FFN = 3
# Of a hidden element of a token at an expert: gathered (read, written), read again to be summed.
_PASSES_PER_ROUTED = 3


class _Piece(NamedTuple):
    """Time, energy of its operations and expert bytes of a part of an iteration."""

    seconds: float = 0.0
    energy_j: float = 0.0
    expert_bytes: float = 0.0


def _sum(*parts: tuple[float, _Piece]) -> _Piece:
    """Each part times its factor."""
    return _Piece(
        sum(factor * piece.seconds for factor, piece in parts),
        sum(factor * piece.energy_j for factor, piece in parts),
        sum(factor * piece.expert_bytes for factor, piece in parts),
    )


class GpuCost:
    """``ServingModel`` of a model on some GPUs of a server.

    Args:
        model: what is served.
        gpu: profile of a GPU.
        units: GPUs under tensor parallelism.
        expert_parallel: whole experts are dealt out to the GPUs, instead of a part of each.

    Raises:
        InputError: if the GPUs' memory cannot hold the weights.
    """

    def __init__(
        self, model: Model, gpu: Gpu, units: int, *, expert_parallel: bool = False
    ) -> None:
        self._model = model
        self._gpu = gpu
        self._units = units
        self._expert_parallel = expert_parallel
        room = units * gpu.memory_bytes * gpu.usable_memory
        if model.weight_bytes >= room:
            raise InputError(
                f"model '{model.name}' on {units} x {gpu.title}: weights take "
                f"{model.weight_bytes} bytes; allowed: less than the usable {room:.0f}"
            )
        self._free_bytes = int(room) - model.weight_bytes
        efficiency = gpu.efficiency
        self._flops = units * gpu.peak_flops
        self._bytes_per_s = units * gpu.memory_bandwidth_bytes_per_s * efficiency.bandwidth
        # Below as many heads of keys and values as GPUs, each GPU reads a head's whole cache.
        self._copies = max(1.0, units / model.decode_heads.kv_heads)
        self._layer = lru_cache(maxsize=1 << 15)(self._layer_uncached)
        self._stretch = lru_cache(maxsize=1 << 15)(self._stretch_uncached)
        self._head = lru_cache(maxsize=1 << 12)(self._head_uncached)
        self._all = range(model.layers)
        self._counts = model.count(self._all)

    @property
    def layers(self) -> int:
        """Layers of the model."""
        return self._model.layers

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of a token, copies on several GPUs counted."""
        return round(self._model.kv_bytes_per_token * self._copies)

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens of keys and values, in whole blocks, that fit beside the weights."""
        return self._free_bytes // self.kv_bytes_per_token // BLOCK_TOKENS * BLOCK_TOKENS

    @property
    def static_power_w(self) -> float:
        """Power of the GPUs without work."""
        return self._units * self._gpu.energy.idle_w

    def cost(self, batch: Batch) -> IterationCost:
        """Price of an iteration."""
        filled = self._all if batch.prefill_layers is None else batch.prefill_layers
        if not batch.prefills:
            filled = range(0)
        decode = batch.decode_tokens
        parts = [(1.0, self._stretch(batch.new_tokens, filled.start, filled.stop))]
        if decode:
            parts += [
                (1.0, self._stretch(decode, 0, filled.start)),
                (1.0, self._stretch(decode, filled.stop, self.layers)),
            ]
        if batch.prefills:
            counts = self._model.count(filled)
            for new, context in batch.prefills:
                parts.append((counts.full, self._prefill(new, context, None)))
                if counts.windowed:
                    window = self._window_tokens
                    parts.append((counts.windowed, self._prefill(new, context, window)))
        if batch.logit_rows:
            parts.append((1.0, self._head(batch.logit_rows)))
        base = _sum(*parts)
        seconds, energy_j = base.seconds, base.energy_j
        if decode:
            added_s, added_j = self._decode(
                batch.decode_sequences, batch.decode_context_tokens, batch.decode_width, min, max
            )
            seconds, energy_j = seconds + added_s, energy_j + added_j
        return IterationCost(*self._awake(seconds, energy_j), base.expert_bytes)

    def decode_costs(self, sequences: int, context_tokens: Int64s, width: int = 1) -> DecodeCosts:
        """Prices of iterations that only decode."""
        tokens = sequences * width
        base = _sum(
            (1.0, _Piece()),
            (1.0, self._stretch(tokens, 0, 0)),
            (1.0, self._stretch(tokens, 0, self.layers)),
            (1.0, self._head(tokens)),
        )
        added_s, added_j = self._decode(sequences, context_tokens, width, np.minimum, np.maximum)
        seconds, energy_j = self._awake(base.seconds + added_s, base.energy_j + added_j)
        return DecodeCosts(
            np.asarray(seconds),
            np.asarray(energy_j),
            np.full(len(context_tokens), base.expert_bytes),
        )

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the GPUs' peak in ``span_s``."""
        model = self._model
        macs = (
            work.token_layers * model.layer_macs_per_token / model.layers
            + work.pair_layers * model.attention_macs_per_pair / model.layers
            + work.logit_rows * model.head.weights
        )
        return 2 * macs / (self._flops * span_s)

    def _awake(self, seconds: Any, energy_j: Any) -> tuple[Any, Any]:
        """The host's time, and the energy of being awake all the time."""
        seconds = seconds + self._gpu.overhead.iteration_s
        return seconds, energy_j + self._units * self._gpu.energy.active_w * seconds

    @property
    def _window_tokens(self) -> int | None:
        window = self._model.sliding_window
        return None if window is None else window.tokens

    def _piece(self, seconds: float, traffic: Traffic, expert_bytes: float = 0.0) -> _Piece:
        return _Piece(seconds, traffic_energy_j(self._gpu.energy, traffic), expert_bytes)

    def _stretch_uncached(self, tokens: int, start: int, stop: int) -> _Piece:
        """Everything but attention of the layers from ``start`` to ``stop``."""
        if start >= stop or not tokens:
            return _Piece()
        counts = self._model.count(range(start, stop))
        parts = []
        if counts.dense:
            parts.append((float(counts.dense), self._layer(tokens, False)))
        if counts.experts:
            parts.append((float(counts.experts), self._layer(tokens, True)))
        return _sum(*parts)

    def _layer_uncached(self, tokens: int, experts: bool) -> _Piece:
        """Everything but attention of one layer."""
        model = self._model
        linears = model.attention_linears
        linears += model.shared_linears if experts else model.dense_linears
        width = model.weight_width_bytes
        parts = [(1.0, self._gemm(linear, tokens, width)) for linear in linears]
        parts += [(1.0, self._elementwise(tokens, experts)), (2.0, self._all_reduce(tokens))]
        if experts:
            parts.append((1.0, self._experts(tokens)))
        return _sum(*parts)

    def _gemm(self, linear: Linear, tokens: int, width_bytes: float) -> _Piece:
        flops = 2.0 * tokens * linear.weights
        moved = linear.weights * width_bytes + tokens * (linear.k + linear.n) * _ELEMENT_BYTES
        seconds = max(flops / (self._flops * self._gpu.efficiency.gemm), moved / self._bytes_per_s)
        return self._piece(seconds, Traffic(flops, moved))

    def _experts(self, tokens: int) -> _Piece:
        model, experts, gpu = self._model, self._model.experts, self._gpu
        assert experts is not None
        weights = sum(linear.weights for linear in model.expert_linears)
        needed = distinct_experts(experts.count, experts.active, tokens)
        pairs = float(tokens * experts.active)
        slowest = (needed / self._units, pairs / self._units)
        if self._expert_parallel:
            slowest = busiest_share(experts.count, experts.active, tokens, self._units)
        bandwidth = gpu.memory_bandwidth_bytes_per_s * gpu.efficiency.expert_bandwidth
        seconds = max(
            2 * slowest[1] * weights / (gpu.peak_flops * gpu.efficiency.expert_gemm),
            slowest[0] * model.expert_bytes / bandwidth,
        )
        # Every GPU gathers and sums its part of all pairs: whole rows of a part of each expert,
        # or of its own experts.
        copies = 1 if self._expert_parallel else self._units
        moved = copies * pairs * model.hidden * _ELEMENT_BYTES * _PASSES_PER_ROUTED
        moved += pairs * experts.width * _ELEMENT_BYTES * _PASSES_PER_FFN
        seconds += moved / self._bytes_per_s + gpu.overhead.expert_layer_s
        read = needed * model.expert_bytes
        return self._piece(seconds, Traffic(2 * pairs * weights, read + moved), read)

    def _elementwise(self, tokens: int, experts: bool) -> _Piece:
        model = self._model
        heads = model.attention_linears[0].n
        elements = self._units * model.hidden * _PASSES_PER_HIDDEN + heads * _PASSES_PER_HEAD
        if not experts:
            elements += (model.ffn_hidden or 0) * _PASSES_PER_FFN
        moved = float(tokens * elements * _ELEMENT_BYTES)
        return self._piece(moved / self._bytes_per_s, Traffic(0.0, moved))

    def _all_reduce(self, tokens: int) -> _Piece:
        if self._units == 1:
            return _Piece()
        gpu = self._gpu
        sent = 2 * (self._units - 1) / self._units * tokens * self._model.hidden * _ELEMENT_BYTES
        seconds = gpu.all_reduce_latency_s + sent / (gpu.link_bytes_per_s * gpu.efficiency.link)
        return self._piece(seconds, Traffic(0.0, 0.0, self._units * sent))

    def _prefill(self, new: int, context: int, window: int | None) -> _Piece:
        """Attention of a prompt chunk in one layer."""
        heads, kept = self._model.prefill_heads, self._model.decode_heads
        flops = 2.0 * visible_pairs(new, context, window) * heads.macs_per_pair
        seen = context + new if window is None else min(context + new, window + new)
        moved = self._copies * seen * kept.kv_heads * kept.kept_per_kv * _ELEMENT_BYTES
        seconds = max(
            flops / (self._flops * self._gpu.efficiency.attention), moved / self._bytes_per_s
        )
        return self._piece(seconds, Traffic(flops, moved))

    def _decode(
        self,
        sequences: int,
        context: Any,
        width: int,
        smaller: Callable[..., Any],
        larger: Callable[..., Any],
    ) -> tuple[Any, Any]:
        """Seconds and energy of the decoding requests' attention in all layers.

        ``context`` is a number, or an array of them with NumPy's functions for the last two.
        """
        counts, window = self._counts, self._window_tokens
        seconds, energy_j = self._decode_layer(sequences, context, width, larger)
        seconds, energy_j = counts.full * seconds, counts.full * energy_j
        if window is not None:
            seen = smaller(context, sequences * window)
            added_s, added_j = self._decode_layer(sequences, seen, width, larger)
            seconds = seconds + counts.windowed * added_s
            energy_j = energy_j + counts.windowed * added_j
        return seconds, energy_j

    def _decode_layer(
        self, sequences: int, context: Any, width: int, larger: Callable[..., Any]
    ) -> tuple[Any, Any]:
        heads = self._model.decode_heads
        pairs = context * width + sequences * (width * (width + 1) // 2)
        flops = pairs * (2.0 * heads.macs_per_pair)
        tokens = context + sequences * width
        moved = tokens * (self._copies * heads.kv_heads * heads.kept_per_kv * _ELEMENT_BYTES)
        seconds = larger(
            flops / (self._flops * self._gpu.efficiency.attention), moved / self._bytes_per_s
        )
        return seconds, traffic_energy_j(self._gpu.energy, Traffic(flops, moved))

    def _head_uncached(self, rows: int) -> _Piece:
        return self._gemm(self._model.head, rows, self._model.head_width_bytes)


def visible_pairs(new: int, context: int, window: int | None) -> float:
    """(Query token, visible token) pairs of a chunk under the causal mask and a window."""
    if window is None or context + new <= window:
        return new * context + new * (new + 1) / 2
    growing = max(0, window - context)
    return growing * context + growing * (growing + 1) / 2 + (new - growing) * window
