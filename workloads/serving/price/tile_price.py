"""Iterations of a model on a grid of tiles: sums of its operators' kernels on a place.

Kernels run one after another, each over all tiles of the place, with operands and results in
off-chip memory: what ``wafertlm iteration`` prints kernel by kernel. Nothing else is a price.
Keys and values in the tiles' SRAM are at hand there.

Energy is that of the same plans (`workloads.serving.price.plan_energy`). Not modelled: host time
between iterations, and memory below its peak bandwidth (refresh, row misses).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from math import fsum
from typing import Literal, Self

from tlm.chips import Chip
from tlm.errors import InputError
from tlm.level_errors import compared_as
from workloads.kernels.catalogue import KERNELS_OWN, Choices
from workloads.machine.dtypes import DTYPE_BITS, activation_dtype
from workloads.machine.kv_levels import BLOCK_TOKENS, KvLevels
from workloads.machine.network import Network, chip_network
from workloads.machine.place import Place, chip_place
from workloads.machine.side_by_side import Lot, whole
from workloads.models import Model
from workloads.serving.price.compared_prices import Price
from workloads.serving.price.cost import (
    Batch,
    DecodeCosts,
    Int64s,
    IterationCost,
    OfModel,
    Work,
    layers_in_sram,
    macs_of,
)
from workloads.serving.price.energy import UNKNOWN, known_j
from workloads.serving.price.iteration import DecodingOnly, Iterations, Keeping, Stage
from workloads.serving.price.level_runs import LevelRuns
from workloads.serving.price.mapping import Mapping as Mapper
from workloads.serving.price.part_price import PartPrices, Residents
from workloads.serving.price.parts import (
    AnyPart,
    Decode,
    Head,
    Layer,
    Part,
    Prompt,
    part_operators,
    rounded,
)
from workloads.serving.price.residency import Residency, residency_of
from workloads.serving.price.stage_cells import StageTable

#: Work that every service meets, by which it is found whether kernels have room for their buffers.
_LEAST = (Layer(1, False), Prompt(1024, 0, None), Decode(1, 1, 1024, None), Head(1))

End = Literal["low", "high"]
_ENDS: tuple[End, End] = ("low", "high")


class TilePrice(OfModel):
    """``ServingModel`` of a model on a tile chip, or on some of its tiles (``lot``).

    ``network`` stands in for the chip's own, if there is one. ``choices`` are variants of kernels.

    Where all tiles share the memory, pools of one chip share the weights, and a pool has its share
    of what they leave; else each pool holds weights of its own.

    What ``kv_sram_tokens`` take is set aside in every tile's SRAM, an equal share of each token's
    keys and values; kernels have the rest for their buffers.

    Of a chip whose profile has ``[residency]`` the tiles keep weights as well
    (`workloads.serving.price.residency`); keys and values then have, without ``kv_sram_tokens``, as
    much room as ``kv_wanted_tokens`` need.

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
        kv_sram_tokens: int | None = None,
        kv_wanted_tokens: int = 0,
        network: Network | None = None,
        choices: Choices = KERNELS_OWN,
    ) -> None:
        dtype = activation_dtype(chip)
        # Comparisons are with a shipped chip's own constants.
        compared = compared_as(chip, rerouted=network is not None)
        self._end: End | None = None
        self._choices = choices
        super().__init__(model)
        self._chip = chip.for_dtype(dtype)
        tiles, channels = lot or whole(chip)
        self._share = Fraction(tiles.rows * tiles.cols, chip.grid.rows * chip.grid.cols)
        bits = DTYPE_BITS[dtype]
        timing, combines, network_pct = network or chip_network(chip)
        place = chip_place(self._chip, tiles, timing, *bits, memory=True, share=channels)
        place, residents = replace(place, in_network=combines), None
        self._residency: Residency | None = None
        if self._chip.residency is None:
            self._place = self._keeping(place, kv_sram_tokens or 0)
        else:
            self._residency = residency_of(
                model, self._chip, place, kv_sram_tokens, kv_wanted_tokens
            )
            self._place = self._beside(place, self._residency)
            residents = Residents.of(self._place, choices, self._residency)
        self._parts = Iterations(model, self._keeps)
        in_sram = Mapper(replace(self._place, offchip=None), choices, kept=True)
        mappings = Mapper(self._place, choices), in_sram
        self._prices = PartPrices(
            model, self._chip, mappings, compared, network_pct, residents=residents
        )
        self._tables: dict[tuple[End | None, int], StageTable] = {}
        self._stages: dict[Stage, Price] = {}
        self._decoded: dict[DecodingOnly, tuple[Price, list[Stage]]] = {}
        self._at_ends: dict[End, dict[Stage, Price]] = {"low": {}, "high": {}}

    def at_end(self, end: End) -> Self:
        """The same, with times as low or as high as the errors of the prices let them be.

        They share their plans, and what was found at the ends.

        Raises:
            InputError: if the comparison of the closed forms with `lt` is missing or stale.
        """
        other = copy(self)
        other._end, other._stages, other._decoded = end, self._at_ends[end], {}
        return other

    def at_level(self, runs: LevelRuns) -> Self:
        """The same with prices of the level of some runs."""
        return self.by(self._prices.at_level(runs))

    def by(self, prices: PartPrices) -> Self:
        """The same with other prices of the parts of its iterations."""
        other = copy(self)
        other._prices = prices
        other._stages, other._decoded, other._at_ends = {}, {}, {"low": {}, "high": {}}
        other._tables = {}
        return other

    @property
    def not_compared(self) -> list[str]:
        """Kernels that were priced, of whose closed forms no error is known."""
        return self._prices.not_compared

    def seconds_of(self, made_of: Mapping[Stage, int]) -> float:
        """Time of iterations, from what they were made of."""
        cycles = fsum(times * self.stage(stage).cycles for stage, times in made_of.items())
        return cycles / self.clock_hz

    def parts(self, made_of: Mapping[Stage, int]) -> dict[AnyPart, int]:
        """Parts of iterations, and how often each ran, from what they were made of."""
        found: Counter[AnyPart] = Counter()
        for stage, times in made_of.items():
            for part, count in self._parts.parts(stage):
                found[part] += times * count
        return found

    @property
    def prices(self) -> PartPrices:
        """Prices of the parts of its iterations."""
        return self._prices

    @property
    def iterations(self) -> Iterations:
        """The stages of its iterations, and the parts of these."""
        return self._parts

    @property
    def residency(self) -> Residency | None:
        """What the tiles keep; None of a chip whose profile does not ask for it."""
        return self._residency

    @property
    def place(self) -> Place:
        """The tiles that it runs on."""
        return self._place

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
        stages = self._parts.stages(batch)
        cycles, joules, read = self._sum(stages)
        # Only the run at the centre is asked what it was made of.
        made_of = stages if self._end is None else ()
        return IterationCost(cycles / self._chip.clock_hz, known_j(joules), read, made_of)

    @property
    def clock_hz(self) -> float:
        """Of the cycles of stages."""
        return float(self._chip.clock_hz)

    def stage_table(self, max_sequences: int) -> StageTable:
        """Prices of stages with so many decoding requests at most; the same table each time."""
        key = self._end, max_sequences
        if key not in self._tables:
            table = self._tables[key] = StageTable(range(self.layers), max_sequences)
            # A run at an end meets most of what others have met: all at once is faster.
            others = [(end, max_sequences) for end in (None, *_ENDS) if end != self._end]
            for other in others if self._end is not None else ():
                if other in self._tables:
                    table.find_all_of(self._tables[other], self.stage)
        return self._tables[key]

    def stage(self, stage: Stage) -> Price:
        """Price of a stage."""
        return self._stages.get(stage) or self._stage(stage)

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
            keys, times = [DecodingOnly(sequences, width, first, 0)], [len(context_tokens)]
        else:
            keys, times = self._runs(sequences, context_tokens, width, spilled_tokens)
        found = [self._decoded.get(key) or self._decoding(key) for key in keys]
        clock_hz = self._chip.clock_hz
        return DecodeCosts(
            [price.cycles / clock_hz for price, _ in found],
            [known_j(price.joules) for price, _ in found],
            times,
            found[0][0].expert_bytes,
            [stages for _, stages in found] if self._end is None else (),
        )

    def _runs(
        self, sequences: int, context_tokens: Int64s, width: int, spilled_tokens: int | None
    ) -> tuple[list[DecodingOnly], list[int]]:
        """Runs of alike iterations that only decode, and how long each is."""
        contexts = [rounded(each) for each in (-(-context_tokens // sequences)).tolist()]
        kept = layers_in_sram(self.layers, context_tokens, spilled_tokens)
        keys, times = [], []
        for pair, alike in groupby(zip(contexts, kept, strict=True)):
            keys.append(DecodingOnly(sequences, width, *pair))
            times.append(len(list(alike)))
        return keys, times

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the chip's peak in ``span_s``."""
        place = self._place
        peak = place.rows * place.cols * place.matrix.macs_per_cycle * self._chip.clock_hz
        return macs_of(work, self._model) / (peak * span_s)

    def _decoding(self, key: DecodingOnly) -> tuple[Price, list[Stage]]:
        """Price and stages of an iteration that only decodes and has none yet."""
        stages = self._parts.decoding(key)
        self._decoded[key] = Price(*self._sum(stages)), stages
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

    def _stage(self, stage: Stage) -> Price:
        """Price of a stage that has none yet; if at one end, of both: there no energy is known."""
        parts = self._parts.parts(stage)
        read = sum(count * self._prices.expert_bytes(part) for part, count in parts)
        if self._end is None:
            cycles = joules = 0.0
            for part, count in parts:
                price = self._prices.of(part)
                cycles += count * price.cycles
                joules += count * price.joules
            self._stages[stage] = Price(cycles, joules, read)
            return self._stages[stage]
        low = high = 0.0
        for part, count in parts:
            least, most = self._prices.ends(part)
            low, high = low + count * least, high + count * most
        for end, bound in zip(_ENDS, (low, high), strict=True):
            self._at_ends[end][stage] = Price(bound, UNKNOWN, read)
        return self._stages[stage]

    @property
    def _keeps(self) -> Keeping:
        """What tiles keep of the weights."""
        return Keeping() if self._residency is None else self._residency.keeping

    def _beside(self, place: Place, residency: Residency) -> Place:
        """The place with what the tiles keep set aside."""
        memory = left_by_weights(self._model, self._chip, self._share)
        levels = KvLevels(residency.kv_tokens * self.kv_bytes_per_token, memory)
        return replace(place, kv=levels, tile_bytes=residency.buffers)

    def _keeping(self, place: Place, kv_sram_tokens: int) -> Place:
        """The place with room for keys and values in its memory, and for some in its tiles."""
        memory = left_by_weights(self._model, self._chip, self._share)

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
        mapping = Mapper(place, self._choices)
        parts: list[Part] = [*_LEAST, *([Layer(1, True)] if self._model.experts else [])]
        try:
            for part in parts:
                for operator in part_operators(self._model, part):
                    mapping.of(operator)
        except InputError:
            return False
        return True


def left_by_weights(model: Model, chip: Chip, share: Fraction) -> int:
    """Bytes of a chip's memory that so large a share of its tiles has, beside the weights.

    Raises:
        InputError: if the weights do not fit.
    """
    memory = chip.memory
    assert memory is not None  # or there were no place
    there = int(memory.capacity_bytes * (share if memory.per_tile else 1))
    if model.weight_bytes >= there:
        raise InputError(
            f"model '{model.name}' on chip '{chip.name}': weights take {model.weight_bytes} "
            f"bytes; allowed: less than the memory's {there}"
        )
    return int((there - model.weight_bytes) * (1 if memory.per_tile else share))
