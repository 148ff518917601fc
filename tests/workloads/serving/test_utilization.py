"""No model on no chip computes more than the chip's peak, whatever its layers see."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.serving.served import trace_of
from tlm.chips import load_chip
from tlm.chips.gpu import load_gpu_box
from workloads.models import load_model, model_names
from workloads.serving.engine.run import run
from workloads.serving.price.cost import Batch, ServingModel
from workloads.serving.price.gpu_cost import GpuCost
from workloads.serving.price.tile_price import TilePrice
from workloads.serving.schedulers import make_scheduler

_ROOM_BYTES = 1 << 42  # so that every model fits


def _on_gpus(model: str) -> ServingModel:
    gpu = load_gpu_box("h100x8")
    return GpuCost(
        load_model(model), gpu.model_copy(update={"memory_bytes": _ROOM_BYTES}), gpu.count
    )


def _on_tiles(model: str) -> ServingModel:
    chip = load_chip("flat32")
    assert chip.memory is not None
    memory = chip.memory.model_copy(update={"capacity_bytes": _ROOM_BYTES})
    return TilePrice(load_model(model), chip.model_copy(update={"memory": memory}))


_ALL = [make(model) for make in (_on_gpus, _on_tiles) for model in model_names()]
_BATCHES = st.builds(
    lambda prefills, sequences, each, width: Batch(
        tuple(prefills), sequences, sequences * each, sequences * width + len(prefills), None, width
    ),
    st.lists(st.tuples(st.integers(1, 100_000), st.integers(0, 100_000)), max_size=3),
    st.integers(0, 300),
    st.integers(1, 100_000),
    st.integers(1, 3),
).filter(lambda batch: batch.new_tokens > 0)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(_ALL), _BATCHES)
def test_an_iteration_computes_no_more_than_the_peak(model: ServingModel, batch: Batch) -> None:
    work = batch.work(model.layers, model.sliding_window)
    assert 0 < model.utilization(work, model.cost(batch).seconds) <= 1


@pytest.mark.parametrize("scheduler", ["chunked", "layered"])
def test_a_run_with_windows_computes_less_than_the_peak(scheduler: str) -> None:
    trace = trace_of(*[(0, 100_000, 300)] * 4)
    for make in (_on_gpus, _on_tiles):
        result = run(trace, make_scheduler(scheduler), make("gpt-oss-20b"))
        assert 0.02 < result["utilization"] < 0.9


def test_pairs_of_a_window_by_hand() -> None:
    """Of two layers the first sees 4 tokens."""
    window = load_model("gpt-oss-20b").sliding_window
    assert window is not None
    window = window.model_copy(update={"tokens": 4, "period": 2})
    prompt = Batch(((6, 0),), 0, 0, 1)
    assert prompt.work(2, window).pair_layers == (1 + 2 + 3 + 4 + 4 + 4) + 21
    last = prompt._replace(prefill_layers=range(1, 2))
    assert last.work(2, window).pair_layers == 21
    decoding = Batch((), 2, 20, 2)  # as priced: what the window holds, and the new token
    assert decoding.work(2, window).pair_layers == 2 * (4 + 1) + 22
