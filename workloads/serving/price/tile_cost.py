"""Iteration time of a transformer on a grid of tiles with off-chip memory.

Kernels run one after another, each over the whole grid, as in the FlatAttention paper (section
III-E): a layer's linear layers on all its new tokens, attention of each prompt chunk and of the
decoding requests together, then once the output head on the tokens that give a next token. A layer
that computes prompts computes them and the decoding requests together; other layers the decoding
requests alone. Experts run as grouped products: as many as the tokens need
(``workloads.serving.price.experts``), with equal shares of the tokens. Weights and caches are in
off-chip memory. Element-wise work is fused with the neighbouring GEMM: its vector cycles are
exposed, its memory traffic is not counted twice.

Energy follows from the operations of the same mappings, of tokens rounded up as for the times but
unpadded to blocks (``workloads.serving.price.energy``). Vector operations of attention have none.

Not modelled: host time between iterations, memory efficiency below its peak bandwidth
(refresh, row misses), contention between a kernel's own multicasts.
"""

from dataclasses import replace

import numpy as np

from tlm.chips import Chip
from tlm.errors import InputError
from workloads.machine.kv_blocks import BLOCK_TOKENS
from workloads.mapping.machine import Machine, machine_of
from workloads.models import Model, SlidingWindow
from workloads.serving.price.cost import (
    Batch,
    DecodeCosts,
    Int64s,
    IterationCost,
    Work,
    macs_of,
)
from workloads.serving.price.tile_kernels import TileKernels, least_buffer_bytes

_EXACT_TOKENS = 128


class TileCost:
    """``ServingModel`` of a model on a tile chip, or on ``units`` of its tiles (whole rows).

    Where all tiles share the memory, pools of one chip share the weights, and a pool has its share
    of what they leave; else each pool holds weights of its own.

    What ``kv_sram_tokens`` take is set aside in every tile's SRAM, an equal share of each token's
    keys and values; kernels have the rest for their buffers.

    Raises:
        InputError: if the chip is of another kind, its memory cannot hold the weights, or what is
            left of the SRAM holds no buffers.
    """

    def __init__(
        self, model: Model, chip: Chip, *, units: int | None = None, kv_sram_tokens: int = 0
    ) -> None:
        self._model = model
        self._machine = machine_of(chip, units)
        if model.weight_bytes >= self._machine.memory_bytes:
            raise InputError(
                f"model '{model.name}' on chip '{chip.name}': weights take {model.weight_bytes} "
                f"bytes; allowed: less than the memory's {self._machine.memory_bytes}"
            )
        shared = chip.memory is not None and not chip.memory.per_tile
        self._share = self._machine.tiles / (chip.grid.rows * chip.grid.cols)
        self._energy = chip.energy
        self._free_bytes = int(
            (self._machine.memory_bytes - model.weight_bytes) * (self._share if shared else 1)
        )
        self._kv_sram_tokens = kv_sram_tokens
        beside = self._beside(kv_sram_tokens, chip.name)
        self._kernels = TileKernels(model, beside, chip.energy)
        self._all = range(model.layers)

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
        """Tokens whose keys and values have room set aside in the tiles' SRAM."""
        return self._kv_sram_tokens

    @property
    def static_power_w(self) -> float | None:
        """Power of the tiles without work: their share of the chip's; None without figures."""
        return None if self._energy is None else self._energy.idle_w * self._share

    def cost(self, batch: Batch) -> IterationCost:
        """Price of an iteration."""
        filled = self._filled(batch)
        decode = batch.decode_tokens
        cycles, joules, expert_bytes = self._kernels.stretch(
            _rounded(batch.new_tokens), filled.start, filled.stop
        )
        for start, stop in ((0, filled.start), (filled.stop, self._model.layers)):
            if decode and start < stop:
                added, more_j, read = self._kernels.stretch(_rounded(decode), start, stop)
                cycles, joules, expert_bytes = cycles + added, joules + more_j, expert_bytes + read
        if batch.prefills:
            counts = self._kernels.count(filled)
            for new, context in batch.prefills:
                chunk = _rounded(new), _rounded(context)
                added, more_j = self._kernels.prefill(*chunk, None)
                cycles, joules = cycles + counts.full * added, joules + counts.full * more_j
                if windowed := counts.windowed:
                    added, more_j = self._kernels.prefill(*chunk, self._kernels.window)
                    cycles, joules = cycles + windowed * added, joules + windowed * more_j
        if batch.logit_rows:
            added, more_j = self._kernels.head(_rounded(batch.logit_rows))
            cycles, joules = cycles + added, joules + more_j
        if decode:
            context = batch.decode_context_tokens
            share = batch.decode_sram_tokens / context if context else 0.0
            contexts, shares = np.array([context]), np.array([share])
            sequences, width = batch.decode_sequences, batch.decode_width
            attention, attention_j = self._kernels.decode(sequences, contexts, shares, width)
            cycles, joules = cycles + float(attention[0]), joules + float(attention_j[0])
        energy_j = None if self._energy is None else joules
        return IterationCost(cycles / self._machine.clock_hz, energy_j, expert_bytes)

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """Prices of iterations that only decode."""
        tokens = sequences * width
        cycles, joules, expert_bytes = self._kernels.stretch(_rounded(tokens), 0, self.layers)
        head_cycles, head_j = self._kernels.head(_rounded(tokens))
        shares = np.zeros(len(context_tokens))
        if spilled_tokens is not None:
            shares = np.maximum(0, context_tokens - spilled_tokens) / context_tokens
        attention, attention_j = self._kernels.decode(sequences, context_tokens, shares, width)
        seconds = (cycles + head_cycles + attention) / self._machine.clock_hz
        if self._energy is None:
            return DecodeCosts(seconds, None, expert_bytes)
        return DecodeCosts(seconds, joules + head_j + attention_j, expert_bytes)

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the chip's peak in ``span_s``."""
        machine = self._machine
        return macs_of(work, self._model) / (machine.macs_per_cycle * machine.clock_hz * span_s)

    def _beside(self, kv_sram_tokens: int, chip: str) -> Machine:
        """The tiles with the SRAM that keys and values leave them."""
        machine, token_bytes = self._machine, self.kv_bytes_per_token
        spare = machine.tiles * (machine.sram_bytes - least_buffer_bytes(self._model, machine))
        most = spare // token_bytes // BLOCK_TOKENS * BLOCK_TOKENS
        if not 0 <= kv_sram_tokens <= most:
            raise InputError(
                f"--kv-sram-tokens: found {kv_sram_tokens}; allowed for '{self._model.name}' on "
                f"{machine.tiles} tiles of '{chip}': 0 to {most}, as kernels need buffers"
            )
        kept = -(-kv_sram_tokens * token_bytes // machine.tiles)
        return replace(machine, sram_bytes=machine.sram_bytes - kept)

    def _filled(self, batch: Batch) -> range:
        """The layers that compute the prompts, beside the decoding requests."""
        if not batch.prefills:
            return range(0)
        return self._all if batch.prefill_layers is None else batch.prefill_layers


def _rounded(tokens: int) -> int:
    """Tokens rounded up to 7 significant bits (1.6 % at most), to keep cases few."""
    if tokens <= _EXACT_TOKENS:
        return tokens
    unit = 1 << (tokens.bit_length() - 7)
    return -(-tokens // unit) * unit
