"""Iteration time of a transformer on GPUs under tensor parallelism: a roofline of kernels.

Kernels run one after another, each for the longer of its arithmetic and its memory traffic, at
the shares of the peaks that the profile names:

- linear layers on all tokens of the iteration;
- grouped products of the experts: those that the tokens need (``workloads.serving.experts``), each
  for the longer of reading it and computing its tokens, as popular experts are bound by arithmetic
  in the batch in which others are bound by memory; tokens are gathered to them and results summed;
- attention of each prompt chunk, in whole blocks of queries and in whole rounds of blocks over the
  processors, and of the decoding requests together;
- norms, residuals, rotary embedding and activation functions: their memory traffic;
- two all-reduces a layer;
- the output head.

A layer with experts takes at least the time of its many launches (routing, sorting, grouped
products), which run ahead of the kernels; to all layers comes the host's time of an iteration. A
layer that computes prompts computes them and the decoding requests
together; other layers the decoding requests alone. Activations are of 2 bytes.

Not modelled: losses of products from sizes that do not fill their tiles, overlap between kernels,
memory for activations, variation from iteration to iteration.
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
from workloads.serving.experts import device_of, expected_loads
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
    """Time, energy of its operations and expert bytes of a part of an iteration.

    Time and energy are numbers, or arrays over several iterations.
    """

    seconds: Any = 0.0
    energy_j: Any = 0.0
    expert_bytes: float = 0.0


_NO_ATTENTION = (_Piece(), _Piece())


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
        self._kinds = lru_cache(maxsize=1 << 12)(self._kinds_uncached)
        self._head = lru_cache(maxsize=1 << 12)(self._head_uncached)
        self._all = range(model.layers)

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
        attention = _NO_ATTENTION
        if batch.decode_sequences:
            attention = self._decode(
                batch.decode_sequences, batch.decode_context_tokens, batch.decode_width, min, max
            )
        total = self._head(batch.logit_rows)
        for start, stop in ((0, filled.start), (filled.stop, self.layers)):
            total = self._stretch(total, start, stop, batch.decode_tokens, attention, max)
        prefill = self._prefills(batch.prefills)
        both = tuple(
            _sum((1.0, first), (1.0, then)) for first, then in zip(attention, prefill, strict=True)
        )
        total = self._stretch(total, filled.start, filled.stop, batch.new_tokens, both, max)
        return IterationCost(*self._awake(total))

    def decode_costs(self, sequences: int, context_tokens: Int64s, width: int = 1) -> DecodeCosts:
        """Prices of iterations that only decode."""
        attention = self._decode(sequences, context_tokens, width, np.minimum, np.maximum)
        tokens = sequences * width
        total = self._stretch(self._head(tokens), 0, self.layers, tokens, attention, np.maximum)
        seconds, energy_j, expert_bytes = self._awake(total)
        return DecodeCosts(seconds, energy_j, np.full(len(context_tokens), expert_bytes))

    def expert_seconds(self, tokens: int) -> float:
        """Time of routing and experts in all layers, of an iteration of so many tokens."""
        if self._model.experts is None:
            return 0.0
        return float(self._model.expert_layers * self._experts(tokens).seconds)

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the GPUs' peak in ``span_s``."""
        model = self._model
        macs = (
            work.token_layers * model.layer_macs_per_token / model.layers
            + work.pair_layers * model.attention_macs_per_pair / model.layers
            + work.logit_rows * model.head.weights
        )
        return 2 * macs / (self._flops * span_s)

    def _awake(self, total: _Piece) -> tuple[Any, Any, float]:
        """The host's time, and the energy of being awake all the time."""
        seconds = total.seconds + self._gpu.overhead.iteration_s
        awake_j = self._units * self._gpu.energy.active_w * seconds
        return seconds, total.energy_j + awake_j, total.expert_bytes

    @property
    def _window_tokens(self) -> int | None:
        window = self._model.sliding_window
        return None if window is None else window.tokens

    def _piece(self, seconds: Any, traffic: Traffic, expert_bytes: float = 0.0) -> _Piece:
        return _Piece(seconds, traffic_energy_j(self._gpu.energy, traffic), expert_bytes)

    def _stretch(
        self,
        total: _Piece,
        start: int,
        stop: int,
        tokens: int,
        attention: tuple[_Piece, ...],
        larger: Callable[..., Any],
    ) -> _Piece:
        """A total and the layers from ``start`` to ``stop``, if they have anything to compute.

        ``attention`` is that of a layer that sees all tokens, and of one that sees a window.
        """
        if start >= stop or not tokens:
            return total
        for experts, windowed, layers in self._kinds(start, stop):
            least_s = self._gpu.overhead.expert_layer_s if experts else 0.0
            base, seen = self._layer(tokens, experts), attention[windowed]
            total = _Piece(
                total.seconds + layers * larger(base.seconds + seen.seconds, least_s),
                total.energy_j + layers * (base.energy_j + seen.energy_j),
                total.expert_bytes + layers * base.expert_bytes,
            )
        return total

    def _kinds_uncached(self, start: int, stop: int) -> list[tuple[bool, bool, int]]:
        """Of layers from ``start`` to ``stop``: with experts, with a window, how many."""
        border = min(max(self._model.dense_layers, start), stop)
        parts = ((False, range(start, border)), (True, range(border, stop)))
        counts = [(experts, self._model.count(layers)) for experts, layers in parts]
        kinds = [
            (experts, windowed, each)
            for experts, count in counts
            for windowed, each in ((False, count.full), (True, count.windowed))
        ]
        return [kind for kind in kinds if kind[2]]

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
        needed, tokens_each = expected_loads(experts.count, experts.active, tokens)
        bandwidth = gpu.memory_bandwidth_bytes_per_s * gpu.efficiency.expert_bandwidth
        flops = gpu.peak_flops * gpu.efficiency.expert_gemm
        each = np.maximum(
            needed * (model.expert_bytes / bandwidth), tokens_each * (2 * weights / flops)
        )
        if self._expert_parallel:
            seconds = float(np.bincount(device_of(experts.count, self._units), each).max())
        else:
            seconds = float(each.sum()) / self._units
        pairs = float(tokens * experts.active)
        # Every GPU gathers and sums its part of all pairs: whole rows of a part of each expert,
        # or of its own experts.
        copies = 1 if self._expert_parallel else self._units
        moved = copies * pairs * model.hidden * _ELEMENT_BYTES * _PASSES_PER_ROUTED
        moved += pairs * experts.width * _ELEMENT_BYTES * _PASSES_PER_FFN
        seconds += moved / self._bytes_per_s
        read = float(needed.sum()) * model.expert_bytes
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

    def _unfilled(self, prefills: tuple[tuple[int, int], ...]) -> float:
        """How much longer attention of prompts takes as its blocks do not fill the processors."""
        rows, processors = self._gpu.attention_rows, self._gpu.processors
        heads = -(-self._model.query_heads // self._units)
        blocks = heads * sum(-(-new // rows) for new, _ in prefills)
        return -(-blocks // processors) * processors / blocks

    def _prefill(self, new: int, context: int, window: int | None, slower: float) -> _Piece:
        """Attention of a prompt chunk in one layer."""
        heads, kept = self._model.prefill_heads, self._model.decode_heads
        rows = self._gpu.attention_rows
        padded = -(-new // rows) * rows / new
        flops = 2.0 * visible_pairs(new, context, window) * heads.macs_per_pair
        seen = context + new if window is None else min(context + new, window + new)
        moved = self._copies * seen * kept.kv_heads * kept.kept_per_kv * _ELEMENT_BYTES
        seconds = max(
            slower * padded * flops / (self._flops * self._gpu.efficiency.attention),
            moved / self._bytes_per_s,
        )
        return self._piece(seconds, Traffic(flops, moved))

    def _prefills(self, prefills: tuple[tuple[int, int], ...]) -> tuple[_Piece, _Piece]:
        """Attention of all prompt chunks, in a layer that sees all and in one with a window."""
        if not prefills:
            return _NO_ATTENTION
        slower, window = self._unfilled(prefills), self._window_tokens
        full = _sum(*((1.0, self._prefill(*chunk, None, slower)) for chunk in prefills))
        if window is None:
            return full, _Piece()
        return full, _sum(*((1.0, self._prefill(*chunk, window, slower)) for chunk in prefills))

    def _decode(
        self,
        sequences: int,
        context: Any,
        width: int,
        smaller: Callable[..., Any],
        larger: Callable[..., Any],
    ) -> tuple[_Piece, _Piece]:
        """Attention of the decoding requests, in a layer that sees all and in one with a window.

        ``context`` is a number, or an array of them with NumPy's functions for the last two.
        """
        full = self._decode_layer(sequences, context, width, larger)
        window = self._window_tokens
        if window is None:
            return full, _Piece()
        seen = smaller(context, sequences * window)
        return full, self._decode_layer(sequences, seen, width, larger)

    def _decode_layer(
        self, sequences: int, context: Any, width: int, larger: Callable[..., Any]
    ) -> _Piece:
        heads = self._model.decode_heads
        pairs = context * width + sequences * (width * (width + 1) // 2)
        flops = pairs * (2.0 * heads.macs_per_pair)
        tokens = context + sequences * width
        moved = tokens * (self._copies * heads.kv_heads * heads.kept_per_kv * _ELEMENT_BYTES)
        seconds = larger(
            flops / (self._flops * self._gpu.efficiency.attention), moved / self._bytes_per_s
        )
        return self._piece(seconds, Traffic(flops, moved))

    def _head_uncached(self, rows: int) -> _Piece:
        if not rows:
            return _Piece()
        return self._gemm(self._model.head, rows, self._model.head_width_bytes)


def visible_pairs(new: int, context: int, window: int | None) -> float:
    """(Query token, visible token) pairs of a chunk under the causal mask and a window."""
    if window is None or context + new <= window:
        return new * context + new * (new + 1) / 2
    growing = max(0, window - context)
    return growing * context + growing * (growing + 1) / 2 + (new - growing) * window
