"""Iteration time of a transformer on a grid of tiles with off-chip memory.

Kernels run one after another, each over the whole grid, as in the FlatAttention paper (section
III-E): a layer's linear layers on all its new tokens, attention of each prompt chunk and of the
decoding requests together, then once the output head on the tokens that give a next token. A layer
that computes prompts computes them and the decoding requests together; other layers the decoding
requests alone. Experts run as grouped products: as many as the tokens need
(``workloads.serving.experts``), with equal shares of the tokens. Weights and caches are in off-chip
memory. Element-wise work is fused with the neighbouring GEMM: its vector cycles are exposed, its
memory traffic is not counted twice.

Not modelled: energy, host time between iterations, memory efficiency below its peak bandwidth
(refresh, row misses), contention between a kernel's own multicasts.
"""

from functools import lru_cache

import numpy as np

from tlm.chips import Chip
from tlm.errors import InputError
from workloads.mapping.attention import AttentionMapper, AttentionShape
from workloads.mapping.gemm import GemmMapper
from workloads.mapping.machine import Breakdown, machine_of
from workloads.models import Heads, Linear, Model, SlidingWindow
from workloads.serving.cost import (
    Batch,
    DecodeCosts,
    Float64s,
    Int64s,
    IterationCost,
    Work,
    macs_of,
)
from workloads.serving.experts import distinct_experts
from workloads.serving.kv import BLOCK_TOKENS

_ELEMENT_BYTES = 2
# Vector operations on each element: square, accumulate, two scalings of a norm, of which there are
# two a layer, and two residual additions; rotary embedding; SiLU (exponential, addition, division)
# and two products; weighting and adding an expert's output.
_OPS_PER_HIDDEN = 10
_OPS_PER_ROTATED = 3
_OPS_PER_FFN = 5
_OPS_PER_ROUTED = 2
_EXACT_TOKENS = 128


class TileCost:
    """``ServingModel`` of a model on a tile chip, or on ``units`` of its tiles (whole rows).

    Where all tiles share the memory, pools of one chip share the weights, and a pool has its share
    of what they leave; else each pool holds weights of its own.

    Raises:
        InputError: if the chip is of another kind, or its memory cannot hold the weights.
    """

    def __init__(self, model: Model, chip: Chip, *, units: int | None = None) -> None:
        self._model = model
        self._machine = machine_of(chip, units)
        if model.weight_bytes >= self._machine.memory_bytes:
            raise InputError(
                f"model '{model.name}' on chip '{chip.name}': weights take {model.weight_bytes} "
                f"bytes; allowed: less than the memory's {self._machine.memory_bytes}"
            )
        shared = chip.memory is not None and not chip.memory.per_tile
        share = self._machine.tiles / (chip.grid.rows * chip.grid.cols) if shared else 1.0
        self._free_bytes = int((self._machine.memory_bytes - model.weight_bytes) * share)
        self._prefill_mapper = AttentionMapper(self._machine, _shape(model.prefill_heads))
        self._decode_mapper = AttentionMapper(self._machine, _shape(model.decode_heads))
        widths = (model.weight_width_bytes, model.expert_width_bytes, model.head_width_bytes)
        self._gemm, self._expert_gemm, self._head_gemm = (
            GemmMapper(self._machine, _ELEMENT_BYTES, width) for width in widths
        )
        self._layer = lru_cache(maxsize=1 << 14)(self._layer_uncached)
        self._stretch = lru_cache(maxsize=1 << 14)(self._stretch_uncached)
        self._head = lru_cache(maxsize=1 << 12)(self._head_uncached)
        self._count = lru_cache(maxsize=1 << 12)(model.count)
        self._all = range(model.layers)
        self._counts = model.count(self._all)
        window = model.sliding_window
        self._window = None if window is None else window.tokens

    @property
    def layers(self) -> int:
        """Layers of the model."""
        return self._model.layers

    @property
    def sliding_window(self) -> SlidingWindow | None:
        """The window that some of its layers see."""
        return self._model.sliding_window

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of a token."""
        return self._model.kv_bytes_per_token

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens of keys and values, in whole blocks, that fit beside the weights.

        Activations and buffers are not subtracted: they are in the tiles, or are a few megabytes.
        """
        return self._free_bytes // self.kv_bytes_per_token // BLOCK_TOKENS * BLOCK_TOKENS

    @property
    def kv_sram_tokens(self) -> int:
        """Tokens, in whole blocks, that all of the tiles' SRAM could hold, buffers left out."""
        sram_bytes = self._machine.tiles * self._machine.sram_bytes
        return sram_bytes // self.kv_bytes_per_token // BLOCK_TOKENS * BLOCK_TOKENS

    @property
    def static_power_w(self) -> None:
        """The profiles of tile chips have no energy figures."""

    def cost(self, batch: Batch) -> IterationCost:
        """Price of an iteration."""
        filled = self._filled(batch)
        decode = batch.decode_tokens
        cycles, expert_bytes = self._stretch(_rounded(batch.new_tokens), filled.start, filled.stop)
        for start, stop in ((0, filled.start), (filled.stop, self._model.layers)):
            if decode and start < stop:
                added, read = self._stretch(_rounded(decode), start, stop)
                cycles, expert_bytes = cycles + added, expert_bytes + read
        if batch.prefills:
            counts = self._count(filled)
            for new, context in batch.prefills:
                cycles += counts.full * self._prefill(new, context, None).total
                if counts.windowed:
                    cycles += counts.windowed * self._prefill(new, context, self._window).total
        if batch.logit_rows:
            cycles += self._head(_rounded(batch.logit_rows)).total
        if decode:
            context = batch.decode_context_tokens
            share = batch.decode_sram_tokens / context if context else 0.0
            contexts, shares = np.array([context]), np.array([share])
            sequences, width = batch.decode_sequences, batch.decode_width
            cycles += float(self._decode_cycles(sequences, contexts, shares, width)[0])
        return IterationCost(cycles / self._machine.clock_hz, None, expert_bytes)

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """Prices of iterations that only decode."""
        tokens = sequences * width
        cycles, expert_bytes = self._stretch(_rounded(tokens), 0, self.layers)
        cycles += self._head(_rounded(tokens)).total
        shares = np.zeros(len(context_tokens))
        if spilled_tokens is not None:
            shares = np.maximum(0, context_tokens - spilled_tokens) / context_tokens
        attention = self._decode_cycles(sequences, context_tokens, shares, width)
        seconds = (cycles + attention) / self._machine.clock_hz
        return DecodeCosts(seconds, None, expert_bytes)

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the chip's peak in ``span_s``."""
        machine = self._machine
        return macs_of(work, self._model) / (machine.macs_per_cycle * machine.clock_hz * span_s)

    def _filled(self, batch: Batch) -> range:
        """The layers that compute the prompts, beside the decoding requests."""
        if not batch.prefills:
            return range(0)
        return self._all if batch.prefill_layers is None else batch.prefill_layers

    def _prefill(self, new: int, context: int, window: int | None) -> Breakdown:
        return self._prefill_mapper.prefill(_rounded(new), _rounded(context), True, window)

    def _decode_cycles(
        self, sequences: int, contexts: Int64s, in_sram: Float64s, width: int
    ) -> Float64s:
        """Attention of the decoding requests in all layers; of windows as much is in SRAM."""
        mapper, counts = self._decode_mapper, self._counts
        cycles = counts.full * mapper.decode_cycles(sequences, contexts, width, in_sram)
        if self._window is not None:
            seen = np.minimum(contexts, sequences * self._window)
            cycles += counts.windowed * mapper.decode_cycles(sequences, seen, width, in_sram)
        return cycles

    def _stretch_uncached(self, tokens: int, start: int, stop: int) -> tuple[float, float]:
        """Cycles of all but attention from layer ``start`` to ``stop``; bytes of experts read."""
        experts = self._model.experts
        read = 0.0
        if experts is not None and tokens and start < stop:
            layers = self._model.count(range(start, stop)).experts
            read = layers * self._experts_needed(tokens) * self._model.expert_bytes
        return self._breakdown(tokens, start, stop).total, read

    def _breakdown(self, tokens: int, start: int, stop: int) -> Breakdown:
        if start >= stop or not tokens:
            return Breakdown()
        counts = self._model.count(range(start, stop))
        parts = []
        if counts.dense:
            parts.append(self._layer(tokens, False).times(counts.dense))
        if counts.experts:
            parts.append(self._layer(tokens, True).times(counts.experts))
        return _sum(parts)

    def _layer_uncached(self, tokens: int, experts: bool) -> Breakdown:
        """Cycles of everything but attention of one layer."""
        model, machine = self._model, self._machine
        linears = model.attention_linears
        linears += model.shared_linears if experts else model.dense_linears
        rate = machine.tiles * machine.vector_ops_per_cycle
        parts = [Breakdown(compute=tokens * self._vector_ops_per_token(experts) / rate)]
        parts += [self._gemm.plan(tokens, linear.n, linear.k).cycles for linear in linears]
        if experts:
            parts += [self._grouped(linear, tokens) for linear in model.expert_linears]
        return _sum(parts)

    def _grouped(self, linear: Linear, tokens: int) -> Breakdown:
        experts = self._model.experts
        assert experts is not None
        needed = self._experts_needed(tokens)
        each = -(-tokens * experts.active // needed)
        return self._expert_gemm.plan(each, linear.n, linear.k, needed).cycles

    def _experts_needed(self, tokens: int) -> int:
        experts = self._model.experts
        assert experts is not None
        return round(distinct_experts(experts.count, experts.active, tokens))

    def _head_uncached(self, rows: int) -> Breakdown:
        head = self._model.head
        return self._head_gemm.plan(rows, head.n, head.k).cycles

    def _vector_ops_per_token(self, experts: bool) -> int:
        model = self._model
        rotated = (model.query_heads + model.kv_heads) * model.head_dim
        if model.latent_attention is not None:
            rotated = (model.query_heads + 1) * model.latent_attention.rope_dim
        ops = model.hidden * _OPS_PER_HIDDEN + rotated * _OPS_PER_ROTATED
        if not experts or model.experts is None:
            return ops + (model.ffn_hidden or 0) * _OPS_PER_FFN
        passed = model.experts.active + model.experts.shared
        return ops + passed * (model.experts.width * _OPS_PER_FFN + model.hidden * _OPS_PER_ROUTED)


def _shape(heads: Heads) -> AttentionShape:
    return AttentionShape(
        heads.kv_heads,
        heads.queries_per_kv,
        heads.qk_dim,
        heads.value_dim,
        heads.kept_per_kv,
        _ELEMENT_BYTES,
    )


def _sum(parts: list[Breakdown]) -> Breakdown:
    total = Breakdown()
    for part in parts:
        total = total.plus(part)
    return total


def _rounded(tokens: int) -> int:
    """Tokens rounded up to 7 significant bits (1.6 % at most), to keep cases few."""
    if tokens <= _EXACT_TOKENS:
        return tokens
    unit = 1 << (tokens.bit_length() - 7)
    return -(-tokens // unit) * unit
