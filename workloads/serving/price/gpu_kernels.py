"""Kernels of a transformer on GPUs under tensor parallelism: time, energy and expert bytes of each.

``workloads.serving.price.gpu_cost`` says what the model is and what it leaves out.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tlm.chips.gpu import Gpu
from workloads.models import Linear, Model
from workloads.serving.price.cost import visible_pairs
from workloads.serving.price.energy import Traffic, traffic_energy_j
from workloads.serving.price.experts import device_of, expected_loads

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


class Piece(NamedTuple):
    """Time, energy of its operations and expert bytes of a part of an iteration.

    Time and energy are numbers, or arrays over several iterations.
    """

    seconds: Any = 0.0
    energy_j: Any = 0.0
    expert_bytes: float = 0.0


NO_ATTENTION = (Piece(), Piece())


def sum_of(*parts: tuple[float, Piece]) -> Piece:
    """Each part times its factor."""
    return Piece(
        sum(factor * piece.seconds for factor, piece in parts),
        sum(factor * piece.energy_j for factor, piece in parts),
        sum(factor * piece.expert_bytes for factor, piece in parts),
    )


class GpuKernels:
    """Kernels of a model on ``units`` GPUs.

    Attributes:
        layer: Piece of everything but attention of one layer, of its tokens and whether it has
            experts.
        head: Piece of the output head, of its rows.
    """

    def __init__(self, model: Model, gpu: Gpu, units: int, expert_parallel: int) -> None:
        self._model = model
        self._gpu = gpu
        self._units = units
        self._expert_parallel = expert_parallel
        self._flops = units * gpu.peak_flops
        self._bytes_per_s = units * gpu.memory_bandwidth_bytes_per_s * gpu.efficiency.bandwidth
        self.layer = lru_cache(maxsize=1 << 15)(self._layer)
        self.head = lru_cache(maxsize=1 << 12)(self._head)

    @property
    def kv_copies(self) -> float:
        """How often a token's keys and values are kept.

        Each GPU keeps and reads whole heads, as many as the fullest: with 8 heads on 3 GPUs all
        wait for, and have room for no more than, the one with 3 heads.
        """
        heads = self._model.decode_heads.kv_heads
        return self._units * -(-heads // self._units) / heads

    def expert_seconds(self, tokens: int) -> float:
        """Time of routing and experts in all layers, of an iteration of so many tokens."""
        if self._model.experts is None:
            return 0.0
        return float(self._model.expert_layers * self._experts(tokens).seconds)

    @property
    def _window_tokens(self) -> int | None:
        window = self._model.sliding_window
        return None if window is None else window.tokens

    def _piece(self, seconds: Any, traffic: Traffic, expert_bytes: float = 0.0) -> Piece:
        return Piece(seconds, traffic_energy_j(self._gpu.energy, traffic), expert_bytes)

    def _layer(self, tokens: int, experts: bool) -> Piece:
        """Everything but attention of one layer."""
        model = self._model
        linears = model.attention_linears
        linears += model.shared_linears if experts else model.dense_linears
        width = model.weight_width_bytes
        parts = [(1.0, self._gemm(linear, tokens, width)) for linear in linears]
        parts += [(1.0, self._elementwise(tokens, experts)), (2.0, self._all_reduce(tokens))]
        if experts:
            parts.append((1.0, self._experts(tokens)))
        return sum_of(*parts)

    def _gemm(self, linear: Linear, tokens: int, width_bytes: float) -> Piece:
        flops = 2.0 * tokens * linear.weights
        moved = linear.weights * width_bytes + tokens * (linear.k + linear.n) * _ELEMENT_BYTES
        seconds = max(flops / (self._flops * self._gpu.efficiency.gemm), moved / self._bytes_per_s)
        return self._piece(seconds, Traffic(flops, moved))

    def _experts(self, tokens: int) -> Piece:
        model, experts, gpu = self._model, self._model.experts, self._gpu
        assert experts is not None
        weights = sum(linear.weights for linear in model.expert_linears)
        needed, tokens_each = expected_loads(experts.count, experts.active, tokens)
        bandwidth = gpu.memory_bandwidth_bytes_per_s * gpu.efficiency.expert_bandwidth
        flops = gpu.peak_flops * gpu.efficiency.expert_gemm
        each = np.maximum(
            needed * (model.expert_bytes / bandwidth), tokens_each * (2 * weights / flops)
        )
        groups, fullest = self._expert_parallel, float(each.sum())
        if groups > 1:
            fullest = float(np.bincount(device_of(experts.count, groups), each).max())
        copies = self._units // groups
        seconds = fullest / copies
        pairs = float(tokens * experts.active)
        # Every GPU gathers and sums whole rows of the pairs of its group's experts.
        moved = copies * pairs * model.hidden * _ELEMENT_BYTES * _PASSES_PER_ROUTED
        moved += pairs * experts.width * _ELEMENT_BYTES * _PASSES_PER_FFN
        seconds += moved / self._bytes_per_s
        read = float(needed.sum()) * model.expert_bytes
        return self._piece(seconds, Traffic(2 * pairs * weights, read + moved), read)

    def _elementwise(self, tokens: int, experts: bool) -> Piece:
        model = self._model
        heads = model.attention_linears[0].n
        elements = self._units * model.hidden * _PASSES_PER_HIDDEN + heads * _PASSES_PER_HEAD
        if not experts:
            elements += (model.ffn_hidden or 0) * _PASSES_PER_FFN
        moved = float(tokens * elements * _ELEMENT_BYTES)
        return self._piece(moved / self._bytes_per_s, Traffic(0.0, moved))

    def _all_reduce(self, tokens: int) -> Piece:
        if self._units == 1:
            return Piece()
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

    def _prefill(self, new: int, context: int, window: int | None, slower: float) -> Piece:
        """Attention of a prompt chunk in one layer."""
        heads, kept = self._model.prefill_heads, self._model.decode_heads
        rows = self._gpu.attention_rows
        padded = -(-new // rows) * rows / new
        flops = 2.0 * visible_pairs(new, context, window) * heads.macs_per_pair
        seen = context + new if window is None else min(context + new, window + new)
        moved = self.kv_copies * seen * kept.kv_heads * kept.kept_per_kv * _ELEMENT_BYTES
        seconds = max(
            slower * padded * flops / (self._flops * self._gpu.efficiency.attention),
            moved / self._bytes_per_s,
        )
        return self._piece(seconds, Traffic(flops, moved))

    def prefills(self, prefills: tuple[tuple[int, int], ...]) -> tuple[Piece, Piece]:
        """Attention of all prompt chunks, in a layer that sees all and in one with a window."""
        if not prefills:
            return NO_ATTENTION
        slower, window = self._unfilled(prefills), self._window_tokens
        full = sum_of(*((1.0, self._prefill(*chunk, None, slower)) for chunk in prefills))
        if window is None:
            return full, Piece()
        return full, sum_of(*((1.0, self._prefill(*chunk, window, slower)) for chunk in prefills))

    def decode(
        self,
        sequences: int,
        context: Any,
        width: int,
        smaller: Callable[..., Any],
        larger: Callable[..., Any],
    ) -> tuple[Piece, Piece]:
        """Attention of the decoding requests, in a layer that sees all and in one with a window.

        ``context`` is a number, or an array of them with NumPy's functions for the last two.
        """
        full = self._decode_layer(sequences, context, width, larger)
        window = self._window_tokens
        if window is None:
            return full, Piece()
        seen = smaller(context, sequences * window)
        return full, self._decode_layer(sequences, seen, width, larger)

    def _decode_layer(
        self, sequences: int, context: Any, width: int, larger: Callable[..., Any]
    ) -> Piece:
        heads = self._model.decode_heads
        pairs = context * width + sequences * (width * (width + 1) // 2)
        flops = pairs * (2.0 * heads.macs_per_pair)
        tokens = context + sequences * width
        moved = tokens * (self.kv_copies * heads.kv_heads * heads.kept_per_kv * _ELEMENT_BYTES)
        seconds = larger(
            flops / (self._flops * self._gpu.efficiency.attention), moved / self._bytes_per_s
        )
        return self._piece(seconds, Traffic(flops, moved))

    def _head(self, rows: int) -> Piece:
        if not rows:
            return Piece()
        return self._gemm(self._model.head, rows, self._model.head_width_bytes)
