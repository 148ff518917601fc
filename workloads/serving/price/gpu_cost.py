"""Iteration time of a transformer on GPUs under tensor parallelism: a roofline of kernels.

Kernels run one after another, each for the longer of its arithmetic and its memory traffic, at
the shares of the peaks that the profile names:

- linear layers on all tokens of the iteration;
- grouped products of the experts: those that the tokens need (`workloads.serving.price.experts`),
  each for the longer of reading it and computing its tokens, as popular experts are bound by
  arithmetic in the batch in which others are bound by memory; tokens are gathered to them and
  results summed;
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
from typing import Any

import numpy as np

from tlm.chips.gpu import Gpu
from tlm.errors import InputError
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.models import Model
from workloads.serving.price.cost import (
    Batch,
    DecodeCosts,
    Int64s,
    IterationCost,
    OfModel,
    Work,
    macs_of,
)
from workloads.serving.price.gpu_kernels import NO_ATTENTION, GpuKernels, Piece, sum_of


class GpuCost(OfModel):
    """``ServingModel`` of a model on some GPUs of a server.

    Args:
        model: what is served.
        gpu: profile of a GPU.
        units: GPUs under tensor parallelism.
        expert_parallel: groups of GPUs that experts are dealt out to, each cut over a group's; 1:
            every GPU has a part of each expert, ``units``: whole experts.

    Raises:
        InputError: if the GPUs' memory cannot hold the weights, or there are no such groups.
    """

    def __init__(self, model: Model, gpu: Gpu, units: int, *, expert_parallel: int = 1) -> None:
        super().__init__(model)
        self._gpu = gpu
        self._units = units
        _check_groups(model, units, expert_parallel)
        room = units * gpu.memory_bytes * gpu.usable_memory
        if model.weight_bytes >= room:
            raise InputError(
                f"model '{model.name}' on {units} x {gpu.title}: weights take "
                f"{model.weight_bytes} bytes; allowed: less than the usable {room:.0f}"
            )
        self._free_bytes = int(room) - model.weight_bytes
        self._kernels = GpuKernels(model, gpu, units, expert_parallel)
        self._kinds = lru_cache(maxsize=1 << 12)(self._kinds_uncached)
        self._all = range(model.layers)

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of a token, copies on several GPUs counted."""
        return round(self._model.kv_bytes_per_token * self._kernels.kv_copies)

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens of keys and values, in whole blocks, that fit beside the weights."""
        return self._free_bytes // self.kv_bytes_per_token // BLOCK_TOKENS * BLOCK_TOKENS

    @property
    def kv_sram_tokens(self) -> None:
        """Caches of GPUs are not for keys and values."""

    @property
    def static_power_w(self) -> float:
        """Power of the GPUs without work."""
        return self._units * self._gpu.energy.idle_w

    def cost(self, batch: Batch) -> IterationCost:
        """Price of an iteration."""
        filled = self._all if batch.prefill_layers is None else batch.prefill_layers
        if not batch.prefills:
            filled = range(0)
        attention = NO_ATTENTION
        if batch.decode_sequences:
            attention = self._kernels.decode(
                batch.decode_sequences, batch.decode_context_tokens, batch.decode_width, min, max
            )
        total = self._kernels.head(batch.logit_rows)
        for start, stop in ((0, filled.start), (filled.stop, self.layers)):
            total = self._stretch(total, start, stop, batch.decode_tokens, attention, max)
        prefill = self._kernels.prefills(batch.prefills)
        both = tuple(
            sum_of((1.0, first), (1.0, then))
            for first, then in zip(attention, prefill, strict=True)
        )
        total = self._stretch(total, filled.start, filled.stop, batch.new_tokens, both, max)
        return IterationCost(*self._awake(total))

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """Prices of iterations that only decode."""
        attention = self._kernels.decode(sequences, context_tokens, width, np.minimum, np.maximum)
        tokens = sequences * width
        total = self._stretch(
            self._kernels.head(tokens), 0, self.layers, tokens, attention, np.maximum
        )
        seconds, energy_j, expert_bytes = self._awake(total)
        return DecodeCosts(seconds.tolist(), energy_j.tolist(), [1] * len(seconds), expert_bytes)

    def expert_seconds(self, tokens: int) -> float:
        """Time of routing and experts in all layers, of an iteration of so many tokens."""
        return self._kernels.expert_seconds(tokens)

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the GPUs' peak in ``span_s``."""
        return 2 * macs_of(work, self._model) / (self._units * self._gpu.peak_flops * span_s)

    def _awake(self, total: Piece) -> tuple[Any, Any, float]:
        """The host's time, and the energy of being awake all the time."""
        seconds = total.seconds + self._gpu.overhead.iteration_s
        awake_j = self._units * self._gpu.energy.active_w * seconds
        return seconds, total.energy_j + awake_j, total.expert_bytes

    def _stretch(
        self,
        total: Piece,
        start: int,
        stop: int,
        tokens: int,
        attention: tuple[Piece, ...],
        larger: Callable[..., Any],
    ) -> Piece:
        """A total and the layers from ``start`` to ``stop``, if they have anything to compute.

        ``attention`` is that of a layer that sees all tokens, and of one that sees a window.
        """
        if start >= stop or not tokens:
            return total
        for experts, windowed, layers in self._kinds(start, stop):
            least_s = self._gpu.overhead.expert_layer_s if experts else 0.0
            base, seen = self._kernels.layer(tokens, experts), attention[windowed]
            total = Piece(
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


def _check_groups(model: Model, units: int, groups: int) -> None:
    most = 1 if model.experts is None else model.experts.count
    allowed = [each for each in range(1, units + 1) if units % each == 0 and each <= most]
    if groups not in allowed:
        raise InputError(
            f"expert parallelism: found {groups}; allowed for '{model.name}' on {units} GPUs: "
            + ", ".join(map(str, allowed))
        )
