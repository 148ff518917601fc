"""Iterations of a model on a chip without off-chip memory: what ``wafertlm iteration`` adds up.

Requests pass the regions one behind another, each with kernels of its own. Both grids are tuned
once, for prompts and contexts of 4,096 tokens: WaferLLM's offline tuning takes average lengths, too
(section 4.4). Weights are at rest where decoding needs them, unless there are prompts alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from itertools import groupby
from math import fsum
from typing import NamedTuple, Self

from tlm.chips import Chip
from tlm.errors import InputError
from tlm.level_errors import compared_as
from workloads.kernels.catalogue import KERNELS, KERNELS_OWN, Choices
from workloads.machine.network import Network
from workloads.machine.side_by_side import Lot
from workloads.models import Model
from workloads.serving.price.compared_prices import ComparedPrices, Price
from workloads.serving.price.cost import (
    Batch,
    DecodeCosts,
    Int64s,
    IterationCost,
    OfModel,
    Work,
    macs_of,
)
from workloads.serving.price.energy import known_j
from workloads.serving.price.grid_mapping import GridMapping
from workloads.serving.price.level_runs import LevelRuns
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.parts import rounded
from workloads.serving.price.plan_energy import plan_energy_j
from workloads.serving.price.reshuffle import Line, Reshuffle
from workloads.serving.price.tile_price import End
from workloads.serving.price.wafer import AnyPart, Item, Planned, Wafer

_USUAL_TOKENS = 4096


class Placed(NamedTuple):
    """A part of an iteration on a grid of some side, or of all tiles."""

    side: int
    part: AnyPart


class GridPrices(ComparedPrices[Placed]):
    """Prices of parts, each once.

    Args:
        wafer: The chip's grids.
        compared_as: The shipped chip whose comparisons hold; None: those of all.
        network_pct: Error of the calibration of a network that stands in for the chip's.
    """

    def __init__(self, wafer: Wafer, compared_as: str | None, network_pct: float) -> None:
        super().__init__(compared_as, network_pct)
        self._wafer = wafer

    def _price(self, placed: Placed) -> Price:
        cycles = joules = 0.0
        for grid, mapped in self.plans(placed):
            macs = KERNELS[mapped.kernel].macs(mapped.sizes, mapped.choices)
            times = grid.lines if isinstance(grid, Line) else 1
            cycles += mapped.cycles
            joules += times * plan_energy_j(self._wafer.chip, grid.place, mapped.plan, macs)
        return Price(cycles, joules)

    def _bounds(self, placed: Placed) -> tuple[float, float]:
        low = high = 0.0
        for grid, mapped in self.plans(placed):
            ends = self._between(grid, mapped, mapped.cycles)
            low, high = low + mapped.cycles * ends.low, high + mapped.cycles * ends.high
        return low, high

    def plans(self, placed: Placed) -> Sequence[tuple[GridMapping | Line, Mapped]]:
        """Plans of a part's kernels."""
        if isinstance(placed.part, Reshuffle):
            return self._wafer.reshuffled(placed.part)
        grid = self._wafer.mapping(placed.side)
        return [(grid, mapped) for _, mapped in grid.of(placed.part)]


class WaferPrice(OfModel):
    """``ServingModel`` of a model on a chip without off-chip memory, or on some of its tiles.

    Args:
        model: A dense model.
        chip: The chip.
        lot: Its tiles; None: all.
        network: What stands in for its own; None: nothing.
        prompts_only: Whether it never decodes, as a pool for prompts.

    Raises:
        InputError: if layers are of another kind, or weights and a few tokens do not fit.
    """

    def __init__(
        self,
        model: Model,
        chip: Chip,
        *,
        lot: Lot | None = None,
        network: Network | None = None,
        prompts_only: bool = False,
        choices: Choices = KERNELS_OWN,
    ) -> None:
        super().__init__(model)
        tiles = None if lot is None else (lot.tiles.rows, lot.tiles.cols)
        self._wafer = Wafer(model, chip, choices=choices, tiles=tiles, network=network)
        prefill = self._wafer.prefill_side(_USUAL_TOKENS)
        decode = prefill if prompts_only else self._wafer.decode_side(_USUAL_TOKENS)
        self._sides = prefill, decode
        self._rest = self._wafer.regions(decode)
        if not self._rest.shift_tokens:
            raise InputError(
                f"model '{model.name}' on chip '{chip.name}': weights take "
                f"{model.weight_bytes} bytes; allowed: less than its tiles hold, in whole layers "
                "and padded to a grid"
            )
        compared = compared_as(chip, rerouted=network is not None)
        network_pct = 0.0 if network is None else network.error_pct
        self._prices = GridPrices(self._wafer, compared, network_pct)
        self._end: End | None = None
        self._known: dict[tuple[int, Item], float] = {}
        self._energy: dict[tuple[int, Item], float] = {}

    def at_end(self, end: End) -> Self:
        """The same, with times as low or as high as the errors of the prices let them be."""
        other = copy(self)
        other._end, other._known = end, {}
        return other

    def at_level(self, runs: LevelRuns) -> Self:
        """Refused: it takes too long on grids of this size.

        Raises:
            InputError: always.
        """
        chip = self._wafer.chip.name
        raise InputError(f"--level: found '{runs.level}' with '{chip}'; allowed: perf")

    @property
    def not_compared(self) -> list[str]:
        """Kernels that were priced, of whose closed forms no error is known."""
        return self._prices.not_compared

    @property
    def prices(self) -> GridPrices:
        """Prices of the parts of its iterations."""
        return self._prices

    def seconds_of(self, made_of: Mapping[Planned, int]) -> float:
        """Time of iterations, from what they were made of."""
        return fsum(times * self._seconds(planned) for planned, times in made_of.items())

    def parts(self, made_of: Mapping[Planned, int]) -> dict[Placed, int]:
        """Parts of iterations, and how often each ran, from what they were made of."""
        found: Counter[Placed] = Counter()
        for planned, times in made_of.items():
            for side, item in planned.items():
                for part, count in item.parts:
                    found[Placed(side, part)] += times * item.times * count
        return found

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of a token."""
        return self._model.kv_bytes_per_token

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens of keys and values that fit beside the weights, shifted over all rows."""
        return self._rest.shift_tokens

    @property
    def kv_sram_tokens(self) -> int | None:
        """All of them are in the tiles' SRAM: there is no level before another one."""
        return None

    @property
    def static_power_w(self) -> float | None:
        """Power of the tiles without work: their share of the chip's; None without figures."""
        energy, grid = self._wafer.chip.energy, self._wafer.chip.grid
        rows, cols = self._wafer.tiles
        return None if energy is None else energy.idle_w * rows * cols / (grid.rows * grid.cols)

    def cost(self, batch: Batch) -> IterationCost:
        """Price of an iteration."""
        planned = self._wafer.planned(batch, *self._sides)
        made_of = (planned,) if self._end is None else ()
        return IterationCost(self._seconds(planned), self._joules(planned), 0.0, made_of)

    def decode_costs(
        self,
        sequences: int,
        context_tokens: Int64s,
        width: int = 1,
        spilled_tokens: int | None = None,
    ) -> DecodeCosts:
        """Prices of iterations that only decode."""
        contexts = [rounded(each) for each in (-(-context_tokens // sequences)).tolist()]
        runs = [(context, len(list(alike))) for context, alike in groupby(contexts)]
        plans = [self._decoding(sequences, context, width) for context, _ in runs]
        return DecodeCosts(
            [self._seconds(plan) for plan in plans],
            [self._joules(plan) for plan in plans],
            [count for _, count in runs],
            0.0,
            [(plan,) for plan in plans],
        )

    def utilization(self, work: Work, span_s: float) -> float:
        """Unpadded multiply-accumulates of ``work`` over the tiles' peak in ``span_s``."""
        (rows, cols), chip = self._wafer.tiles, self._wafer.chip
        peak = rows * cols * chip.tile.matrix.compute().macs_per_cycle * chip.clock_hz
        return macs_of(work, self._model) / (peak * span_s)

    def _decoding(self, sequences: int, context: int, width: int) -> Planned:
        batch = Batch((), sequences, sequences * context, sequences * width, decode_width=width)
        return self._wafer.planned(batch, *self._sides)

    def _seconds(self, planned: Planned) -> float:
        return planned.cycles(self._cycles) / self._wafer.chip.clock_hz

    def _cycles(self, side: int, item: Item) -> float:
        """Of a request: a run meets few that are not alike."""
        known = self._known.get((side, item))
        if known is None:
            known = self._known[side, item] = item.total(partial(self._of_part, side))
        return known

    def _of_part(self, side: int, part: AnyPart) -> float:
        placed = Placed(side, part)
        if self._end is None:
            return self._prices.of(placed).cycles
        low, high = self._prices.ends(placed)
        return low if self._end == "low" else high

    def _joules(self, planned: Planned) -> float | None:
        items = planned.items()
        return known_j(sum(item.times * self._joules_of(side, item) for side, item in items))

    def _joules_of(self, side: int, item: Item) -> float:
        known = self._energy.get((side, item))
        if known is None:
            of = self._prices.of
            known = item.total(lambda part: of(Placed(side, part)).joules)
            self._energy[side, item] = known
        return known
