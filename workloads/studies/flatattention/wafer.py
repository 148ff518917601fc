"""Figure 13 and table II: DeepSeek-V3 decoding on the wafer of 8x8 dies, at level `perf`.

An iteration is what ``wafertlm iteration`` runs. FlashMLA is the same iteration with the kernel
`flash-mla` in place of FlatAttention. Two more are what the authors' public simulator runs:
ChunkedMLA is the study's own `flat_mla`. RequestMLA is `flash-mla` with a tile for each request.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, cast

from tlm.chips import Chip, find_tiles
from tlm.errors import InputError
from tlm.level_errors import off_pct
from workloads.kernels.attention.plan import AttentionPlan
from workloads.kernels.catalogue import KERNELS, KERNELS_OWN
from workloads.machine.place import chip_place
from workloads.models import load_model
from workloads.models.operators import Product
from workloads.serving.price.cost import Batch
from workloads.serving.price.die_links import Exchange, Link, Routing
from workloads.serving.price.die_plan import DiePlan
from workloads.serving.price.die_price import DieMapping, DiesPrice
from workloads.serving.price.mapping import Mapped, Mapping
from workloads.serving.price.parts import After, AnyPart, Before, Decode, Routed
from workloads.studies.campaign import Figures
from workloads.studies.flatattention.flat_mla import flat_mla

CHIP, MODEL = "flat32-wafer", "deepseek-v3-671b"
#: Tokens of a request in an iteration, and how many of them are right: acceptance 0.7.
TOKENS, RIGHT = 2, 1.7
#: Longest time of a token that the paper allows, section V-C.
TPOT_LIMIT_MS = 50.0
KEYS = 4096
#: Figures of an iteration, beside the error of its level.
WAFER_FIGURES = (
    "iteration_ms", "tpot_ms", "tokens_s", "layer_ms", "links_ms", "attention_ms",
    "attention_pct", "attention_use_pct", "queries_us", "absorbed_us",
)  # fmt: skip


#: Kernels of attention in place of an iteration's own.
REPLACED = {
    "FlashMLA": KERNELS["flash-mla"],
    "ChunkedMLA": flat_mla,
    "RequestMLA": KERNELS["flash-mla"],
}


class WaferCase(NamedTuple):
    """An iteration that decodes on the wafer.

    Attributes:
        expert_parallel: Dies that experts are dealt out to.
        pipeline: Groups of such dies.
        batch: Requests of a die.
        attention: ``FlatMLA``, or one of `REPLACED`.
        link_gb_s: Of a link between dies, and of a die's port.
        merged: Whether copies for one die are sent once.
        popular: Whether experts are unequally popular.
        overlap: Whether halves of a batch take turns.
    """

    expert_parallel: int = 32
    pipeline: int = 2
    batch: int = 256
    attention: str = "FlatMLA"
    link_gb_s: int = 1000
    merged: bool = False
    popular: bool = False
    overlap: bool = False


class ExpertsCase(NamedTuple):
    """Experts of a layer that get a token.

    Attributes:
        expert_parallel: Dies of a group.
        requests: Of the whole group.
    """

    expert_parallel: int
    requests: int


def wafer_figures(case: WaferCase) -> Figures:
    """Figures of an iteration, and of one of its layers with experts."""
    price, other = _price(case), case.attention if case.attention in REPLACED else None
    requests = case.batch * case.expert_parallel * case.pipeline
    context = requests * (KEYS - TOKENS)
    batch = Batch((), requests, context, requests * TOKENS, decode_width=TOKENS)
    plan = cast(DiePlan, price.cost(batch).made_of[0])

    def cycles(part: AnyPart | Link) -> float:
        own = price.prices.of(part).cycles
        return own + _more(price, part, other) if isinstance(part, Decode) else own

    hz = _chip(case.link_gb_s).clock_hz
    seconds = plan.cycles(cycles) / hz
    parts = dict.fromkeys(part for part, _ in plan.counted())
    layer = [part for part in parts if isinstance(part, Before | Decode | Routed | After)]
    links = [part for part in parts if isinstance(part, Exchange)]
    computed = sum(map(cycles, layer))
    (decode,) = (part for part in layer if isinstance(part, Decode))
    seen = _attention(price, decode)
    attention = seen.mapped.cycles + _more(price, decode, other)
    macs = KERNELS[seen.mapped.kernel].macs(seen.mapped.sizes, seen.mapped.choices)
    place = seen.mapping.place
    peak = place.rows * place.cols * place.matrix.macs_per_cycle
    return {
        "iteration_ms": 1e3 * seconds,
        "tpot_ms": 1e3 * seconds / RIGHT,
        "tokens_s": case.batch * RIGHT / seconds,
        "layer_ms": 1e3 * computed / hz,
        "links_ms": 1e3 * sum(map(cycles, links)) / hz,
        "attention_ms": 1e3 * attention / hz,
        "attention_pct": 100 * attention / computed,
        "attention_use_pct": 100 * macs / (attention * peak),
        "queries_us": 1e6 * _queries(price, decode, absorbed=False) / hz,
        "absorbed_us": 1e6 * _queries(price, decode, absorbed=True) / hz,
        "level_pct": None if other else _level_pct(price, batch),
    }


def experts_figures(case: ExpertsCase) -> Figures:
    """How many experts are active, by balanced routing."""
    price = _price(WaferCase(case.expert_parallel, 64 // case.expert_parallel))
    busiest = price.dies.links.busiest(case.requests * TOKENS)
    return {"active": float(min(256, busiest.needed * case.expert_parallel)), "level_pct": 0.0}


class _Seen(NamedTuple):
    mapping: Mapping
    mapped: Mapped


@cache
def _chip(link_gb_s: int) -> Chip:
    changes = (f"dies.{part}_bytes_per_s={link_gb_s}e9" for part in ("link", "port"))
    return find_tiles(CHIP, () if link_gb_s == 1000 else tuple(changes))


@cache
def _priced(link_gb_s: int, mapping: DieMapping) -> DiesPrice:
    return DiesPrice(load_model(MODEL), _chip(link_gb_s), mapping)


def _price(case: WaferCase) -> DiesPrice:
    mapping = DieMapping(
        expert_parallel=case.expert_parallel,
        pipeline=case.pipeline,
        routing=Routing(case.popular, case.merged),
        overlap=case.overlap,
    )
    return _priced(case.link_gb_s, mapping)


def _attention(price: DiesPrice, part: AnyPart | Link) -> _Seen:
    """The kernel of attention of a part."""
    found = (_Seen(*each) for each in price.prices.plans(part))
    return next(each for each in found if isinstance(each.mapped.plan, AttentionPlan))


def _more(price: DiesPrice, part: AnyPart | Link, other: str | None) -> float:
    """Cycles that another kernel of attention takes more than that of a part."""
    if other is None:
        return 0.0
    seen = _attention(price, part)
    sizes, place = seen.mapped.sizes, seen.mapping.place
    if other == "RequestMLA":  # rows of tiles that have as many as there are requests
        chip = _chip(1000).for_dtype("fp8")
        grid, bits = (-(-sizes[0] // place.cols), place.cols), (place.element_bits, place.sum_bits)
        place = chip_place(chip, grid, place.timing, *bits, memory=True)
    (found,) = REPLACED[other].found([sizes], place, KERNELS_OWN)
    return found.cycles - seen.mapped.cycles


def _queries(price: DiesPrice, decode: Decode, *, absorbed: bool) -> float:
    """Cycles from compressed queries to those on the latent cache.

    Absorbed, both weights are multiplied beforehand: fewer products, of larger weights.
    """
    model, tokens = load_model(MODEL), decode.sequences * decode.width
    latent = model.latent_attention
    assert latent is not None
    heads, rank, weight = model.query_heads, latent.query_rank, model.weight_width_bytes
    mapping = _attention(price, decode).mapping
    if absorbed:
        outputs = (heads * latent.kv_rank, heads * latent.rope_dim)
        products = [Product("query", tokens, n, rank, 1, weight) for n in outputs]
    else:
        up = heads * (latent.nope_dim + latent.rope_dim)
        into = Product("latent", tokens, latent.kv_rank, latent.nope_dim, heads, weight)
        products = [Product("query up", tokens, up, rank, 1, weight), into]
    return float(sum(mapping.of(product).cycles for product in products))


def _level_pct(price: DiesPrice, batch: Batch) -> float | None:
    """Error of the level."""
    centre = price.cost(batch).seconds
    try:
        if price.not_compared:
            return None
        low, high = (price.at_end(end).cost(batch).seconds for end in ("low", "high"))
    except InputError:  # comparisons are stale
        return None
    return off_pct(centre, low, high)


# Rows --------------------------------------------------------------------------------------------

#: Requests of a die, and groups of dies times their number.
BATCHES = (16, 32, 64, 128, 256, 512)
GROUPS = ((64, 1), (32, 2), (16, 4), (8, 8), (4, 16))
GROUPS_BATCHES = (16, 64, 256)
VARIANTS = {
    "merged-copies": WaferCase(merged=True),
    "popular-experts": WaferCase(popular=True),
    "overlapped": WaferCase(overlap=True),
    "links-160GB": WaferCase(link_gb_s=160),
    "links-2TB": WaferCase(link_gb_s=2000),
    "chunked-attention": WaferCase(attention="ChunkedMLA"),
}
#: Another rate of links, and requests of a die with it.
OTHER_LINKS_GB_S, OTHER_BATCHES = 160, (32, 64, 128, 256)
#: Systems of table II, as published: chips, requests of a chip, tokens/s of a chip, and ms.
PUBLISHED = (("DS-Prof", "96xH800", 128, 2325.0, 50.2), ("CM384", "CM384", 128, 1943.0, 49.4))


class WaferFact(NamedTuple):
    """A row: its name, case, figure, unit, published value, note, and a case it is set against."""

    name: str
    case: WaferCase | ExpertsCase
    figure: str
    unit: str
    paper: float | None = None
    note: str = "not stated in the paper"
    over: WaferCase | None = None


def wafer_facts() -> Iterator[WaferFact]:
    """Rows of figure 13 and table II."""
    ours = WaferCase()
    stated = "64 dies, 1 TB/s, 256 requests a die, 4,096 keys"
    yield WaferFact("TII/Ours1/EP32-PP2-b256/throughput", ours, "tokens_s", "tok/s", 6940.0, stated)
    yield WaferFact("TII/Ours1/EP32-PP2-b256/tpot", ours, "tpot_ms", "ms", 35.8, stated)
    for batch in OTHER_BATCHES:
        slow = WaferCase(batch=batch, link_gb_s=OTHER_LINKS_GB_S)
        at, note = f"TII/links-{OTHER_LINKS_GB_S}GB/EP32-PP2-b{batch}", "predicted: slower links"
        yield WaferFact(f"{at}/throughput", slow, "tokens_s", "tok/s", None, note)
        yield WaferFact(f"{at}/tpot", slow, "tpot_ms", "ms", None, note)
    for batch in BATCHES:
        flat, flash = WaferCase(batch=batch), WaferCase(batch=batch, attention="FlashMLA")
        for name, case in (("FlatMLA", flat), ("FlashMLA", flash)):
            at = f"F13a/EP32-PP2/{name}-b{batch}"
            yield WaferFact(f"{at}/throughput", case, "tokens_s", "tok/s")
            yield WaferFact(f"{at}/tpot", case, "tpot_ms", "ms")
        name = f"F13a/EP32-PP2/b{batch}/speedup_over_FlashMLA"
        yield WaferFact(name, flat, "iteration_ms", "x", over=flash)
    yield from _layer()
    for dies, groups in GROUPS:
        for batch in GROUPS_BATCHES:
            case = WaferCase(dies, groups, batch)
            at = f"F13cd/EP{dies}-PP{groups}/b{batch}"
            yield WaferFact(f"{at}/throughput", case, "tokens_s", "tok/s")
            yield WaferFact(f"{at}/tpot", case, "tpot_ms", "ms")
            yield WaferFact(f"{at}/kernels", case, "layer_ms", "ms")
            yield WaferFact(f"{at}/links", case, "links_ms", "ms")
    for requests, said in ((8, None), (16, 256.0)):
        note = "16 requests x 2 tokens x 8 experts: a copy for each"
        experts = ExpertsCase(16, requests)
        name = f"F13d/EP16/{requests}-requests/active_experts"
        yield WaferFact(name, experts, "active", "experts", said, note)
    for name, case in VARIANTS.items():
        at, note = f"F13v/EP32-PP2-b256/{name}", "a variant, not of the paper"
        yield WaferFact(f"{at}/throughput", case, "tokens_s", "tok/s", None, note)


def _layer() -> Iterator[WaferFact]:
    """Figure 13b: a layer with experts, without links."""
    flat, flash = WaferCase(), WaferCase(attention="FlashMLA")
    at, note = "F13b/layer-b256", "of the kernels of a layer, links not counted"
    own = "as the authors' public simulator has it; the text has"
    chunked, alone = (WaferCase(attention=name) for name in ("ChunkedMLA", "RequestMLA"))
    for name, case, share, use, told in (
        ("FlatMLA", flat, 42.0, 83.0, note),
        ("FlashMLA", flash, 71.0, None, note),
        ("ChunkedMLA", chunked, None, None, f"{own} 42 and 83 %"),
        ("RequestMLA", alone, None, None, f"{own} 71 %"),
    ):
        here = f"{at}/{name}"
        yield WaferFact(f"{here}/attention_share", case, "attention_pct", "%", share, told)
        yield WaferFact(f"{here}/attention_use", case, "attention_use_pct", "%", use, told)
        yield WaferFact(f"{here}/kernels", case, "layer_ms", "ms")
        yield WaferFact(f"{here}/links", case, "links_ms", "ms")
    left = "its shares of 42 and 71 % leave 3.4"
    faster = f"{at}/FlatMLA/attention_over_FlashMLA"
    yield WaferFact(faster, flat, "attention_ms", "x", 4.5, left, flash)
    whole = f"{at}/FlatMLA/layer_over_FlashMLA"
    yield WaferFact(whole, flat, "layer_ms", "x", 2.1, "its shares leave 2.0", flash)
    for name, figure, said in (("attention", "attention_ms", 4.5), ("layer", "layer_ms", 2.1)):
        faster = f"{at}/ChunkedMLA/{name}_over_RequestMLA"
        yield WaferFact(faster, chunked, figure, "x", None, f"{own} {said}", alone)
    yield WaferFact(f"{at}/queries-in-two/time", flat, "queries_us", "us")
    yield WaferFact(f"{at}/queries-absorbed/time", flat, "absorbed_us", "us")


def published_rows() -> Iterator[tuple[str, str, float, str]]:
    """Name, unit, value and note of what other systems were measured at."""
    for name, chips, batch, tokens_s, tpot_ms in PUBLISHED:
        note = f"published for {chips}, not modelled"
        yield f"TII/{name}/b{batch}/throughput", "tok/s", tokens_s, note
        yield f"TII/{name}/b{batch}/tpot", "ms", tpot_ms, note


def wafer_targets(errors: dict[str, Any], model: dict[str, float]) -> list[tuple[str, Any, float]]:
    """What was aimed at: text, how far off it is, and how far it may be."""
    best = max(model[f"F13a/EP32-PP2/b{batch}/speedup_over_FlashMLA"] for batch in BATCHES)
    layer = "F13b/layer-b256/FlatMLA"
    share, use = (model[f"{layer}/attention_{name}"] for name in ("share", "use"))
    return [
        ("TII/Ours1/EP32-PP2-b256/throughput: within 10 %", errors["throughput"], 10),
        ("TII/Ours1/EP32-PP2-b256/tpot: within 10 %", errors["tpot"], 10),
        ("F13a: the best speed-up over FlashMLA within 20 % of 2.1", 100 * (best / 2.1 - 1), 20),
        (f"{layer}/attention_share: within 5 points of 42 %", share - 42, 5),
        (f"{layer}/attention_use: within 6 points of 83 %", use - 83, 6),
    ]
