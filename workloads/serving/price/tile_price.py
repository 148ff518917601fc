"""Iterations of a model on a grid of tiles: sums of its operators' kernels on a place.

Kernels run one after another, each over all tiles of the place, with operands and results in
off-chip memory: what ``wafertlm iteration`` prints kernel by kernel. Nothing else is a price.
Keys and values in the tiles' SRAM are at hand there.

Energy is that of the same plans (`workloads.serving.price.plan_energy`). Not modelled: host time
between iterations, and memory below its peak bandwidth (refresh, row misses).
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import Literal, NamedTuple, Self

import numpy as np

from tlm.chips import Chip
from tlm.chips.find import shipped_as
from tlm.errors import InputError
from tlm.level_errors import Between, lt_between
from workloads.kernels.catalogue import KERNELS
from workloads.machine.dtypes import DTYPE_BITS, activation_dtype
from workloads.machine.kv_levels import BLOCK_TOKENS, KvLevels
from workloads.machine.network import Network, chip_network
from workloads.machine.place import Place, chip_place
from workloads.machine.side_by_side import Lot, whole
from workloads.models import Model, SlidingWindow
from workloads.models.operators import Attention
from workloads.serving.price.cost import (
    Batch,
    DecodeCosts,
    Int64s,
    IterationCost,
    Work,
    macs_of,
)
from workloads.serving.price.iteration import (
    Decode,
    Head,
    Iterations,
    Layer,
    Part,
    Prompt,
    Stage,
    alike,
    needed,
    part_operators,
    rounded,
)
from workloads.serving.price.mapping import Mapped, Mapping
from workloads.serving.price.plan_energy import plan_energy_j

#: Work that every service meets, by which it is found whether kernels have room for their buffers.
_LEAST = (Layer(1, False), Prompt(1024, 0, None), Decode(1, 1, 1024, None), Head(1))


End = Literal["low", "high"]


class _Price(NamedTuple):
    """Of some kernels: cycles, joules, and bytes of experts' weights."""

    cycles: float = 0.0
    joules: float = 0.0
    expert_bytes: float = 0.0


class TilePrice:
    """``ServingModel`` of a model on a tile chip, or on some of its tiles (``lot``).

    ``network`` stands in for the chip's own, if there is one.

    Where all tiles share the memory, pools of one chip share the weights, and a pool has its share
    of what they leave; else each pool holds weights of its own.

    What ``kv_sram_tokens`` take is set aside in every tile's SRAM, an equal share of each token's
    keys and values; kernels have the rest for their buffers.

    Raises:
        InputError: if the chip lacks a part, its memory cannot hold the weights, or what is left of
            the SRAM holds no buffers.
    """

    def __init__(
        self,
        model: Model,
        chip: Chip,
        *,
        lot: Lot | None = None,
        kv_sram_tokens: int = 0,
        network: Network | None = None,
    ) -> None:
        dtype = activation_dtype(chip)
        # Comparisons are with a shipped chip's own constants.
        self._compared_as = None if network is not None else shipped_as(chip)
        self._end: End | None = None
        self._model, self._chip = model, chip.for_dtype(dtype)
        self._parts = Iterations(model)
        tiles, channels = lot or whole(chip)
        self._share = Fraction(tiles.rows * tiles.cols, chip.grid.rows * chip.grid.cols)
        bits = DTYPE_BITS[dtype]
        timing, combines = network or chip_network(chip)
        place = chip_place(self._chip, tiles, timing, *bits, memory=True, share=channels)
        self._place = self._keeping(replace(place, in_network=combines), kv_sram_tokens)
        self._mapping = Mapping(self._place)
        self._kept = Mapping(replace(self._place, offchip=None), kept=True)
        self._priced: dict[Part, _Price] = {}
        self._plans: dict[Part, list[tuple[Mapping, Mapped]]] = {}  # of what has no price yet
        self._used: dict[Part, list[tuple[Mapping, Mapped]]] = {}  # of what has one
        self._stages: dict[Stage, _Price] = {}
        self._decoded: dict[tuple[int, int, int, int], _Price] = {}

    def at_end(self, end: End) -> Self:
        """The same, with times as low or as high as the errors of the closed forms let them be.

        They share their plans.

        Raises:
            InputError: if the comparison of the closed forms with `lt` is missing or stale.
        """
        other = copy(self)
        other._end, other._priced, other._stages, other._decoded = end, {}, {}, {}
        return other

    @property
    def not_compared(self) -> list[str]:
        """Kernels that were priced, of whose closed forms no error is known."""
        kernels = {
            mapped.kernel
            for plans in self._used.values()
            for mapping, mapped in plans
            if self._between(mapping, mapped) is None
        }
        return sorted(kernels)

    @property
    def place(self) -> Place:
        """The tiles that it runs on."""
        return self._place

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
        return self._place.kv.memory_tokens(self.kv_bytes_per_token)

    @property
    def kv_sram_tokens(self) -> int:
        """Tokens whose keys and values have room set aside in the tiles' SRAM."""
        return self._place.kv.sram_tokens(self.kv_bytes_per_token)

    @property
    def static_power_w(self) -> float | None:
        """Power of the tiles without work: their share of the chip's; None without figures."""
        energy = self._chip.energy
        return None if energy is None else energy.idle_w * float(self._share)

    def cost(self, batch: Batch) -> IterationCost:
        """Price of an iteration."""
        cycles, joules, read = self._sum(self._parts.stages(batch))
        energy_j = None if self._chip.energy is None else joules
        return IterationCost(cycles / self._chip.clock_hz, energy_j, read)

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """Prices of iterations that only decode."""
        first = rounded(-(-int(context_tokens[0]) // sequences))
        last = rounded(-(-int(context_tokens[-1]) // sequences))
        if first == last and spilled_tokens is None:  # as they only grow
            price, there = self._decoding(sequences, width, first, 0), len(context_tokens)
            seconds = np.full(there, price.cycles / self._chip.clock_hz)
            energy = None if self._chip.energy is None else np.full(there, price.joules)
            return DecodeCosts(seconds, energy, price.expert_bytes)
        contexts = [rounded(each) for each in (-(-context_tokens // sequences)).tolist()]
        kept = [0] * len(contexts)
        if spilled_tokens is not None:
            in_sram = np.maximum(0, context_tokens - spilled_tokens)
            share = in_sram / np.maximum(1, context_tokens)
            kept = np.rint(self.layers * share).astype(np.int64).tolist()
        keys = list(zip(contexts, kept, strict=True))
        prices = {key: self._decoding(sequences, width, *key) for key in set(keys)}
        seconds = np.array([prices[key].cycles for key in keys]) / self._chip.clock_hz
        joules = np.array([prices[key].joules for key in keys])
        read = prices[keys[0]].expert_bytes
        return DecodeCosts(seconds, None if self._chip.energy is None else joules, read)

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the chip's peak in ``span_s``."""
        place = self._place
        peak = place.rows * place.cols * place.matrix.macs_per_cycle * self._chip.clock_hz
        return macs_of(work, self._model) / (peak * span_s)

    def _decoding(self, sequences: int, width: int, context: int, kept: int) -> _Price:
        """Price of an iteration that only decodes, once for each of these."""
        key = sequences, width, context, kept
        if key not in self._decoded:
            self._decoded[key] = _Price(*self._sum(self._parts.decoding(*key)))
        return self._decoded[key]

    def _sum(self, stages: Iterable[Stage]) -> tuple[float, float, float]:
        """Cycles, joules and bytes of experts' weights of stages."""
        cycles = joules = read = 0.0
        for stage in stages:
            more, energy, weights = self._stages.get(stage) or self._stage(stage)
            cycles += more
            joules += energy
            read += weights
        return cycles, joules, read

    def _stage(self, stage: Stage) -> _Price:
        """Price of a stage that has none yet."""
        cycles = joules = read = 0.0
        for part, count in self._parts.parts(stage):
            price = self._priced.get(part) or self._of(part)
            cycles += count * price.cycles
            joules += count * price.joules
            read += count * price.expert_bytes
        self._stages[stage] = _Price(cycles, joules, read)
        return self._stages[stage]

    def _of(self, part: Part) -> _Price:
        """Price of a part that has none yet, of the plans that were found for it."""
        if part not in self._used:
            if part not in self._plans:
                self._find(alike(part))
            self._used[part] = self._plans.pop(part)
        cycles: float = 0
        joules = 0.0
        for mapping, mapped in self._used[part]:
            macs = KERNELS[mapped.kernel].macs(mapped.sizes)
            cycles += mapped.cycles if self._end is None else self._cycles_at_end(mapping, mapped)
            joules += plan_energy_j(self._chip, mapping.place, mapped.plan, macs) or 0.0
        self._priced[part] = _Price(cycles, joules, self._expert_bytes(part))
        return self._priced[part]

    def _cycles_at_end(self, mapping: Mapping, mapped: Mapped) -> float:
        between = self._between(mapping, mapped)
        if between is None:
            return mapped.cycles
        return mapped.cycles * (between.low if self._end == "low" else between.high)

    def _between(self, mapping: Mapping, mapped: Mapped) -> Between | None:
        memory = mapping.place.offchip is not None
        of = (self._compared_as, mapped.kernel, mapped.plan.balance, mapped.cycles)
        return lt_between(*of, memory=memory)

    def _find(self, parts: Sequence[Part]) -> None:
        """Plans of parts that differ in how much there is to do alone."""
        in_sram = isinstance(parts[0], Decode) and parts[0].in_sram
        found: list[list[tuple[Mapping, Mapped]]] = [[] for _ in parts]
        for operators in zip(*(part_operators(self._model, each) for each in parts), strict=True):
            kept = in_sram and isinstance(operators[0], Attention)
            mapping = self._kept if kept else self._mapping
            for plans, mapped in zip(found, mapping.of_all(operators), strict=True):
                plans.append((mapping, mapped))
        self._plans |= zip(parts, found, strict=True)

    def _expert_bytes(self, part: Part) -> float:
        """Bytes of experts' weights that a part reads."""
        if not isinstance(part, Layer) or not part.experts:
            return 0.0
        return needed(self._model, part.tokens) * self._model.expert_bytes

    def _left_by_weights(self) -> int:
        """Bytes of the memory that are the place's, beside the weights."""
        model, chip = self._model, self._chip
        memory, share = chip.memory, self._share
        assert memory is not None  # or there were no place
        there = int(memory.capacity_bytes * (share if memory.per_tile else 1))
        if model.weight_bytes >= there:
            raise InputError(
                f"model '{model.name}' on chip '{chip.name}': weights take {model.weight_bytes} "
                f"bytes; allowed: less than the memory's {there}"
            )
        return int((there - model.weight_bytes) * (1 if memory.per_tile else share))

    def _keeping(self, place: Place, kv_sram_tokens: int) -> Place:
        """The place with room for keys and values in its memory, and for some in its tiles."""
        memory = self._left_by_weights()

        def keeping(tokens: int) -> Place:
            return place.keeping(KvLevels(tokens * self.kv_bytes_per_token, memory))

        kept = keeping(kv_sram_tokens)
        if kv_sram_tokens == 0 or (kv_sram_tokens > 0 and self._has_room(kept)):
            return kept
        most = place.tile_bytes * place.rows * place.cols // self.kv_bytes_per_token
        blocks = range(most // BLOCK_TOKENS + 1)
        room = bisect_left(
            blocks, True, key=lambda count: not self._has_room(keeping(count * BLOCK_TOKENS))
        )
        raise InputError(
            f"--kv-sram-tokens: found {kv_sram_tokens}; allowed for '{self._model.name}' on "
            f"{place.rows * place.cols} tiles of '{self._chip.name}': 0 to "
            f"{(room - 1) * BLOCK_TOKENS}, as kernels need buffers"
        )

    def _has_room(self, place: Place) -> bool:
        """Whether each kernel finds a plan."""
        mapping = Mapping(place)
        parts: list[Part] = [*_LEAST, *([Layer(1, True)] if self._model.experts else [])]
        try:
            for part in parts:
                for operator in part_operators(self._model, part):
                    mapping.of(operator)
        except InputError:
            return False
        return True
