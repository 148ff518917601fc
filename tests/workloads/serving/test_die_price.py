"""DeepSeek-V3 on a wafer of dies: who computes what, what goes over links, and what it costs."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.chips import find_tiles, load_chip
from tlm.errors import InputError
from wafertlm.iteration import IterationOptions, run_iteration
from workloads.machine.die_groups import die_groups
from workloads.models import load_model
from workloads.serving.engine.pools import make_pools
from workloads.serving.engine.run import run, run_disaggregated
from workloads.serving.engine.speculation import Speculation
from workloads.serving.load.generator import generate
from workloads.serving.price.cost import Batch
from workloads.serving.price.die_links import DieLinks, Exchange, HandOver, Routing
from workloads.serving.price.die_plan import DiePlanner
from workloads.serving.price.die_price import DieMapping, DiesPrice
from workloads.serving.price.parts import After, Before, Decode, Head, Layer, Prompt, Routed
from workloads.serving.schedulers import SCHEDULERS, SchedulerOptions, make_scheduler

WAFER, MODEL = load_chip("flat32-wafer"), load_model("deepseek-v3-671b")
PRICE = DiesPrice(MODEL, WAFER, DieMapping(expert_parallel=32, pipeline=2))
DIES = 64


def links(expert_parallel: int, routing: Routing | None = None) -> DieLinks:
    groups = die_groups(WAFER, expert_parallel, None)
    return DieLinks(MODEL, groups, routing or Routing(), 1, WAFER.clock_hz)


def decoding(each: int, context: int, width: int = 2) -> Batch:
    """As many requests on every die."""
    requests = each * DIES
    return Batch((), requests, requests * context, requests * width, decode_width=width)


def test_copies_of_a_token_are_sent_to_the_dies_of_its_experts() -> None:
    """512 tokens a die, 8 copies of 7,168 bytes over 32 dies, and over 64."""
    for dies, size in ((32, 917_504), (64, 458_752)):
        link = Exchange(back=False, tokens=512 * dies, most=512)
        assert links(dies).bytes_of(link) == size
    assert links(32).bytes_of(HandOver(512)) == 512 * 7168


def test_merged_copies_are_sent_once_to_a_die() -> None:
    """Of 8 experts, 8 to a die, 7.25 dies on average; of 128 to a die both."""
    link = Exchange(back=False, tokens=512 * 32, most=512)
    merged = links(32, Routing(merged=True)).bytes_of(link)
    drawn = np.random.default_rng(1)
    dies = [len(set(drawn.permutation(256)[:8] // 8)) for _ in range(2000)]
    assert merged / 917_504 == pytest.approx(np.mean(dies) / 8, rel=0.01)


@pytest.mark.parametrize("expert_parallel", [8, 16, 32, 64])
def test_all_experts_are_active_from_256_copies_on(expert_parallel: int) -> None:
    """16 requests of two tokens, 8 experts each: 256 copies, one for each expert."""
    dies = links(expert_parallel)
    experts = 256 // expert_parallel
    assert dies.busiest(32) == Routed(experts, experts)
    assert dies.busiest(16).needed == -(-128 // expert_parallel)
    assert dies.busiest(expert_parallel * 512).copies == 512 * 8


def test_popular_experts_make_a_die_busier() -> None:
    even, popular = links(32), links(32, Routing(popular=True))
    for tokens in (64, 16 * 1024):
        assert popular.busiest(tokens).copies > even.busiest(tokens).copies
        assert popular.busiest(tokens).needed <= 8
    link = Exchange(back=False, tokens=16 * 1024, most=512)
    assert popular.cycles(link) > even.cycles(link)


def test_links_are_near_level_lt_and_their_ends_hold_it() -> None:
    for dies, tokens in ((32, 32 * 64), (16, 16 * 100)):
        link = Exchange(back=True, tokens=tokens, most=tokens // dies)
        between, found = links(dies).between(link), links(dies)
        assert between.low <= found.lt_cycles(link) / found.cycles(link) <= between.high


def test_the_die_with_the_most_tokens_needs_its_port() -> None:
    one, even = links(32), links(32)
    link = Exchange(back=False, tokens=32 * 64, most=64)
    busy = Exchange(back=False, tokens=32 * 64, most=32 * 64)
    assert one.cycles(busy) > 5 * even.cycles(link)
    port_s = 32 * 64 * 8 * 7168 * 31 / 32 / 1e12
    assert one.cycles(busy) / WAFER.clock_hz == pytest.approx(port_s)


def test_experts_are_dealt_out_and_layers_in_stretches() -> None:
    (plan,) = PRICE.cost(decoding(256, 4094)).made_of
    assert len(set(plan.runs)) == 1
    counted: dict[object, int] = {}
    for part, count in plan._replace(runs=plan.runs[:1]).counted():
        counted[part] = counted.get(part, 0) + count
    # 61 layers and the one that drafts; the first three are dense.
    assert counted[Decode(256, 2, 4094, None)] == 62
    assert counted[Layer(512, False)] == 3
    assert counted[Before(512)] == counted[After(512)] == counted[Routed(8, 4096)] == 59
    assert counted[Head(512)] == counted[Head(256)] == counted[HandOver(512)] == 1
    assert counted[Exchange(back=False, tokens=32 * 512, most=512)] == 59


def test_weights_of_a_die_leave_room_for_its_requests() -> None:
    """Of a group's stretch: its part of the experts, and all of the rest."""
    groups = die_groups(WAFER, 32, 2)
    planner = DiePlanner(MODEL, groups, links(32))
    assert [len(stretch) for stretch in planner.stretches] == [31, 30]
    expert = 3 * 7168 * 2048
    attention = sum(linear.weights for linear in MODEL.attention_linears)
    last = 31 * (attention + 7168 * 256 + 9 * expert) + 2 * 7168**2 + 2 * 129_280 * 7168
    left = (2**37 - last) // (31 * 576) // 16 * 16
    assert PRICE.kv_capacity_tokens == 32 * left
    assert PRICE.kv_bytes_per_token == 61 * 576
    small = find_tiles("flat32-wafer", ("memory.capacity_bytes=8000000000",))
    with pytest.raises(InputError, match=r"weights of stage 1 take \d+ bytes of a die; allowed: l"):
        DiesPrice(MODEL, small, DieMapping(expert_parallel=32, pipeline=2))


def test_micro_batches_fill_the_pipeline() -> None:
    """A request alone has to pass all groups; with one for each they take as long together."""
    one, two, four = (
        PRICE.cost(Batch((), count, count * 1000, count)).seconds for count in (1, 2, 4)
    )
    assert one == pytest.approx(two, rel=0.1)
    assert four < 1.2 * two


def test_prompts_are_dealt_out_to_dies() -> None:
    """Two long prompts go to different micro-batches, and others beside them."""
    batch = Batch(((1024, 0), (1024, 0), (512, 0)), 0, 0, 3)
    (plan,) = PRICE.cost(batch).made_of
    prompts = [
        {part for block in stage for phase in block.phases for part in phase.parts}
        for run in plan.runs
        for stage in run
    ]
    assert len(plan.runs) == 2
    assert all(Prompt(1024, 0, None) in parts for parts in prompts)
    assert not any(Prompt(512, 0, None) in parts for parts in prompts)


def test_groups_without_work_hand_nothing_over() -> None:
    """Prompts in some layers of the second group only."""
    batch = Batch(((1024, 0),), 0, 0, 0, prefill_layers=range(40, 50))
    (plan,) = PRICE.cost(batch).made_of
    assert plan.runs[0][0] == ()
    assert sum(count for part, count in plan.counted() if isinstance(part, Prompt)) == 10


def test_a_stretch_of_decoding_is_its_iterations() -> None:
    contexts = np.array([640 * 1000, 640 * 1001, 640 * 1100])
    costs = PRICE.decode_costs(640, contexts, 2)
    each = [PRICE.cost(Batch((), 640, int(all_of), 1280, decode_width=2)) for all_of in contexts]
    assert [costs.seconds[run] for run in (0, 0, 1)] == [one.seconds for one in each]


_PP2 = {"expert_parallel": 32, "pp": 2}
_GROUPS = st.sampled_from([_PP2, {"expert_parallel": 16, "pp": 4}, _PP2 | {"overlap": True}])
_SIZES = st.integers(1, 40)


_PROMPTS = st.lists(st.integers(1, 3000), max_size=3)


@cache
def price_of(expert_parallel: int, pp: int, *, overlap: bool = False) -> DiesPrice:
    mapping = DieMapping(expert_parallel=expert_parallel, pipeline=pp, overlap=overlap)
    return DiesPrice(MODEL, WAFER, mapping)


def costs_what_is_printed(
    groups: dict[str, Any], context: int, each: int, prompts: list[int]
) -> None:
    asked = IterationOptions(
        model="deepseek-v3-671b", chip="flat32-wafer", allow_stale=True, draft_tokens=1,
        prefill=tuple(map(str, prompts)), decode=f"{each * DIES}@{context + 1}", **groups,
    )  # fmt: skip
    cycles = price_of(**groups).cost(asked.batch).seconds * WAFER.clock_hz
    assert run_iteration(asked).cycles == pytest.approx(cycles, abs=1)


@settings(max_examples=6, deadline=None)
@given(_GROUPS, st.integers(0, 3000), _SIZES, _PROMPTS)
def test_an_iteration_costs_what_the_command_prints(
    groups: dict[str, Any], context: int, each: int, prompts: list[int]
) -> None:
    costs_what_is_printed(groups, context, each, prompts)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(_GROUPS, st.integers(0, 12_000), st.integers(1, 300), _PROMPTS)
def test_many_iterations_cost_what_the_command_prints(
    groups: dict[str, Any], context: int, each: int, prompts: list[int]
) -> None:
    costs_what_is_printed(groups, context, each, prompts)


def test_what_is_listed_adds_up_to_the_iteration() -> None:
    asked = {"model": "deepseek-v3-671b", "chip": "flat32-wafer", "allow_stale": True}
    for groups in ({"expert_parallel": 64}, {"expert_parallel": 32}):
        ran = run_iteration(IterationOptions(decode="640@999", **asked, **groups)).record({})
        listed = sum(each["count"] * each["cycles"] for each in ran["kernels"])
        stages = ran["dies"]["groups"]
        # Groups of 31 and 30 layers wait for each other.
        assert listed <= ran["cycles"] + 62 * stages
        assert listed == pytest.approx(ran["cycles"], rel=0.001 if stages == 1 else 0.05)


def test_halves_hide_the_links_of_large_batches() -> None:
    """Where links take as long as what experts of a die compute, halves pay."""
    slow = find_tiles(
        "flat32-wafer", tuple(f"dies.{x}_bytes_per_s=2.5e11" for x in ("link", "port"))
    )
    both = [
        DiesPrice(MODEL, slow, DieMapping(expert_parallel=32, pipeline=2, overlap=overlap))
        .cost(decoding(256, 4094))
        .seconds
        for overlap in (False, True)
    ]
    assert both[1] < 0.95 * both[0]


def test_groups_that_do_not_cut_the_wafer_are_refused() -> None:
    for expert_parallel, pipeline in ((3, None), (32, 4), (0, 1), (128, None)):
        with pytest.raises(InputError, match="--expert-parallel, --pp: found .* its 8x8 dies"):
            die_groups(WAFER, expert_parallel, pipeline)
    labels = {
        (dies, count): die_groups(WAFER, dies, count).label
        for dies, count in product((None, 8, 32), (None,))
    }
    assert list(labels.values()) == ["8x8", "2x4", "4x8"]
    with pytest.raises(InputError, match="'gpt-oss-20b' has sliding windows; allowed on 'flat32-w"):
        DiesPrice(load_model("gpt-oss-20b"), WAFER, DieMapping())
    with pytest.raises(InputError, match="--pp: found 64; allowed for 'llama3-8b': 1 to its 32 la"):
        DiesPrice(load_model("llama3-8b"), WAFER, DieMapping(pipeline=64))


_LOAD = generate("sharegpt", 5, 20.0, 1.0, 3)


@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS))
def test_schedulers_serve_on_a_wafer(scheduler: str) -> None:
    """Drafts too: each request emits its tokens in fewer iterations."""
    plain, drafted = (
        run(_LOAD, make_scheduler(scheduler, SchedulerOptions()), PRICE, speculation=speculation)
        for speculation in (None, Speculation(1, 0.7))
    )
    assert plain["completed"] == drafted["completed"] == len(_LOAD)
    assert drafted["iterations"] < plain["iterations"]
    assert plain["energy_j"] is None


def test_dies_apart_for_prompts() -> None:
    """Whole rows; keys and values of 576 bytes a layer cross 8 links between them."""
    pools = make_pools(MODEL, WAFER, prefill_units=32, dies=DieMapping(expert_parallel=32))
    assert (pools.prefill_share, pools.decode_share) == (0.5, 0.5)
    assert pools.kv_bytes_per_token == 61 * 576
    assert pools.link_bytes_per_s == 8e12
    figures = run_disaggregated(_LOAD, make_scheduler("chunked", SchedulerOptions()), pools)
    assert figures["completed"] == len(_LOAD)
    with pytest.raises(InputError, match="dies of a pool of 'flat32-wafer': found 12; allowed: wh"):
        make_pools(MODEL, WAFER, prefill_units=12)


def test_a_stretch_has_the_energy_of_its_iterations() -> None:
    energy = load_chip("flat32").energy
    assert energy is not None
    chip = WAFER.model_copy(update={"energy": energy})
    price = DiesPrice(MODEL, chip, DieMapping(expert_parallel=32))
    costs = price.decode_costs(64, np.array([64 * 100, 64 * 300]))
    each = [price.cost(Batch((), 64, 64 * context, 64)).energy_j for context in (100, 300)]
    assert costs.energy_j is not None
    assert costs.energy_j == each
    assert price.static_power_w == 64 * energy.idle_w
    changes = tuple(f"energy.{name}={value}" for name, value in energy.model_dump().items())
    asked = IterationOptions(
        model="deepseek-v3-671b", chip="flat32-wafer", allow_stale=True, decode="64@100",
        expert_parallel=32, set=changes,
    )  # fmt: skip
    ran = run_iteration(asked)
    assert ran.energy_j == pytest.approx((each[0] or 0) + 64 * energy.idle_w * ran.seconds)
