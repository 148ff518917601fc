"""What tiles keep of a model: the order, what fits, and that it is not read from memory again."""

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

from tlm.chips import find_tiles, load_chip
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from workloads.kernels.catalogue import KERNELS, moved_of
from workloads.machine.groups import Parallel, groups_on
from workloads.models import load_model
from workloads.models.operators import Product
from workloads.serving.engine.run import run
from workloads.serving.load.generator import generate
from workloads.serving.price.cost import Batch
from workloads.serving.price.experts import chosen, distinct_experts
from workloads.serving.price.group_price import GroupsPrice
from workloads.serving.price.iteration import Iterations, Keeping, Passed
from workloads.serving.price.parts import Head, Kept, Layer, Routed, Unneeded, WithExperts, alike
from workloads.serving.price.residency import Residency
from workloads.serving.price.tile_price import TilePrice
from workloads.serving.schedulers import make_scheduler

SMALL, DENSE, EXPERTS = (load_model(f"qwen3-{name}") for name in ("1.7b", "4b", "30b-a3b"))
MIB = 1024


@cache  # finding what tiles keep takes a third of a second
def price(model: Any, mib: float, *changes: str, **given: Any) -> TilePrice:
    """Of a model on the large-core chip with so much memory a tile."""
    chip = find_tiles("npusim-large", (f"tile.sram_kib={mib * MIB}", *changes))
    return TilePrice(model, chip, **given)


def kept(of: TilePrice) -> Residency:
    assert of.residency is not None
    return of.residency


def decode(of: TilePrice, sequences: int = 16, in_sram: int = 0) -> float:
    batch = Batch((), sequences, sequences * 1024, sequences, decode_sram_tokens=in_sram)
    return of.cost(batch).seconds


@pytest.mark.parametrize("mib", [8, 32, 128])
@pytest.mark.parametrize("wanted", [0, 1000, 1_000_000])
def test_all_of_a_tile_is_shared_out_in_the_order_of_the_paper(mib: int, wanted: int) -> None:
    tiles = kept(price(SMALL, mib, kv_wanted_tokens=wanted))
    assert tiles.buffers + tiles.activations + tiles.kv + tiles.weights == mib * 2**20
    assert tiles.buffers >= 2 * 2**20
    assert tiles.activations == 2 * 2**20
    room = mib * 2**20 - 4 * 2**20
    # Keys and values come before weights: they have what they want, or all that there is.
    bytes_64 = wanted * SMALL.kv_bytes_per_token / 64
    if bytes_64 < room:
        assert tiles.kv == pytest.approx(bytes_64, abs=1)
    else:
        assert room - tiles.kv < 16 * SMALL.kv_bytes_per_token / 64 + 1
        assert tiles.layers == 0


def test_layers_then_the_head_then_experts() -> None:
    layers = [kept(price(DENSE, mib)).layers for mib in (8, 16, 32, 64, 128)]
    assert layers == sorted(layers)
    assert (layers[0], layers[-1]) == (1, 36)
    assert not kept(price(DENSE, 120)).head
    assert kept(price(DENSE, 128)).head
    assert kept(price(DENSE, 128)).weight_share == 1
    # 64 tiles have a layer's weights, 201,850,880 bytes, between them.
    by_layer = kept(price(DENSE, 64)).weights / kept(price(DENSE, 64)).layers
    assert by_layer == pytest.approx(201_850_880 / 64, rel=1e-3)
    assert kept(price(EXPERTS, 128)).experts == 0
    experts = kept(price(EXPERTS, 128, "residency.experts=hottest"))
    assert experts.head
    assert experts.experts == 12  # 9,437,184 bytes each, in 48 layers


def test_more_memory_is_never_slower_and_what_is_kept_is_faster() -> None:
    prices = [price(DENSE, mib) for mib in (8, 32, 64, 128)]
    for sequences in (1, 16, 64):
        times = [decode(each, sequences) for each in prices]
        assert times == sorted(times, reverse=True)
        assert times[-1] < times[0]
    assert decode(prices[-1], 1) < 0.25 * decode(prices[0], 1)


def test_once_all_weights_are_kept_bandwidth_changes_attention_alone() -> None:
    slow, fast = (
        price(DENSE, 128, f"memory.bandwidth_bytes_per_s={64e9 * gb_s}") for gb_s in (30, 120)
    )
    for part in (Kept(Layer(16, False)), Kept(Head(16))):
        assert slow.prices.of(part) == fast.prices.of(part)
    streamed = [of.prices.of(Layer(16, False)).cycles for of in (slow, fast)]
    assert streamed[0] > 2.5 * streamed[1]
    # Keys and values that are kept are not read from there either.
    assert decode(slow) > decode(fast)
    both = price(DENSE, 192, kv_sram_tokens=16 * 1024)
    assert decode(both, in_sram=16 * 1024) < decode(fast)


def test_what_is_kept_is_not_read() -> None:
    of = price(DENSE, 128)
    for mapping, mapped in of.prices.plans(Kept(Layer(16, False))):
        assert mapping.place.offchip is None
        program = KERNELS[mapped.kernel].program(mapped.plan)
        assert not {op.label for op in program.operations()} & {"b"}
        cycles = run_lt(program, mapping.place.timing).cycles
        assert cycles == pytest.approx(mapped.cycles, rel=0.05)
    # Activations of many tokens are in memory; weights still are not.
    many = of.prices.plans(Kept(Layer(4096, False)))
    weights = sum(linear.n * linear.k for linear in DENSE.attention_linears + DENSE.dense_linears)
    reads = [sum(moved_of(m.plan).read for _, m in plans) for plans in (
        many, of.prices.plans(Layer(4096, False)),
    )]  # fmt: skip
    if any(mapped.choices.resident for _, mapped in many):
        assert reads[1] - reads[0] > weights
    assert kept(of).activation_tokens < 4096


def test_variants_of_kept_weights_are_told_apart() -> None:
    of = price(SMALL, 128)
    plans = [mapped for _, mapped in of.prices.plans(Kept(Layer(16, False)))]
    resident = {mapped.kernel for mapped in plans if mapped.choices.resident}
    assert resident == {"stream-gemm"}


def test_tokens_asked_for_must_fit() -> None:
    of = price(SMALL, 32, kv_sram_tokens=160)
    assert of.kv_sram_tokens == 160
    with pytest.raises(InputError) as error:
        price(SMALL, 8, kv_sram_tokens=10**6)
    assert "--kv-sram-tokens: found 1000000; allowed for 'qwen3-1.7b' on 64 tiles" in str(
        error.value
    )
    assert "beside residency.buffer_kib and activation_kib" in str(error.value)


def test_other_chips_keep_nothing() -> None:
    assert TilePrice(SMALL, load_chip("flat32"), kv_wanted_tokens=1000).residency is None
    whole = Iterations(SMALL).parts(Passed(16, range(SMALL.layers)))
    assert whole == [(Layer(16, False), SMALL.layers)]


def test_layers_that_are_kept_are_the_first_ones() -> None:
    iterations = Iterations(DENSE, Keeping(layers=10))
    assert iterations.parts(Passed(16, range(36))) == [
        (Kept(Layer(16, False)), 10),
        (Layer(16, False), 26),
    ]
    assert iterations.parts(Passed(16, range(12, 36))) == [(Layer(16, False), 24)]
    assert iterations.parts(Passed(16, range(4, 8))) == [(Kept(Layer(16, False)), 4)]
    assert iterations.parts(Head(16)) == [(Head(16), 1)]
    assert Iterations(DENSE, Keeping(36, head=True)).parts(Head(16)) == [(Kept(Head(16)), 1)]
    for part in (Kept(Layer(16, False)), Kept(Routed(3, 24)), Kept(Head(7)), Unneeded()):
        assert part in alike(part)


@pytest.mark.parametrize("hottest", [False, True])
@pytest.mark.parametrize("fetched", ["none", "hottest", "random"])
@pytest.mark.parametrize("tokens", [1, 16, 1024])
def test_experts_of_a_layer_are_all_there_once(hottest: bool, fetched: str, tokens: int) -> None:
    keeping = Keeping(48, True, 12, hottest, fetched, 1)
    parts = Iterations(EXPERTS, keeping).parts(Passed(tokens, range(48)))
    routed = [(part.part, n) for part, n in parts if isinstance(part, Kept)]
    routed += [(part, n) for part, n in parts if isinstance(part, Routed)]
    experts = sum(part.needed * n for part, n in routed if isinstance(part, Routed))
    assert experts == 48 * round(distinct_experts(128, 8, tokens))
    copies = sum(part.copies * n for part, n in routed if isinstance(part, Routed))
    assert copies == pytest.approx(48 * 8 * tokens, rel=0.03)
    ahead = [n for part, n in parts if isinstance(part, Kept) and part.fetched]
    ahead += [n for part, n in parts if isinstance(part, Unneeded)]
    # One of each layer is loaded ahead, needed or not, unless all that are needed are there.
    assert sum(ahead) == (48 if fetched != "none" else 0)


@pytest.mark.parametrize("fetched", ["none", "hottest", "random"])
@pytest.mark.parametrize("tokens", [1, 16, 1024])
def test_layers_of_a_stage_have_their_experts_once(fetched: str, tokens: int) -> None:
    keeping = Keeping(48, True, 12, True, fetched, 1)
    passed = Passed(tokens, range(48))
    parts = Iterations(EXPERTS, keeping, whole_layers=True).parts(passed)
    apart = Iterations(EXPERTS, keeping).parts(passed)
    assert sum(count for _, count in parts) == 48
    read = 0
    for part, count in parts:
        assert isinstance(part, Kept) and isinstance(part.part, WithExperts)
        both = [each for each in (part.part.here, part.part.away) if each is not None]
        assert sum(each.needed for each in both) == round(distinct_experts(128, 8, tokens))
        assert part.part.loads == (fetched != "none")
        assert all("not kept" not in name for name in part.only)
        read += count * (part.part.away.needed if part.part.away else 0)
    assert read == sum(part.needed * count for part, count in apart if isinstance(part, Routed))


def test_the_hottest_experts_are_needed_most() -> None:
    hot, some = (chosen(128, 8, 16, 12, hottest=hottest) for hottest in (True, False))
    assert 12 >= hot.kept > some.kept
    assert hot.hottest_other > hot.any_other
    assert some.kept == pytest.approx(12 / 128 * distinct_experts(128, 8, 16))
    assert chosen(128, 8, 16, 128, hottest=True).kept == pytest.approx(distinct_experts(128, 8, 16))


def test_experts_that_are_kept_or_loaded_ahead_save_time_and_bytes() -> None:
    batch = Batch((), 16, 16 * 1024, 16)

    def costs(experts: str, prefetch: str) -> Any:
        changes = (f"residency.experts={experts}", f"residency.prefetch={prefetch}")
        return price(EXPERTS, 128, *changes).cost(batch)

    none, random, hottest = (costs(which, "none") for which in ("none", "random", "hottest"))
    assert none.seconds > random.seconds > hottest.seconds
    assert none.expert_bytes > random.expert_bytes > hottest.expert_bytes
    ahead, lucky = costs("hottest", "random"), costs("hottest", "hottest")
    assert hottest.seconds > ahead.seconds > lucky.seconds
    # What is loaded and not needed is read all the same.
    assert ahead.expert_bytes > lucky.expert_bytes
    assert ahead.energy_j > lucky.energy_j


def test_serving_by_what_tiles_keep() -> None:
    trace = generate("fixed:300:40", 6, float("inf"), 1.0, 0)
    wanted = trace.most_tokens(6, 16)
    assert wanted == 6 * 352
    assert trace.most_tokens(2, 16) == 2 * 352
    results = {}
    for mib in (8, 128):
        of = price(SMALL, mib, kv_wanted_tokens=wanted)
        results[mib] = run(trace, make_scheduler("continuous"), of)
    assert results[128]["e2e_s"]["mean"] < results[8]["e2e_s"]["mean"]
    assert results[128]["kv"]["spilled_bytes"] == 0
    few = price(SMALL, 5, kv_wanted_tokens=wanted)
    assert run(trace, make_scheduler("continuous"), few)["kv"]["spilled_bytes"] > 0


def groups(
    mib: float, *changes: str, wanted: int = 0, model: Any = DENSE, **parallel: Any
) -> GroupsPrice:
    """Pipelines of groups of the large-core chip with so much memory a tile."""
    chip = find_tiles("npusim-large", (f"tile.sram_kib={mib * MIB}", *changes))
    named = Parallel(**parallel)
    return GroupsPrice(model, groups_on(chip, named), named, kv_wanted_tokens=wanted)


def experts_in_groups(experts: str, prefetch: str) -> GroupsPrice:
    """The same of a model with experts, by what rules say of these."""
    rules = f"residency.experts={experts}", f"residency.prefetch={prefetch}"
    return groups(256, *rules, model=EXPERTS, tensor=4, pipeline=16)


def test_stages_of_a_pipeline_keep_layers_of_their_own() -> None:
    of = groups(128, wanted=512, tensor=4, pipeline=16)
    kept_by = of.kernels.residencies
    stretches = of.planner.stretches
    assert [each.first for each in kept_by] == [each.start for each in stretches]
    for each, layers in zip(kept_by, stretches, strict=True):
        assert each.buffers + each.activations + each.kv + each.weights == 128 * 2**20
        # Four tiles have a layer's 201,850,880 bytes between them: two fit.
        assert each.layers == min(2, len(layers))
        assert each.kv_tokens == 512
        bytes_of_four = 512 * len(layers) * DENSE.kv_bytes_per_token / DENSE.layers
        assert each.kv == pytest.approx(bytes_of_four / 4, abs=1)
    assert of.kv_sram_tokens == 512
    counted = Counter[str]()
    for part, count in of.planner.planned(Batch((), 1, 100, 1)).counted():
        counted[type(part).__name__] += count
    assert (counted["Kept"], counted["Layer"]) == (36, 0)
    # Of the third layer of a stage what fits of its products: the largest one does not.
    some = [each.also for each, layers in zip(kept_by, stretches, strict=True) if len(layers) > 2]
    assert some == [("qkv", "attention output", "down")] * 4


@pytest.mark.parametrize("tensor", [1, 4])
def test_stages_read_what_they_do_not_keep_of_a_layer(tensor: int) -> None:
    """Some products of a layer: what lies between all of them and none."""
    of = groups(160 / tensor, tensor=tensor, pipeline=16)
    kept = of.kernels.residencies[0]
    assert kept.layers == 0
    assert 0 < kept.weight_share < 1
    part = Kept(Layer(8, False), only=kept.also)
    away = [
        each.operator.name
        for each in of.kernels.of(part)
        if isinstance(each.operator, Product) and each.ground.place.offchip is not None
    ]
    assert set(away) == {"qkv", "attention output", "gate and up", "down"} - set(kept.also)
    cycles = of.prices.of(part).cycles
    assert cycles < of.prices.of(Layer(8, False)).cycles
    all_kept = groups(2048 / tensor, tensor=tensor, pipeline=16)
    assert all_kept.prices.of(Kept(Layer(8, False))).cycles < cycles


@pytest.mark.parametrize("tensor", [1, 4])
def test_groups_read_no_weights_that_they_keep(tensor: int) -> None:
    of = groups(2048 / tensor, tensor=tensor, pipeline=16)
    assert all(each.weight_share == 1 for each in of.kernels.residencies)
    kernels, streamed = (of.kernels.of(part) for part in (Kept(Layer(8, False)), Layer(8, False)))
    names = [each.operator.name for each in kernels if isinstance(each.operator, Product)]
    assert len(names) == 4
    for each in kernels:
        if isinstance(each.operator, Product):
            assert each.ground.place.offchip is None
    assert sum(each.cycles for each in kernels) < 0.7 * sum(each.cycles for each in streamed)
    decoding = [decode(groups(mib, tensor=tensor, pipeline=16)) for mib in (16, 128, 512)]
    assert decoding == sorted(decoding, reverse=True)
    assert decoding[-1] < decoding[0]


def test_decoding_requests_of_groups_find_their_tokens_in_sram() -> None:
    of = groups(64, wanted=16 * 1024, tensor=4, pipeline=16)
    assert of.kv_sram_tokens is not None and of.kv_sram_tokens > 1024
    assert decode(of, in_sram=16 * 1024) < decode(of)
    contexts = np.array([16 * 1024, 16 * 1024])
    for spilled, in_sram in ((None, 0), (0, 16 * 1024), (8 * 1024, 8 * 1024)):
        costs = of.decode_costs(16, contexts, 1, spilled)
        assert costs.seconds[0] == decode(of, in_sram=in_sram)


def test_stages_keep_layers_then_experts_of_each() -> None:
    of = experts_in_groups("hottest", "none")
    for each, layers in zip(of.kernels.residencies, of.planner.stretches, strict=True):
        assert each.buffers + each.activations + each.kv + each.weights == 256 * 2**20
        assert each.layers == len(layers) == 3
        # Its part of an expert is 2,359,296 bytes.
        assert 3 * 2_359_296 * each.experts <= each.weights
    first, *_, last = of.kernels.residencies
    assert first.experts > last.experts > 0  # which has the output head, too


def test_experts_that_groups_keep_or_load_ahead_save_time_and_bytes() -> None:
    batch, prompt = Batch((), 16, 16 * 1024, 16), Batch(((512, 0),), 0, 0, 1)
    none, random, hottest = (
        experts_in_groups(which, "none").cost(batch) for which in ("none", "random", "hottest")
    )
    assert none.seconds > random.seconds > hottest.seconds
    assert none.expert_bytes > random.expert_bytes > hottest.expert_bytes
    assert none.energy_j and hottest.energy_j and none.energy_j > hottest.energy_j
    away, ahead, lucky = (
        experts_in_groups("none", which).cost(prompt) for which in ("none", "random", "hottest")
    )
    assert away.seconds > ahead.seconds >= lucky.seconds
    # What is loaded and not needed is read all the same.
    assert ahead.expert_bytes >= lucky.expert_bytes >= away.expert_bytes


def test_a_group_reads_the_experts_that_it_does_not_keep() -> None:
    of = experts_in_groups("hottest", "none")
    parts = {part for part, _ in of.planner.planned(Batch(((64, 0),), 0, 0, 1)).counted()}
    found = [each for each in parts if isinstance(each, Kept) and "router" in each.only]
    assert found
    for part in found:
        for kernel in of.kernels.of(part):
            if isinstance(kernel.operator, Product):
                reads = kernel.operator.name.endswith("not kept")
                assert (kernel.ground.place.offchip is not None) == reads
    names = {each.operator.name for part in found for each in of.kernels.of(part)}
    assert {"expert down", "expert down, not kept"} <= names


def test_where_all_tiles_had_all_weights_none_are_kept() -> None:
    whole = groups(512, tensor=4, pipeline=16, partition="input")
    assert [each.weights for each in whole.kernels.residencies] == [0] * 16
