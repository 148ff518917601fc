"""Which kernels run a layer of a model on a tensor-parallel group of tiles.

Products are partitioned ones, whose weights come from memory; activations lie in the tiles. Each
tile computes attention of its share of the heads, and loads and keeps their keys and values. What
works on rows alone runs in each tile on the rows that it has.

A product takes and gives activations in layouts of its own (`workloads.kernels.gemm.partition_plan`
): A cut in R x C, C in R parts of whole rows, each in C tiles. Attention takes all rows of a tile's
heads. Where two operators in a row differ, and a tile does not have what it needs, the tiles
exchange parts: a kernel like others. Of all partitions of a layer's products those are taken that
are fastest together with these.

Source: NpuSim (arXiv 2510.05632), section 4.1. It has no rule for layouts between products.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from tlm.compute.base import ceil_div
from tlm.errors import InputError, choose
from workloads.kernels.catalogue import KERNELS_OWN, Choices
from workloads.kernels.gemm.partition_closed_form import partition_cycles
from workloads.kernels.gemm.partition_plan import (
    PARTITIONS,
    PartitionPlan,
    cores_of,
    plan_partition,
)
from workloads.kernels.vector.exchange import exchange_cycles, plan_exchange
from workloads.machine.place import Place
from workloads.models import Model
from workloads.models.operators import Attention, Operator, Product, Rows
from workloads.serving.price.kept_weights import Held, Matrix
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.mapping import Mapping as Mapper

#: How activations lie: parts that rows are cut into, and columns. With whole rows a tile has those
#: of a part, others the same. Of a product's operand it is rows and columns of its cores.
_Layout = tuple[int, int]
_WEIGHT_BYTES = 2.0


class Relayout(NamedTuple):
    """Activations in one layout that the next operator takes in another.

    Attributes:
        name: What it is for.
        rows: Rows of what a tile has for each other one.
        columns: Its columns.
    """

    name: str
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a kernel of a group runs, as prices and errors know it.

    Attributes:
        place: The group, or one tile of it.
        choices: Variant of the kernel.
        tiles: Times that it runs side by side: once for each tile of the group, or once.
    """

    place: Place
    choices: Choices
    tiles: int

    def variant(self, mapped: Mapped) -> str:
        """What comparisons of levels know a kernel's choices by."""
        return mapped.variant(self.choices, self.place)


class GroupKernel(NamedTuple):
    """A kernel of a group.

    Attributes:
        operator: What it computes, or moves.
        ground: Where.
        mapped: How.
        times: How often, one after the other.
    """

    operator: Operator | Relayout
    ground: Ground
    mapped: Mapped
    times: int

    @property
    def cycles(self) -> int:
        """Of all times."""
        return self.times * self.mapped.cycles


class _Path(NamedTuple):
    """Kernels up to an operator, and how the activations lie then."""

    cycles: int
    kernels: tuple[GroupKernel, ...]
    layout: _Layout

    def then(self, layout: _Layout, *more: GroupKernel | None) -> "_Path":
        """The same with some more kernels."""
        new = tuple(each for each in more if each is not None)
        cycles = self.cycles + sum(each.cycles for each in new)
        return _Path(cycles, (*self.kernels, *new), layout)


class GroupMapping:
    """Plans layers on a group.

    Args:
        model: The model.
        group: The tiles, with their channels, and the order of their ring.
        tile: One of them, with its share of a channel.
        partition: Of products: one of `PARTITIONS`. ``auto`` leaves out ``input``, for which each
            tile's channel would hold all weights.
        choices: Variants of the kernels of single tiles.
        held: Weights that lie in the tiles, beside ``tile_bytes`` of the places; None: they are in
            off-chip memory.
        only: Products that this holds for; none: all.
        others: Plans the others.

    Raises:
        InputError: for a model that cannot be dealt out to so many tiles, or a partition that they
            do not have.
    """

    def __init__(
        self,
        model: Model,
        group: Place,
        tile: Place,
        partition: str,
        choices: Choices = KERNELS_OWN,
        held: Mapping[Matrix, Held] | None = None,
        only: tuple[str, ...] = (),
        others: "GroupMapping | None" = None,
    ) -> None:
        self.model, self.group, self._held = model, group, held
        self._only, self._others = only, others
        self.tiles = group.rows * group.cols
        _check_model(model, self.tiles)
        self._tile = Mapper(tile, choices)
        alone = replace(tile, offchip=None)
        self._at_hand = Mapper(alone, choices)
        self._in_sram = Mapper(alone, choices, kept=True)
        self._own_product = self._tile if held is None else Mapper(alone, choices, held=held)
        self._cores = cores_by_partition(partition, group)
        self._planned = lru_cache(1 << 14)(self._in_pieces)

    @property
    def decided_by(self) -> tuple[object, ...]:
        """What decides its plans beside operators."""
        places = self.group, self._tile.place
        return *places, self._tile.choices, self._cores, self._held, self._only

    def attention(
        self, operators: Sequence[Operator], *, in_sram: bool = False
    ) -> list[GroupKernel]:
        """Attention, of each tile its heads; keys and values may be in its own memory."""
        found, mapper = [], self._in_sram if in_sram else self._tile
        for each in operators:
            assert isinstance(each, Attention)  # as no cache is compressed
            heads = each.q_heads // self.tiles
            own = each._replace(q_heads=heads, kv_heads=ceil_div(each.kv_heads, self.tiles))
            found.append(self._on_tile(each, own, mapper))
        return found

    def layer(self, operators: Sequence[Operator]) -> list[GroupKernel]:
        """All but attention of a layer, or the head.

        Raises:
            InputError: if no piece of a product fits the tiles' memory.
        """
        homes = {1, self.tiles, *(rows for rows, _ in self._cores.values())}
        found = [path for rows in sorted(homes) for path in self._paths(operators, (rows, 1))]
        return list(min(found, key=lambda path: path.cycles).kernels)

    def _paths(self, operators: Sequence[Operator], home: _Layout) -> list[_Path]:
        """The fastest to each layout of the results, if the tokens of a layer lie so at its ends.

        A product takes what the operator before it gives, or after others the rows themselves.
        """
        paths, follows, columns = [_Path(0, (), home)], False, 0
        for each in operators:
            if isinstance(each, Product):
                if not follows:
                    paths = [path._replace(layout=home) for path in paths]
                paths = [new for path in paths for new in self._products(path, each)]
                follows, columns = False, each.columns
            else:
                assert isinstance(each, Rows)
                paths = [new for path in paths for new in self._rows(path, each, home, columns)]
                follows = each.kind in ("kv-append", "gate")
            paths = _fastest(paths)
        return paths

    def _products(self, path: _Path, product: Product) -> Iterator[_Path]:
        """A product by each partition."""
        rows = product.rows * product.groups
        for partition, cores in self._cores.items():
            ways = self._relayout(path.layout, cores, rows, product.depth, product.name)
            if ways is not None:
                by = self._others if self._only and product.name not in self._only else self
                assert by is not None  # where there are any
                kernel = by._planned(product, partition, cores)
                yield path.then((cores[0], 1), *ways, kernel)

    def _rows(self, path: _Path, each: Rows, home: _Layout, columns: int) -> Iterator[_Path]:
        """Work on the rows that a tile has; ``columns`` are those of the product before."""
        parts, _ = path.layout
        if each.kind in ("rms-norm", "residual"):
            # Of what a residual is added to a tile has no more rows.
            if each.kind == "rms-norm" or parts <= home[0]:
                yield path.then(home, self._part(each, home))
        elif each.kind == "weighted-sum":
            yield path.then((parts, 1), self._part(each, (parts, 1)))
        elif each.kind == "gate":
            yield path.then((parts, 1), self._part(each, (parts, 1)))
            for cores in sorted({*self._cores.values()}):
                if cores[0] >= parts and cores[1] > 1:
                    yield path.then(cores, self._part(each, cores))
        else:
            heads = (1, self.tiles)
            ways = self._relayout(path.layout, heads, each.rows, columns, "attention")
            if ways is not None:
                yield path.then(heads, *ways, self._of_heads(each))

    def _of_heads(self, each: Rows) -> GroupKernel:
        """Work on the queries, or keys and values, of a tile's heads."""
        model, kept = self.model, ceil_div(self.model.kv_heads, self.tiles)
        if each.kind == "kv-append":
            own = each._replace(columns=2 * kept * model.head_dim)
            return self._on_tile(each, own, self._tile)
        heads = model.query_heads // self.tiles + kept
        return self._on_tile(each, each._replace(columns=heads * model.head_dim), self._at_hand)

    def _part(self, each: Rows, layout: _Layout) -> GroupKernel:
        """Work on the rows, and the columns, that a tile has in a layout."""
        rows, columns = ceil_div(each.rows, layout[0]), ceil_div(each.columns, layout[1])
        return self._on_tile(each, each._replace(rows=rows, columns=columns), self._at_hand)

    def _on_tile(self, whole: Operator, own: Operator, mapper: Mapper) -> GroupKernel:
        """What each tile does by itself."""
        ground = Ground(mapper.place, mapper.choices, self.tiles)
        return GroupKernel(whole, ground, mapper.of(own), 1)

    def _relayout(
        self, layout: _Layout, wanted: _Layout, rows: int, columns: int, name: str
    ) -> Sequence[GroupKernel] | None:
        """What brings activations into another layout; None: nothing does."""
        if layout == wanted or (layout[1] == 1 and layout[0] <= wanted[0]):
            return ()
        if layout[1] == 1:
            members, stride = layout[0] // wanted[0], self.tiles // layout[0]
            part = ceil_div(rows, layout[0]), ceil_div(columns, wanted[1])
        elif layout == (1, self.tiles):
            members, stride = wanted
            part = ceil_div(rows, wanted[0]), ceil_div(columns, self.tiles)
        else:
            return None
        place = replace(self.group, offchip=None)
        plan = plan_exchange(place, self.group.order, part, members, stride)
        mapped = Mapped("exchange", part, plan, exchange_cycles(plan, place.timing))
        ground = Ground(place, Choices(placement=place.placement), 1)
        return (GroupKernel(Relayout(f"relayout for {name}", *part), ground, mapped, 1),)

    def _in_pieces(self, product: Product, partition: str, cores: _Layout) -> GroupKernel:
        """A product, in as few pieces of its rows or columns as fit the tiles, one by one."""
        if self.tiles == 1:  # which has its own way with what does not fit
            return self._on_tile(product, product, self._own_product)
        m, n, k = product.rows, product.columns, product.depth
        pieces = 1
        while pieces <= m * n:
            cuts = ((high, pieces // high) for high in _powers(pieces))
            shapes = [(ceil_div(m, high), ceil_div(n, wide), k) for high, wide in cuts]
            plans = [plan_partition(shape, self.group, partition, cores) for shape in shapes]
            found = [
                (partition_cycles(plan, self.group.timing), shape, plan)
                for shape, plan in zip(shapes, plans, strict=True)
                if plan.tile_bytes - self._there(plan) <= self.group.tile_bytes
            ]
            if found:
                cycles, shape, plan = min(found, key=lambda each: each[0])
                there = self.group.tile_bytes + self._there(plan)
                plan = replace(plan, place=replace(self.group, tile_bytes=there))
                choices = Choices(partition=partition, placement=self.group.placement)
                mapped = Mapped("partitioned-gemm", shape, plan, cycles)
                times = pieces * product.groups
                return GroupKernel(product, Ground(self.group, choices, 1), mapped, times)
            pieces *= 2
        raise InputError(
            f"--tp: found {self.tiles}; allowed: more tiles, as no piece of the product "
            f"'{product.name}' fits {self.group.tile_bytes} bytes of each"
        )

    def _there(self, plan: PartitionPlan) -> int:
        """Bytes of a tile that a piece's weights take where all of them are kept."""
        if self._held is None:
            return 0
        _, k, n = plan.block
        return plan.parts * ceil_div(k * n * plan.place.element_bits, 8)


def cores_by_partition(partition: str, group: Place) -> dict[str, _Layout]:
    """Rows and columns of cores by the partitions to try; of `2d` those nearest to a square.

    Raises:
        InputError: for an unknown partition, or one that so many tiles do not have.
    """
    choose("partition", partition, PARTITIONS)
    tiles = group.rows * group.cols
    if tiles == 1:
        return {"k": (1, 1)}
    square = min(
        (cores for cores in cores_of("2d", group)),
        key=lambda cores: abs(cores[0] - cores[1]),
        default=None,
    )
    known: dict[str, _Layout] = {"input": (tiles, 1), "mn": (tiles, 1), "k": (1, tiles)}
    if square is not None:
        known["2d"] = square
    if partition == "auto":
        return {name: cores for name, cores in known.items() if name != "input"}
    if partition not in known:
        raise InputError(
            f"--partition: found 2d on {tiles} tiles; allowed: on a number of tiles that is a "
            "product of two above 1"
        )
    return {partition: known[partition]}


def _powers(most: int) -> Iterator[int]:
    """Powers of two up to one."""
    power = 1
    while power <= most:
        yield power
        power *= 2


def _fastest(paths: Sequence[_Path]) -> list[_Path]:
    """Of those to each layout."""
    best: dict[_Layout, _Path] = {}
    for path in paths:
        known = best.get(path.layout)
        if known is None or path.cycles < known.cycles:
            best[path.layout] = path
    return list(best.values())


def tensor_sizes(model: Model) -> list[int]:
    """Numbers of tiles that may share a layer: each gets whole heads, and weights of two bytes."""
    if model.latent_attention is not None or _weight_widths(model) != {_WEIGHT_BYTES}:
        return [1]
    heads, kv_heads = model.query_heads, model.kv_heads
    return [
        count
        for count in range(1, heads + 1)
        if heads % count == 0 and (kv_heads % count == 0 or count % kv_heads == 0)
    ]


def _weight_widths(model: Model) -> set[float]:
    """Bytes of the weights of all products."""
    widths = {model.weight_width_bytes, model.head_width_bytes}
    return widths if model.experts is None else widths | {model.expert_width_bytes}


def _check_model(model: Model, tiles: int) -> None:
    """Hold that so many tiles may share a layer."""
    allowed = tensor_sizes(model)
    if tiles in allowed:
        return
    if model.latent_attention is not None:
        raise InputError(
            f"--tp: found {tiles}; allowed for '{model.name}': 1, as its compressed cache has no "
            "heads to deal out"
        )
    if other := _weight_widths(model) - {_WEIGHT_BYTES}:
        raise InputError(
            f"--tp: found {tiles} with weights of {max(other):g} bytes; "
            f"allowed with those of '{model.name}': 1; weights of 2 bytes go by any (--weights)"
        )
    raise InputError(
        f"--tp: found {tiles}; allowed for the {model.query_heads} heads of queries and "
        f"{model.kv_heads} of keys of '{model.name}': {', '.join(map(str, allowed))}"
    )
