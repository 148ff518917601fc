"""Kernels of a transformer on a grid of tiles: time and energy of each.

``workloads.serving.price.tile_cost`` says what the model is and what it leaves out.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tlm.chips import TileEnergy
from workloads.mapping.attention import (
    AttentionMapper,
    AttentionShape,
    DecodeJoules,
    least_attention_bytes,
)
from workloads.mapping.gemm import GemmMapper, least_gemm_bytes
from workloads.mapping.machine import Machine, Moved
from workloads.models import Heads, Linear, Model
from workloads.serving.price.cost import Float64s, Int64s, visible_pairs
from workloads.serving.price.energy import decode_energy_j, tile_energy_j
from workloads.serving.price.experts import distinct_experts

_ELEMENT_BYTES = 2
# Vector operations on each element: square, accumulate, two scalings of a norm, of which there are
# two a layer, and two residual additions; rotary embedding; SiLU (exponential, addition, division)
# and two products; weighting and adding an expert's output.
_OPS_PER_HIDDEN = 10
_OPS_PER_ROTATED = 3
_OPS_PER_FFN = 5
_OPS_PER_ROUTED = 2


class Piece(NamedTuple):
    """Time of a part of an iteration, in cycles, and energy of its operations."""

    cycles: float = 0.0
    energy_j: float = 0.0

    def plus(self, other: "Piece") -> "Piece":
        """This and then the other."""
        return Piece(self.cycles + other.cycles, self.energy_j + other.energy_j)

    def times(self, factor: float) -> "Piece":
        """This, ``factor`` times."""
        return Piece(self.cycles * factor, self.energy_j * factor)


class TileKernels:
    """Kernels of a model on a machine.

    Args:
        model: The model.
        machine: The tiles.
        energy: Their figures; None: every energy is 0.

    Attributes:
        stretch: Cycles, joules and bytes of experts read of all but attention, of tokens and from
            which layer to which.
        head: Cycles and joules of the output head, of its rows.
        prefill: Cycles and joules of a prompt chunk's attention in one layer, of its new tokens,
            those in the cache and a window or None.
        count: Layers of each kind, of a range of them.
        window: Tokens that some layers see; None: all see all.
    """

    def __init__(self, model: Model, machine: Machine, energy: TileEnergy | None) -> None:
        self._model = model
        self._machine = machine
        self._energy = energy
        self._prefill_mapper = AttentionMapper(self._machine, _shape(model.prefill_heads))
        widths = (model.weight_width_bytes, model.expert_width_bytes, model.head_width_bytes)
        self._gemm, self._expert_gemm, self._head_gemm = (
            GemmMapper(self._machine, _ELEMENT_BYTES, width) for width in widths
        )
        heads = model.decode_heads
        token_bytes = heads.kv_heads * heads.kept_per_kv * _ELEMENT_BYTES
        self._decode_mapper = AttentionMapper(
            self._machine,
            _shape(heads),
            DecodeJoules()
            if energy is None
            else decode_energy_j(energy, machine, heads.macs_per_pair, token_bytes),
        )
        self.prefill = lru_cache(maxsize=1 << 16)(self._prefill)
        self._layer = lru_cache(maxsize=1 << 14)(self._layer_uncached)
        self.stretch = lru_cache(maxsize=1 << 14)(self._stretch)
        self.head = lru_cache(maxsize=1 << 12)(self._head)
        self.count = lru_cache(maxsize=1 << 12)(model.count)
        self._counts = model.count(range(model.layers))
        window = model.sliding_window
        self.window = None if window is None else window.tokens

    def _prefill(self, new: int, context: int, window: int | None) -> tuple[float, float]:
        """Cycles and joules of a prompt chunk's attention in one layer."""
        plan = self._prefill_mapper.prefill(new, context, True, window)
        macs = visible_pairs(new, context, window) * self._model.prefill_heads.macs_per_pair
        return plan.cycles, self._joules(macs, plan.moved)

    def decode(
        self, sequences: int, contexts: Int64s, in_sram: Float64s, width: int
    ) -> tuple[Float64s, Float64s]:
        """Cycles and joules of the decoding requests' attention in all layers.

        Of what a window sees the same share is in SRAM.
        """
        mapper, counts = self._decode_mapper, self._counts
        cycles, joules = mapper.decode(sequences, contexts, width, in_sram)
        cycles, joules = counts.full * cycles, counts.full * joules
        if self.window is not None:
            seen = np.minimum(contexts, sequences * self.window)
            added, more_j = mapper.decode(sequences, seen, width, in_sram)
            cycles, joules = cycles + counts.windowed * added, joules + counts.windowed * more_j
        return cycles, joules

    def _joules(self, macs: float, moved: Moved, vector_ops: float = 0.0) -> float:
        if self._energy is None:
            return 0.0
        return tile_energy_j(self._energy, self._machine, macs, moved, vector_ops)

    def _stretch(self, tokens: int, start: int, stop: int) -> tuple[float, float, float]:
        """Cycles and joules of all but attention from layer ``start`` to ``stop``; expert bytes."""
        experts = self._model.experts
        read = 0.0
        if experts is not None and tokens and start < stop:
            layers = self._model.count(range(start, stop)).experts
            read = layers * self._experts_needed(tokens) * self._model.expert_bytes
        piece = self._layers(tokens, start, stop)
        return piece.cycles, piece.energy_j, read

    def _layers(self, tokens: int, start: int, stop: int) -> Piece:
        if start >= stop or not tokens:
            return Piece()
        counts = self._model.count(range(start, stop))
        parts = []
        if counts.dense:
            parts.append(self._layer(tokens, False).times(counts.dense))
        if counts.experts:
            parts.append(self._layer(tokens, True).times(counts.experts))
        return _sum(parts)

    def _layer_uncached(self, tokens: int, experts: bool) -> Piece:
        """Everything but attention of one layer."""
        model, machine = self._model, self._machine
        linears = model.attention_linears
        linears += model.shared_linears if experts else model.dense_linears
        rate = machine.tiles * machine.vector_ops_per_cycle
        ops = tokens * self._vector_ops_per_token(experts)
        parts = [Piece(ops / rate, self._joules(0, Moved(), ops))]
        parts += [self._piece(self._gemm, linear, tokens) for linear in linears]
        if experts:
            parts += [self._grouped(linear, tokens) for linear in model.expert_linears]
        return _sum(parts)

    def _piece(self, mapper: GemmMapper, linear: Linear, tokens: int) -> Piece:
        plan = mapper.plan(tokens, linear.n, linear.k)
        return Piece(plan.cycles, self._joules(tokens * linear.weights, plan.moved))

    def _grouped(self, linear: Linear, tokens: int) -> Piece:
        experts = self._model.experts
        assert experts is not None
        needed = self._experts_needed(tokens)
        each = -(-tokens * experts.active // needed)
        plan = self._expert_gemm.plan(each, linear.n, linear.k, needed)
        macs = tokens * experts.active * linear.weights
        return Piece(plan.cycles, self._joules(macs, plan.moved))

    def _experts_needed(self, tokens: int) -> int:
        experts = self._model.experts
        assert experts is not None
        return round(distinct_experts(experts.count, experts.active, tokens))

    def _head(self, rows: int) -> tuple[float, float]:
        piece = self._piece(self._head_gemm, self._model.head, rows)
        return piece.cycles, piece.energy_j

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


def least_buffer_bytes(model: Model, machine: Machine) -> int:
    """Bytes of a tile's SRAM without which some kernel finds no mapping."""
    attention = least_attention_bytes(_shape(model.prefill_heads))
    return max(least_gemm_bytes(machine, _ELEMENT_BYTES), attention)


def _shape(heads: Heads) -> AttentionShape:
    return AttentionShape(
        heads.kv_heads,
        heads.queries_per_kv,
        heads.qk_dim,
        heads.value_dim,
        heads.kept_per_kv,
        _ELEMENT_BYTES,
    )


def _sum(parts: list[Piece]) -> Piece:
    total = Piece()
    for part in parts:
        total = total.plus(part)
    return total
