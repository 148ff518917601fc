"""What tiles keep of a model between kernels, in the order of NpuSim (section 4.2).

Buffers of kernels and activations come first, then blocks of keys and values, then weights as far
as they fit: layer by layer, each without its routed experts, the output head, then experts, as many
of each layer. A layer, the head or an expert is kept as a whole; what is left over goes to buffers.
A stage of a pipeline has few layers. Of the next one, if it is dense, it keeps the products that
fit, too.

Weights lie in the tiles by one cut of each product, whatever the number of tokens.

Of the experts of a layer that are not kept, one may be loaded ahead, while tokens pass what comes
before the gate. Where those weights are kept channels are idle meanwhile; batches whose products
there do not last as long as the load go without (`Residency.fetched_from`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from typing import Any

from tlm.chips import Chip
from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.kernels.gemm.stream_plan import GridCut
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.machine.place import Place
from workloads.models import Model
from workloads.models.operators import Operator, before_experts, head, routed
from workloads.serving.price.iteration import Keeping
from workloads.serving.price.kept_weights import (
    Held,
    Matrix,
    group_bytes,
    held_weights,
    kept_layer,
    kept_plans,
    matrices,
    products_of,
    weight_bytes,
)

_KIB = 1024
#: Tokens of batches that may be large enough for an expert to be loaded ahead.
_BATCHES = tuple(1 << power for power in range(11))
#: Cycles of products before a layer's experts, by a batch's tokens: tiles keep their weights.
Before = Callable[[int], int]
#: Of a tile that has all of a matrix; what tiles of a group have their partition says.
_ONE_TILE = GridCut(1, 1, 1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Residency:
    """What every tile of a place keeps. Bytes are of one tile.

    Attributes:
        first: The first of the layers that they may keep.
        buffers: Bytes for blocks and messages, those that nothing else has among them.
        activations: Bytes for activations.
        kv: Bytes for keys and values.
        kv_tokens: Tokens whose keys and values they are.
        weights: Bytes of weights.
        layers: Layers that are kept, from that one on, but for routed experts.
        head: Whether the output head is.
        also: Products of the next layer whose weights are kept.
        experts: Experts of each layer that has any.
        hottest: Whether they are those that most tokens go to.
        fetched: Which other expert of a layer is loaded ahead: ``none``, ``hottest``, ``random``.
        fetched_from: Tokens of the smallest batch for which it is.
        activation_tokens: Tokens of which a layer's activations have room.
        weight_share: Part of the model's weights.
        held: Where weights of a product lie.
    """

    first: int
    buffers: int
    activations: int
    kv: int
    kv_tokens: int
    weights: int
    layers: int
    head: bool
    also: tuple[str, ...]
    experts: int
    hottest: bool
    fetched: str
    fetched_from: int
    activation_tokens: int
    weight_share: float
    held: dict[Matrix, Held]

    @property
    def keeping(self) -> Keeping:
        """What of the weights."""
        ahead, layers = (self.fetched, self.fetched_from), self.first + self.layers
        return Keeping(layers, self.head, self.experts, self.hottest, *ahead, self.also)

    def record(self) -> dict[str, Any]:
        """As results have it."""
        parts = {
            "buffers": self.buffers,
            "activations": self.activations,
            "keys_and_values": self.kv,
            "weights": self.weights,
        }
        return {
            "tile_bytes": parts,
            "kv_tokens": self.kv_tokens,
            "layers": self.layers,
            "also_products": list(self.also),
            "head": self.head,
            "experts_per_layer": self.experts,
            "prefetch": self.fetched,
            "prefetch_from_tokens": self.fetched_from,
            "weight_share": self.weight_share,
        }


def residency_of(
    model: Model, chip: Chip, place: Place, kv_tokens: int | None, wanted_kv_tokens: int = 0
) -> Residency:
    """What the tiles of a place keep of a model.

    Args:
        model: The model.
        chip: The chip, whose profile says how much buffers and activations have.
        place: Where it runs, without anything set aside.
        kv_tokens: Tokens whose keys and values are asked to be kept; None: as many of those wanted
            as there is room for, in whole blocks.
        wanted_kv_tokens: Tokens that running requests have at most.

    Raises:
        InputError: if the tokens asked for do not fit.
    """
    tiles, room = place.rows * place.cols, _room(chip, place)
    most = room * tiles // model.kv_bytes_per_token // BLOCK_TOKENS * BLOCK_TOKENS
    if kv_tokens is not None and not 0 <= kv_tokens <= most:
        raise InputError(
            f"--kv-sram-tokens: found {kv_tokens}; allowed for '{model.name}' on {tiles} tiles of "
            f"'{chip.name}': 0 to {most}, beside residency.buffer_kib and activation_kib"
        )
    kept_tokens = min(most, wanted_kv_tokens) if kv_tokens is None else kv_tokens
    kv = ceil_div(kept_tokens * model.kv_bytes_per_token, tiles) if kept_tokens else 0
    held = dict(held_weights(model, place, room))
    before = _before_experts(model, place, held)
    return _shared_out(model, chip, place, range(model.layers), held, (kept_tokens, kv), before)


def stage_residencies(
    model: Model,
    chip: Chip,
    group: Place,
    stretches: Sequence[tuple[range, int]],
    wanted_kv_tokens: int,
    held: dict[Matrix, Held],
    before: Before,
) -> list[Residency]:
    """What the tiles of each stage of a pipeline keep of its layers.

    Args:
        model: The model.
        chip: The chip.
        group: Tiles of a stage, without anything set aside.
        stretches: Of each stage its layers, and bytes of a token's keys and values in its tiles.
        wanted_kv_tokens: Tokens that running requests of the pipeline have at most.
        held: Where weights would lie; none: no weights are kept.
        before: Cycles of the products before a layer's experts.
    """
    room, tensor = _room(chip, group), group.rows * group.cols
    most = min((room * tensor // of_token for _, of_token in stretches), default=0)
    tokens = min(most // BLOCK_TOKENS * BLOCK_TOKENS, wanted_kv_tokens)
    kept = [(tokens, ceil_div(tokens * of_token, tensor)) for _, of_token in stretches]
    return [
        _shared_out(model, chip, group, layers, held, of_stage, before)
        for (layers, _), of_stage in zip(stretches, kept, strict=True)
    ]


def weights_of_group(model: Model, tensor: int) -> dict[Matrix, Held]:
    """Where weights would lie in the tiles of a group: each has a part of them by K."""
    return {matrix: Held(_ONE_TILE, group_bytes(matrix, tensor)) for matrix in matrices(model)}


def _room(chip: Chip, place: Place) -> int:
    """Bytes of a tile beside buffers and activations."""
    rules = chip.residency
    assert rules is not None  # or nobody asks
    return place.tile_bytes - int(_KIB * rules.buffer_kib) - int(_KIB * rules.activation_kib)


def _shared_out(
    model: Model,
    chip: Chip,
    place: Place,
    stretch: range,
    held: dict[Matrix, Held],
    kept: tuple[int, int],
    before: Before,
) -> Residency:
    """What tiles keep of some layers beside tokens, and the bytes of a tile that those take."""
    rules, has_experts = chip.residency, model.count(stretch).experts
    assert rules is not None
    tiles, (kept_tokens, kv) = place.rows * place.cols, kept
    left = _room(chip, place) - kv
    ahead = rules.prefetch != "none" and has_experts
    fetched_from = _fetched_from(model, place, held, left, before) if ahead else 0
    if fetched_from:
        left -= _tile_bytes(held, list(routed(model, 1, 1))) or 0
    weights = layers = 0
    for number in stretch:
        own = _tile_bytes(held, kept_layer(model, number))
        if own is None or own > left - weights:
            break
        weights, layers = weights + own, layers + 1
    also, of_products = _next_products(model, held, stretch, layers, left - weights)
    weights += of_products
    own = _tile_bytes(held, list(head(model, 1))) if stretch.stop == model.layers else None
    has_head = layers == len(stretch) and own is not None and own <= left - weights
    weights += own or 0 if has_head else 0
    experts, of_experts = (0, 0)
    all_of_it = layers == len(stretch) and (has_head or stretch.stop < model.layers)
    if all_of_it and has_experts and rules.experts != "none":
        experts, of_experts = _experts(model, held, left - weights, has_experts)
    weights += of_experts
    activations = int(_KIB * rules.activation_kib)
    return Residency(
        first=stretch.start,
        buffers=place.tile_bytes - activations - kv - weights,
        activations=activations,
        kv=kv,
        kv_tokens=kept_tokens,
        weights=weights,
        layers=layers,
        head=has_head,
        also=also,
        experts=experts,
        hottest=rules.experts == "hottest",
        fetched=rules.prefetch if fetched_from else "none",
        fetched_from=fetched_from,
        activation_tokens=activations * tiles // _activation_bytes(model),
        weight_share=_weight_share(model, stretch, layers, also, has_head, experts),
        held=held,
    )


def _next_products(
    model: Model, held: Mapping[Matrix, Held], stretch: range, layers: int, left: int
) -> tuple[tuple[str, ...], int]:
    """Products of the layer behind those kept whose weights fit, and bytes of a tile of them.

    Only of a dense layer of a stage, which is not the whole model.
    """
    number, names, total = stretch.start + layers, [], 0
    if len(stretch) == model.layers or number >= stretch.stop:
        return (), 0
    if model.count(range(number, number + 1)).experts:
        return (), 0
    for each in products_of(kept_layer(model, number)):
        own = _tile_bytes(held, [each])
        if own is not None and own <= left - total:
            names.append(each.name)
            total += own
    return tuple(names), total


def _tile_bytes(held: Mapping[Matrix, Held], operators: Sequence[Operator]) -> int | None:
    """Bytes of a tile that the weights of operators take; None if some fit nowhere."""
    total = 0
    for each in products_of(operators):
        own = held.get(Matrix.of(each))
        if own is None:
            return None
        total += each.groups * own.tile_bytes
    return total


def _experts(model: Model, held: Mapping[Matrix, Held], left: int, layers: int) -> tuple[int, int]:
    """Experts of each of some layers that fit, and the bytes of a tile that all of them take."""
    own = _tile_bytes(held, list(routed(model, 1, 1)))
    assert model.experts is not None  # of layers that have them
    if own is None:
        return 0, 0
    count = min(model.experts.count, left // (own * layers))
    return count, count * own * layers


def _fetched_from(
    model: Model, place: Place, held: Mapping[Matrix, Held], left: int, before: Before
) -> int:
    """Tokens whose products before the experts last as long as loading one; 0 if none do."""
    if place.offchip is None:
        return 0
    own, edge = _tile_bytes(held, list(routed(model, 1, 1))), place.offchip
    products = products_of(list(before_experts(model, 1)))
    if own is None or own > left or any(Matrix.of(each) not in held for each in products):
        return 0
    rate = edge.channels * edge.timing.bytes_per_cycle
    loaded = edge.timing.latency_cycles + ceil(model.expert_bytes / rate)
    return next((tokens for tokens in _BATCHES if before(tokens) >= loaded), 0)


def _before_experts(model: Model, place: Place, held: Mapping[Matrix, Held]) -> Before:
    """Cycles of what a place does before a layer's experts with weights that lie in its tiles."""
    alone = replace(place, offchip=None)

    @cache
    def cycles() -> dict[int, int]:
        found = dict.fromkeys(_BATCHES, 0)
        for each in products_of(list(before_experts(model, 1))):
            matrix, rows = Matrix.of(each), [(tokens, 1) for tokens in _BATCHES]
            plans = kept_plans(alone, matrix, held[matrix], rows)
            for tokens, plan in zip(_BATCHES, plans, strict=True):
                found[tokens] += plan.cycles
        return found

    return lambda tokens: cycles()[tokens]


def _activation_bytes(model: Model) -> int:
    """Bytes of all that a layer has of a token at a time: rows in and out, heads, the inner layer.

    Of a layer with experts the inner rows are those of all that a token goes to.
    """
    inner = model.ffn_hidden or 0
    if model.experts is not None:
        inner = max(inner, model.experts.active * model.experts.width)
    heads = (model.query_heads + 2 * model.kv_heads) * model.head_dim
    return 2 * (2 * model.hidden + heads + model.query_heads * model.head_dim + 3 * inner)


def _weight_share(
    model: Model,
    stretch: range,
    layers: int,
    also: Sequence[str],
    has_head: bool,
    experts: int,
) -> float:
    """Part of the weights of some layers, and of the head behind the last one, that is kept."""
    counted = kept = 0.0
    for number in stretch:
        here, behind = products_of(kept_layer(model, number)), number - stretch.start - layers
        counted += sum(map(weight_bytes, here))
        kept += sum(
            weight_bytes(each) for each in here if behind < 0 or (behind == 0 and each.name in also)
        )
        if model.experts is not None and model.count(range(number, number + 1)).experts:
            expert = sum(weight_bytes(each) for each in products_of(list(routed(model, 1, 1))))
            counted += model.experts.count * expert
            kept += experts * expert
    if stretch.stop == model.layers:
        own = sum(weight_bytes(each) for each in products_of(list(head(model, 1))))
        counted, kept = counted + own, kept + own * has_head
    return kept / counted
