"""Iteration time of a dense transformer on a grid of tiles with off-chip memory.

Kernels run one after another, each over the whole grid, as in the FlatAttention paper (section
III-E): the layer's four GEMMs on all new tokens, attention of each prompt chunk and of the decoding
requests together, then once the output head on the tokens that give a next token. Weights and
caches are in off-chip memory. Element-wise work is fused with the neighbouring GEMM: its vector
cycles are exposed, its memory traffic is not counted twice.

Not modelled: host time between iterations, memory efficiency below its peak bandwidth (refresh,
row misses), contention between a kernel's own multicasts.
"""

from functools import cache

import numpy as np

from tlm.chips import Chip
from tlm.errors import InputError
from workloads.mapping.attention import AttentionMapper, AttentionShape
from workloads.mapping.gemm import GemmMapper
from workloads.mapping.machine import Breakdown, machine_of
from workloads.models import Model
from workloads.serving.cost import Batch, DecodeCosts, Int64s, IterationCost, Work
from workloads.serving.kv import BLOCK_TOKENS

# Vector operations on each element: square, accumulate, two scalings of a norm, of which there are
# two a layer, and two residual additions; rotary embedding; SiLU (exponential, addition, division)
# and two products.
_OPS_PER_HIDDEN = 10
_OPS_PER_ROTATED = 3
_OPS_PER_FFN = 5
_EXACT_TOKENS = 128


class TileCost:
    """``ServingModel`` of a dense model on a tile chip; its energy is not modelled.

    Raises:
        InputError: if the chip is of another kind, or its memory cannot hold the weights.
    """

    def __init__(self, model: Model, chip: Chip) -> None:
        self._model = model
        self._machine = machine_of(chip)
        if model.weight_bytes >= self._machine.memory_bytes:
            raise InputError(
                f"model '{model.name}' on chip '{chip.name}': weights take {model.weight_bytes} "
                f"bytes; allowed: less than the memory's {self._machine.memory_bytes}"
            )
        shape = AttentionShape(
            model.kv_heads,
            model.query_heads // model.kv_heads,
            model.head_dim,
            model.bytes_per_weight,
        )
        self._attention = AttentionMapper(self._machine, shape)
        self._gemm = GemmMapper(self._machine, model.bytes_per_weight)
        self._linear = cache(self._linear_uncached)
        self._head = cache(self._head_uncached)

    @property
    def layers(self) -> int:
        """Layers of the model."""
        return self._model.layers

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of a token."""
        return self._model.kv_bytes_per_token

    @property
    def static_power_w(self) -> None:
        """Not modelled."""

    def cost(self, batch: Batch) -> IterationCost:
        """Price of an iteration; its time is the total of ``breakdown``."""
        return IterationCost(self.seconds(batch), None, 0.0)

    def decode_costs(self, sequences: int, context_tokens: Int64s, width: int = 1) -> DecodeCosts:
        """Prices of iterations that only decode."""
        rows = sequences * width
        seconds = [
            self.seconds(Batch((), sequences, context, rows, None, width))
            for context in context_tokens.tolist()
        ]
        return DecodeCosts(np.array(seconds), None, np.zeros(len(seconds)))

    def seconds(self, batch: Batch) -> float:
        """Time of an iteration: the total of ``breakdown`` without its parts, as this is hot."""
        layers = self._model.layers
        prefill = sum(
            self._attention.prefill(_rounded(new), _rounded(context)).total
            for new, context in batch.prefills
        )
        decode = 0.0
        if batch.decode_sequences:
            seen = batch.decode_context_tokens + batch.decode_tokens - batch.decode_sequences
            decode = self._attention.decode(batch.decode_sequences, seen).total
        filled = layers if batch.prefill_layers is None else len(batch.prefill_layers)
        cycles = prefill * filled + decode * layers
        cycles += self._linear(_rounded(batch.new_tokens)).total * filled / layers
        if batch.decode_sequences and filled < layers:
            others = self._linear(_rounded(batch.decode_tokens)).total
            cycles += others * (layers - filled) / layers
        if batch.logit_rows:
            cycles += self._head(_rounded(batch.logit_rows)).total
        return cycles / self._machine.clock_hz

    def breakdown(self, batch: Batch) -> Breakdown:
        """Time of an iteration in seconds, by what it waits for."""
        attention = Breakdown()
        for new, context in batch.prefills:
            attention = attention.plus(self._attention.prefill(_rounded(new), _rounded(context)))
        if batch.decode_sequences:
            decode = self._attention.decode(batch.decode_sequences, batch.decode_context_tokens)
            attention = attention.plus(decode)
        cycles = attention.times(self._model.layers).plus(self._linear(_rounded(batch.new_tokens)))
        if batch.logit_rows:
            cycles = cycles.plus(self._head(_rounded(batch.logit_rows)))
        return cycles.times(1 / self._machine.clock_hz)

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens of keys and values, in whole blocks, that fit beside the weights.

        Activations and buffers are not subtracted: they are in the tiles, or are a few megabytes.
        """
        free = self._machine.memory_bytes - self._model.weight_bytes
        return free // self._model.kv_bytes_per_token // BLOCK_TOKENS * BLOCK_TOKENS

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the chip's peak in ``span_s``."""
        model, machine = self._model, self._machine
        macs = (
            work.token_layers * model.layer_macs_per_token // model.layers
            + work.logit_rows * model.head.k * model.head.n
            + work.pair_layers * model.attention_macs_per_pair // model.layers
        )
        return macs / (machine.macs_per_cycle * machine.clock_hz * span_s)

    def _linear_uncached(self, tokens: int) -> Breakdown:
        """Cycles of everything but attention and head, all layers."""
        layer = Breakdown(compute=tokens * self._vector_ops_per_token / self._vector_rate)
        for linear in self._model.layer_linears:
            layer = layer.plus(self._gemm.plan(tokens, linear.n, linear.k).cycles)
        return layer.times(self._model.layers)

    def _head_uncached(self, rows: int) -> Breakdown:
        head = self._model.head
        return self._gemm.plan(rows, head.n, head.k).cycles

    @property
    def _vector_ops_per_token(self) -> int:
        model = self._model
        rotated = (model.query_heads + model.kv_heads) * model.head_dim
        return (
            model.hidden * _OPS_PER_HIDDEN
            + rotated * _OPS_PER_ROTATED
            + model.ffn_hidden * _OPS_PER_FFN
        )

    @property
    def _vector_rate(self) -> float:
        return self._machine.tiles * self._machine.vector_ops_per_cycle


def _rounded(tokens: int) -> int:
    """Tokens rounded up to 7 significant bits (1.6 % at most), to keep cases few."""
    if tokens <= _EXACT_TOKENS:
        return tokens
    unit = 1 << (tokens.bit_length() - 7)
    return -(-tokens // unit) * unit
