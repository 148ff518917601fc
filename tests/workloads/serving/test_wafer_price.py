"""Prices of iterations on a chip whose tiles hold weights, keys and values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.serving.served import trace_of
from tlm.calibrated import stale_allowed
from tlm.chips import find_tiles, load_chip
from wafertlm.iteration import IterationOptions, run_iteration
from workloads.models import load_model
from workloads.serving.engine.pools import make_pools
from workloads.serving.engine.run import run
from workloads.serving.price.cost import Batch
from workloads.serving.price.grid_mapping import GridMapping
from workloads.serving.price.parts import Decode, Layer, Part, Prompt, rounded
from workloads.serving.price.reshuffle import Reshuffle
from workloads.serving.price.wafer import Item, Phase, Planned, Wafer
from workloads.serving.price.wafer_price import WaferPrice
from workloads.serving.schedulers import SchedulerOptions, make_scheduler

MODEL, HZ = load_model("llama3-8b"), 1.1e9
PRICE = WaferPrice(MODEL, load_chip("wse2"))
ONE = Batch((), 1, 4096, 1)


def test_an_iteration_costs_what_the_command_prints() -> None:
    for batch, asked in (
        (ONE, {"decode": "1@4096"}),
        (Batch((), 8, 8 * 4096, 8), {"decode": "8@4096"}),
        (Batch(((4096, 0),), 1, 4096, 2), {"prefill": ("4096",), "decode": "1@4096"}),
    ):
        options = IterationOptions(model="llama3-8b", chip="wse2", allow_stale=True, **asked)
        assert round(PRICE.cost(batch).seconds * HZ) == run_iteration(options).cycles


@pytest.mark.parametrize("tiles", [(990, 860), (75, 300), (20, 25)])
@pytest.mark.parametrize(("new", "context"), [(1, 127), (1, 131072), (16, 0), (777, 3000)])
def test_the_side_has_the_fewest_cycles_of_all(
    tiles: tuple[int, int], new: int, context: int
) -> None:
    """Found as if every kernel were planned on every side, which few are."""
    here, every = (Wafer(MODEL, load_chip("wse2"), tiles=tiles) for _ in range(2))
    sides = [*range(30, min(tiles) + 1, 30)] or [min(tiles)]
    held = [each for each in sides if every.regions(each).shift_tokens >= new - 1 + context]
    seen: Part = Decode(1, 1, context, None) if new == 1 else Prompt(new, context, None)
    parts = Layer(new, False), seen
    planned: list[int] = []

    def cycles(side: int) -> float:
        return sum(every.cycles(side, part) for part in parts)

    mapped = GridMapping.mapped
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GridMapping, "mapped", lambda *of: planned.append(1) or mapped(*of))
        found = here.decode_side(context) if new == 1 else here.prefill_side(new, context)
    assert found == min(held or sides, key=cycles)
    most = 4 if new == 1 else 9
    assert len(planned) < most * len(held or sides) or len(sides) <= 2


def test_a_stretch_of_decoding_is_its_iterations() -> None:
    contexts = np.array([8 * 1000, 8 * 1001, 8 * 1100])
    costs = PRICE.decode_costs(8, contexts)
    each = [PRICE.cost(Batch((), 8, int(context), 8)) for context in contexts]
    assert costs.times == [2, 1]
    assert [costs.seconds[run] for run in (0, 0, 1)] == [one.seconds for one in each]
    assert [costs.made_of[run] for run in (0, 0, 1)] == [one.made_of for one in each]


def test_more_requests_fill_the_regions() -> None:
    one, many = PRICE.cost(ONE), PRICE.cost(Batch((), 64, 64 * 4096, 64))
    count = one.made_of[0].phases[0].regions.count
    assert count > 1
    assert many.seconds == pytest.approx(one.seconds * (64 + count - 1) / count)


def test_a_short_chunk_goes_token_by_token_where_decoding_is() -> None:
    long, short = (PRICE.cost(Batch(((new, 1024),), 0, 0, 0)) for new in (2048, 4))
    tokens = {
        placed.part.tokens
        for placed in PRICE.parts({short.made_of[0]: 1})
        if hasattr(placed.part, "tokens")
    }
    assert tokens == {1}
    assert len(long.made_of[0].reshuffles) == 2 and not short.made_of[0].reshuffles
    layers = PRICE.cost(Batch(((4, 1024),), 0, 0, 0, range(8)))
    assert layers.seconds == pytest.approx(short.seconds / 4)


chunks = st.lists(st.tuples(st.integers(1, 700), st.integers(0, 6000)), min_size=1, max_size=3)


@settings(max_examples=20)
@given(chunks, st.integers(0, 9))
def test_prompts_go_where_they_take_the_fewest_cycles(
    prefills: list[tuple[int, int]], decoding: int
) -> None:
    """Found as if all ways were planned, of which many need not be."""
    wafer, sides, layers = Wafer(MODEL, load_chip("wse2")), (840, 300), MODEL.layers
    batch = Batch(tuple(prefills), decoding, 900 * decoding, decoding)
    alone = wafer.planned(Batch((), decoding, 900 * decoding, decoding), *sides)
    whole, tokens = [], []
    for new, context in ((rounded(each) for each in chunk) for chunk in prefills):
        seen: Part = Decode(1, 1, rounded(context + new // 2), None)
        prompt: Part = Prompt(new, context, None)
        times = new * layers
        tokens.append(Item(((Layer(1, False), times), (seen, times)), 1))
        both = (Layer(new, False), layers), (prompt, layers)
        whole.append(tokens[-1] if new == 1 else Item(both, 1))

    def of(side: int, item: Item) -> float:
        return item.total(lambda part: wafer.cycles(side, part))

    moved = MODEL.weight_bytes + MODEL.kv_bytes_per_token * (
        sum(map(sum, prefills)) + 900 * decoding
    )
    there, back = (wafer.regions(side) for side in sides)
    ways = Reshuffle(back, there), Reshuffle(there, back)
    reshuffles = [Item(((way, way.pieces(moved, 921, 921)),), 1) for way in ways]
    least = [min(both, key=lambda item: of(300, item)) for both in zip(whole, tokens, strict=True)]
    every = [
        Planned((Phase("prefill", wafer.regions(side), tuple(items)), *alone.phases), tuple(moves))
        for side, items, moves in ((840, whole, reshuffles), (300, least, []))
    ]
    assert wafer.planned(batch, *sides) == min(every, key=lambda planned: planned.cycles(of))


def test_room_is_that_of_the_regions_and_energy_the_power_of_the_wafer() -> None:
    assert PRICE.kv_capacity_tokens == PRICE.cost(ONE).made_of[0].phases[0].regions.shift_tokens
    assert PRICE.static_power_w == 15e3
    figures = run(trace_of((0.0, 500, 20)), make_scheduler("continuous", SchedulerOptions()), PRICE)
    assert figures["energy_j"] == pytest.approx(15e3 * figures["span_s"])
    assert figures["ttft_s"]["mean"] > 20 * figures["tbt_ms"]["mean"] / 1e3


@pytest.mark.parametrize("figure", ["hop_byte_pj", "sram_byte_pj"])
def test_energy_is_not_known_where_a_part_of_it_is_not(figure: str) -> None:
    """Plans of these kernels do not say what they move, nor what their engine reads."""
    price = WaferPrice(MODEL, find_tiles("wse2", (f"energy.{figure}=0.15",)))
    batch = Batch(((500, 0),), 1, 4096, 2)
    assert price.cost(batch).energy_j is None
    assert price.decode_costs(1, np.array([4096])).energy_j == [None]
    figures = run(trace_of((0.0, 500, 20)), make_scheduler("continuous", SchedulerOptions()), price)
    assert figures["energy_j"] is None
    # Known again as soon as what is not known takes none.
    whole = WaferPrice(MODEL, find_tiles("wse2", ("energy.flop_pj=0.5",))).cost(batch).energy_j
    assert whole is not None and whole > 0


def test_pools_have_tiles_of_their_own() -> None:
    pools = make_pools("llama3-8b", "wse2")
    prompts = pools.prefill.cost(Batch(((2048, 0),), 0, 0, 1))
    assert not prompts.made_of[0].reshuffles
    assert pools.prefill.static_power_w + pools.decode.static_power_w == pytest.approx(15e3)
    assert pools.decode.kv_capacity_tokens < PRICE.kv_capacity_tokens


def test_ends_are_those_of_the_comparisons() -> None:
    with stale_allowed(True):
        first = PRICE.cost(ONE).seconds
        low, high = (PRICE.at_end(end).cost(ONE).seconds for end in ("low", "high"))
    assert low <= first <= high
    assert low < high
    assert PRICE.cost(ONE).seconds == first


def test_reshuffles_have_ends_like_any_kernel() -> None:
    """And are as long as the command prints, which runs them as kernels."""
    batch = Batch(((4096, 0),), 0, 0, 1)
    placed = [
        each
        for each in PRICE.parts({PRICE.cost(batch).made_of[0]: 1})
        if isinstance(each.part, Reshuffle)
    ]
    assert len(placed) == 2
    with stale_allowed(True):
        for each in placed:
            low, high = PRICE.prices.ends(each)
            assert low < PRICE.prices.of(each).cycles < high
    options = IterationOptions(model="llama3-8b", chip="wse2", allow_stale=True, prefill=("4096",))
    assert run_iteration(options).cycles == round(PRICE.cost(batch).seconds * HZ)
