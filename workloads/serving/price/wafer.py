"""A model on a chip without off-chip memory: what runs on which grid, and how it is added up.

Requests pass the regions of a phase one behind another, each with kernels of its own. Weights are
at rest where decoding needs them. Prompts may run on a grid of another side: then weights, keys and
values are reshuffled before and after (`workloads.serving.price.reshuffle`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from heapq import heapify, heapreplace
from math import prod
from typing import NamedTuple

from tlm.chips import Chip
from workloads.kernels.catalogue import KERNELS_OWN, Choices
from workloads.machine.dtypes import DTYPE_BITS, activation_dtype
from workloads.machine.network import Network, chip_network
from workloads.machine.place import Place, chip_place
from workloads.models import Model
from workloads.serving.price.cost import Batch
from workloads.serving.price.grid_layer import check_grid_model
from workloads.serving.price.grid_mapping import GridMapping
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.parts import Decode, Head, Layer, Part, Prompt, rounded
from workloads.serving.price.regions import Regions, regions_of
from workloads.serving.price.reshuffle import Line, Reshuffle, reshuffled

#: Sides of regions that are tried are multiples of this, as in the published tables.
_STEP = 30
#: In place of a side: all tiles of the chip.
WHOLE = 0


#: A part of an iteration.
AnyPart = Part | Reshuffle


class Item(NamedTuple):
    """Requests that are alike.

    Attributes:
        parts: Of each, and how often it runs.
        times: How many there are.
    """

    parts: tuple[tuple[AnyPart, int], ...]
    times: int

    def total(self, of: Callable[[AnyPart], float]) -> float:
        """Of one request, on one region after another: cycles, or joules."""
        return sum(count * of(part) for part, count in self.parts)


@dataclass(frozen=True, slots=True)
class Phase:
    """Requests on regions of one side.

    Attributes:
        name: ``prefill`` or ``decode``.
        regions: Where they run.
        items: The requests.
    """

    name: str
    regions: Regions
    items: tuple[Item, ...]

    def cycles(self, of: Callable[[Item], float]) -> float:
        """Of all requests, one behind another, by the cycles of one of each kind."""
        total = longest = 0.0
        for item in self.items:
            cycles = of(item)
            total, longest = total + cycles * item.times, max(longest, cycles)
        return self.regions.pipelined(total, longest)

    @property
    def bubble_pct(self) -> float:
        """Part of the time in which a region stands still, if all requests were equal."""
        return self.regions.bubble_pct(sum(item.times for item in self.items))


class Planned(NamedTuple):
    """An iteration.

    Attributes:
        phases: One or two.
        reshuffles: Of weights, keys and values to the grid of prompts, and back.
    """

    phases: tuple[Phase, ...]
    reshuffles: tuple[Item, ...] = ()

    def cycles(self, of: Callable[[int, Item], float]) -> float:
        """Of all, by the cycles of a request, or a reshuffle, on grids of some side."""
        total = self.reshuffle_cycles(of)
        for phase in self.phases:
            side = phase.regions.side
            total += phase.cycles(partial(of, side))
        return total

    def reshuffle_cycles(self, of: Callable[[int, Item], float]) -> float:
        """Of the reshuffles."""
        return sum(of(WHOLE, item) for item in self.reshuffles)

    def items(self) -> Iterator[tuple[int, Item]]:
        """All requests and reshuffles, each with the side of its grid."""
        for phase in self.phases:
            yield from ((phase.regions.side, item) for item in phase.items)
        yield from ((WHOLE, item) for item in self.reshuffles)


class Wafer:
    """Grids of a chip for a model.

    Args:
        model: A dense model.
        chip: The chip.
        side: Of the regions of both phases; None: that of the fewest cycles for each.
        choices: Variants of kernels: each gets those that it has.
        tiles: Rows and columns of the chip's tiles that there are; None: all.
        network: What stands in for the chip's own; None: nothing.

    Raises:
        InputError: for a model whose layers are of another kind.
    """

    def __init__(
        self,
        model: Model,
        chip: Chip,
        side: int | None = None,
        choices: Choices = KERNELS_OWN,
        *,
        tiles: tuple[int, int] | None = None,
        network: Network | None = None,
    ) -> None:
        check_grid_model(model)
        self.model, self._asked, self._choices = model, side, choices
        dtype = activation_dtype(chip)
        self.chip, self._bits = chip.for_dtype(dtype), DTYPE_BITS[dtype]
        self.tiles = tiles or (chip.grid.rows, chip.grid.cols)
        self._network = network or chip_network(chip)
        self._mappings: dict[int, GridMapping] = {}
        self._regions: dict[int, Regions] = {}
        self._known: dict[tuple[int, Item], float] = {}
        self._chosen: dict[tuple[int, Item], Item] = {}
        self._reshuffled: dict[Reshuffle, list[tuple[Line, Mapped]]] = {}

    def mapping(self, side: int) -> GridMapping:
        """Plans on a grid of some side."""
        if side not in self._mappings:
            place = self._place(side, side)
            self._mappings[side] = GridMapping(self.model, place, choices=self._choices)
        return self._mappings[side]

    def _place(self, rows: int, cols: int) -> Place:
        timing, combines, _ = self._network
        place = chip_place(self.chip, (rows, cols), timing, *self._bits)
        return replace(place, in_network=combines)

    def regions(self, side: int) -> Regions:
        """Regions of some side.

        Raises:
            InputError: if the chip has fewer tiles.
        """
        if side not in self._regions:
            self._regions[side] = regions_of(self.model, self.chip, side, self.tiles)
        return self._regions[side]

    def prefill_side(self, new: int, context: int = 0) -> int:
        """The side for prompts."""
        return self._side((Layer(new, False), Prompt(new, context, None)), new + context)

    def decode_side(self, context: int) -> int:
        """The side for decoding."""
        return self._side((Layer(1, False), Decode(1, 1, context, None)), context)

    def planned(self, batch: Batch, prefill: int, decode: int) -> Planned:
        """An iteration, with prompts on a grid of one side, or on that of decoding.

        They go where they take fewer cycles, reshuffles included; on that of decoding a few tokens
        may do so one after another.
        """
        prompts, decoding = self._prompts(batch), self._decoding(batch)
        after = () if not decoding else (Phase("decode", self.regions(decode), decoding),)
        if not prompts:
            return Planned(after)
        least = tuple(self._least(decode, *both) for both in prompts)
        here = Planned((Phase("prefill", self.regions(decode), least), *after))
        cycles = here.cycles(self._cycles)
        tokens = sum(map(sum, batch.prefills)) + batch.decode_context_tokens
        reshuffles = self._reshuffles(prefill, decode, tokens)
        # Kernels of prompts are not planned there if the way alone takes longer.
        if cycles < Planned(after, reshuffles).cycles(self._cycles):
            return here
        whole = Phase("prefill", self.regions(prefill), tuple(chunk for chunk, _ in prompts))
        there = Planned((whole, *after), reshuffles)
        return here if cycles < there.cycles(self._cycles) else there

    def cycles(self, side: int, part: AnyPart) -> float:
        """Cycles of a part on a grid, by the closed forms of its kernels."""
        if isinstance(part, Reshuffle):
            return float(sum(mapped.cycles for _, mapped in self.reshuffled(part)))
        return float(self.mapping(side).cycles(part))

    def reshuffled(self, part: Reshuffle) -> list[tuple[Line, Mapped]]:
        """The exchanges of a reshuffle, found once."""
        if part not in self._reshuffled:
            self._reshuffled[part] = reshuffled(part, self._place(*self.tiles))
        return self._reshuffled[part]

    def _cycles(self, side: int, item: Item) -> float:
        """Of a request: a run meets few that are not alike."""
        known = self._known.get((side, item))
        if known is None:
            known = self._known[side, item] = item.total(partial(self.cycles, side))
        return known

    def _least(self, side: int, whole: Item, single: Item) -> Item:
        """A prompt chunk whole, or by tokens if these take fewer cycles on a grid.

        Its attention is not planned if its layers alone take more.
        """
        key = side, whole
        if key not in self._chosen:
            layers, *_ = whole.parts
            tokens = self._cycles(side, single)
            longer = tokens < self._cycles(side, Item((layers,), 1))
            self._chosen[key] = single if longer or tokens < self._cycles(side, whole) else whole
        return self._chosen[key]

    def _side(self, parts: Sequence[Part], tokens: int) -> int:
        """The side on which a layer takes the fewest cycles, of those on which all layers fit.

        Where they fit on none it is that of the fewest cycles alone.
        """
        if self._asked is not None:
            return self._asked
        most = min(self.tiles)
        sides: list[int] = [*range(_STEP, most + 1, _STEP)] or [most]
        fit = [side for side in sides if self.regions(side).shift_tokens >= tokens] or sides
        return self._fewest(fit, parts)

    def _fewest(self, sides: Sequence[int], parts: Sequence[Part]) -> int:
        """The side on which parts take the fewest cycles, the least of equal ones.

        Kernels are planned one at a time, on the side that may yet have the fewest cycles: those of
        what is planned there, and the least of the others. So on most sides few are planned.
        """
        # Long ones first, which rule a side out.
        kernels = {
            side: sorted(
                (each for part in parts for each in self.mapping(side).operators(part)),
                key=lambda operator: -prod(operator.sizes),
            )
            for side in sides
        }
        at_least = {
            side: list(map(self.mapping(side).least_cycles, kernels[side])) for side in sides
        }
        least = [(sum(at_least[side]), side, 0) for side in sides]
        heapify(least)
        while True:
            total, side, planned = least[0]
            if planned == len(kernels[side]):
                return side
            cycles = self.mapping(side).mapped(kernels[side][planned]).cycles
            more = cycles - at_least[side][planned]
            heapreplace(least, (total + more, side, planned + 1))

    def _prompts(self, batch: Batch) -> list[tuple[Item, Item]]:
        """Prompt chunks, each whole and by tokens; as many as give a next token pass the head.

        Numbers are rounded as on other chips, so that a run meets few different ones.
        """
        layers = self.model.layers if batch.prefill_layers is None else len(batch.prefill_layers)
        heads = batch.logit_rows - batch.decode_tokens
        return [
            _prompt(rounded(new), rounded(context), layers, head=number < heads)
            for number, (new, context) in enumerate(batch.prefills)
        ]

    def _decoding(self, batch: Batch) -> tuple[Item, ...]:
        """Decoding requests, of equal contexts; the tokens of a draft one after another."""
        sequences, width = batch.decode_sequences, batch.decode_width
        if not sequences:
            return ()
        context = -(-batch.decode_context_tokens // sequences)
        tokens = _tokens(rounded(context), self.model.layers * width)
        return (Item((*tokens, (Head(1), width)), sequences),)

    def _reshuffles(self, prefill: int, decode: int, tokens: int) -> tuple[Item, ...]:
        """Weights, and keys and values of tokens, go to the regions of prompts, and back."""
        if prefill == decode:
            return ()
        there, back = self.regions(prefill), self.regions(decode)
        moved = self._weight_bytes + tokens * self.model.kv_bytes_per_token
        ways = Reshuffle(back, there), Reshuffle(there, back)
        return tuple(Item(((way, way.pieces(moved, *self.tiles)),), 1) for way in ways)

    @cached_property
    def _weight_bytes(self) -> int:
        return self.model.weight_bytes


@lru_cache(1 << 16)
def _prompt(new: int, context: int, layers: int, *, head: bool) -> tuple[Item, Item]:
    """A chunk in some layers, whole and token by token; the last token may pass the head."""
    after = ((Head(1), 1),) if head else ()
    seen = rounded(context + new // 2)  # as many as single ones see in the mean
    single = Item((*_tokens(seen, new * layers), *after), 1)
    if new == 1:
        return single, single
    attention: Part = Prompt(new, context, None)
    return Item(((Layer(new, False), layers), (attention, layers), *after), 1), single


def _tokens(context: int, layers: int) -> tuple[tuple[Part, int], ...]:
    """Single tokens that pass some layers in all."""
    return (Layer(1, False), layers), (Decode(1, 1, context, None), layers)
