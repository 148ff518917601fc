"""Runs that are compiled leave the figures of those that are stepped, iteration by iteration."""

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.serving.served import Rows, trace_of
from tlm.errors import InputError
from workloads.serving.engine.budgeted import engine
from workloads.serving.engine.budgeted.engine import BudgetedEngine, budgeted_engine
from workloads.serving.engine.budgeted.state import NEVER
from workloads.serving.engine.kv import BlockPool
from workloads.serving.engine.run import Limits, Watch, run
from workloads.serving.load.traces import MAX_TIME_PS, Trace
from workloads.serving.price.compared_prices import Price
from workloads.serving.price.energy import UNKNOWN
from workloads.serving.price.iteration import Attended, Decoded, Passed
from workloads.serving.price.models import serving_model
from workloads.serving.price.part_price import PartPrices
from workloads.serving.price.parts import AnyPart, Decode, Head, rounded, rounded_chunk
from workloads.serving.price.stage_cells import (
    attended_cell,
    decoded_cell,
    head_cell,
    passed_cell,
    stage_at,
)
from workloads.serving.price.tile_price import TilePrice
from workloads.serving.result.metrics import Recorder, Row, Slo
from workloads.serving.schedulers import Chunked, Continuous, Layered, PdFusion, Scheduler, Static

#: Requests that come all at once, at about the pace at which they are served, or far apart.
_LOADS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.01, 0.2, 3.0]), st.integers(1, 90), st.integers(1, 40)),
    min_size=1,
    max_size=25,
)
_MAKERS = (Continuous, Static, Chunked, lambda: Chunked(16), lambda: Chunked(3))


@pytest.fixture(scope="module")
def model() -> TilePrice:
    """Prices that all runs share."""
    found = serving_model("qwen3-1.7b", "flat32")
    assert isinstance(found, TilePrice)
    return found


def figures(
    model: TilePrice, trace: Trace, scheduler: Scheduler, limits: Limits, tbt_ms: float | None
) -> tuple[object, ...]:
    """All that a run leaves behind."""
    rows: list[tuple[int, Row]] = []
    made: dict[str, Counter[Hashable]] = {}
    watch = Watch(rows=Rows(rows), made_of=made)
    return (
        run(trace, scheduler, model, slo=Slo(1.0, tbt_ms), limits=limits, watch=watch),
        rows,
        made,
    )


def test_prices_are_gone_with_their_last_run(model: TilePrice) -> None:
    """Without a collection of garbage: explorations price hundreds of chips in a process."""
    served = trace_of((0, 9, 9)), Chunked(), Limits(), None
    figures(model, *served)  # what is compiled holds on to whoever was first
    gc.collect()
    gc.disable()
    try:
        once = serving_model("qwen3-1.7b", "flat32")
        assert isinstance(once, TilePrice)
        figures(once, *served)
        table = weakref.ref(once.stage_table(256))
        assert table() is not None
        del once
        assert table() is None
    finally:
        gc.enable()


@settings(max_examples=25, deadline=None)
@given(
    requests=_LOADS,
    make=st.sampled_from(_MAKERS),
    blocks=st.integers(9, 60),
    most=st.integers(1, 12),
    tbt_ms=st.sampled_from([None, 0.5, 2.0, 20.0]),
)
def test_figures_are_those_of_iterations_one_by_one(
    model: TilePrice,
    requests: list[tuple[float, int, int]],
    make: Callable[[], Scheduler],
    blocks: int,
    most: int,
    tbt_ms: float | None,
) -> None:
    waits, prompts, outputs = zip(*requests, strict=True)
    arrivals = (np.cumsum(waits) - waits[0]).tolist()
    trace, limits = (
        trace_of(*zip(arrivals, prompts, outputs, strict=True)),
        Limits(16 * blocks, most),
    )
    stepped = replace(limits, jump=False)
    assert figures(model, trace, make(), limits, tbt_ms) == figures(
        model, trace, make(), stepped, tbt_ms
    )


def test_a_run_that_is_told_piece_by_piece_is_the_same(
    model: TilePrice, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = trace_of(*((0.05 * number, 20 + number, 5 + number % 7) for number in range(30)))
    whole = figures(model, trace, Chunked(32), Limits(), 2.0)
    monkeypatch.setattr(engine, "_ROWS", 1)
    told: list[int] = []
    run(trace, Chunked(32), model, watch=Watch(progress=lambda done, _: told.append(done)))
    assert figures(model, trace, Chunked(32), Limits(), 2.0) == whole
    assert len(told) > 10 and told == sorted(told) and told[-1] == 30


@pytest.mark.parametrize("jump", [True, False])
def test_energy_of_a_run_is_not_known_if_that_of_a_stage_is_not(
    model: TilePrice, jump: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, limits = trace_of((0, 40, 9), (0.3, 90, 20)), Limits(jump=jump)
    assert run(trace, Chunked(32), model, limits=limits)["energy_j"] is not None
    found = PartPrices.of

    def partly(prices: PartPrices, part: AnyPart) -> Price:
        price = found(prices, part)
        return price._replace(joules=UNKNOWN) if isinstance(part, Decode) else price

    monkeypatch.setattr(PartPrices, "of", partly)
    partly_known = serving_model("qwen3-1.7b", "flat32")
    assert run(trace, Chunked(32), partly_known, limits=limits)["energy_j"] is None


def test_stages_have_cells_of_their_own() -> None:
    numbers = [
        *range(300),
        *(2**n + more for n in range(8, 30) for more in (-1, 0, 1, 2 ** (n - 7))),
    ]
    layers = range(28)
    for number in numbers:
        assert stage_at(passed_cell(number), layers) == Passed(rounded(number), layers)
        assert stage_at(head_cell(number), layers) == Head(rounded(number))
        for other in (0, 1, 37, number):
            found = stage_at(attended_cell(number, other), layers)
            assert found == Attended(*rounded_chunk(number, other), layers)
        for sequences in (1, 255):
            found = stage_at(decoded_cell(sequences, number), layers)
            assert found == Decoded(sequences, 1, rounded(number), 0)


@pytest.mark.parametrize(
    ("scheduler", "is_one"),
    [
        (Chunked(), True),
        (Continuous(), True),
        (Static(), True),
        (Layered(), False),
        (PdFusion(), False),
        (Chunked(micro_batches=2), False),
        (type("Custom", (Chunked,), {})(), False),
    ],
)
def test_shipped_schedulers_with_a_budget_are_compiled(
    model: TilePrice, scheduler: Scheduler, is_one: bool
) -> None:
    found = budgeted_engine(trace_of((0, 1, 1)), scheduler, model, Recorder(), BlockPool(160), 4)
    assert isinstance(found, BudgetedEngine) == is_one


def test_time_has_an_end(model: TilePrice) -> None:
    trace = trace_of((0, 10, 3), (MAX_TIME_PS / 1e12, 10, 3))
    with pytest.raises(InputError, match="104 days"):
        run(trace, Chunked(), model)


def test_no_time_is_never() -> None:
    """Requests come as late as time goes, and are waited for."""
    assert NEVER > MAX_TIME_PS
