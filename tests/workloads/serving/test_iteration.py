"""The operators of a batch are those of its layers, each as often as layers run it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.models import Model, load_model
from workloads.models.operators import Attention, Product, Rows
from workloads.serving.price.cost import Batch
from workloads.serving.price.iteration import batch_operators, rounded

_MODELS = [load_model(name) for name in ("llama3-8b", "gpt-oss-20b", "deepseek-v3-671b")]
_BATCHES = st.builds(
    lambda prefills, sequences, each: Batch(
        tuple(prefills), sequences, sequences * each, len(prefills) + sequences
    ),
    st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 3000)), max_size=3),
    st.integers(0, 200),
    st.integers(1, 4000),
)


def attended(model: Model, batch: Batch) -> dict[str, int]:
    """Sequences times layers of each kind of attention."""
    found = {"prompt attention": 0, "decode attention": 0}
    for operator, count in batch_operators(model, batch):
        if isinstance(operator, Attention):
            rows = operator.sequences * operator.new
            found[operator.name] += count * rows
    return found


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(_MODELS), _BATCHES)
def test_every_layer_attends_once_for_every_token(model: Model, batch: Batch) -> None:
    prompts = sum(rounded(new) for new, _ in batch.prefills)
    assert attended(model, batch) == {
        "prompt attention": model.layers * prompts,
        "decode attention": model.layers * batch.decode_tokens,
    }


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(_MODELS), _BATCHES, st.data())
def test_prompts_in_some_layers_leave_the_others_to_decoding(
    model: Model, batch: Batch, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, model.layers - 1))
    stop = data.draw(st.integers(start + 1, model.layers))
    filled = batch._replace(prefill_layers=range(start, stop))
    norms = {
        operator.rows: count
        for operator, count in batch_operators(model, filled)
        if isinstance(operator, Rows) and operator.name == "attention norm"
    }
    tokens, decoding = rounded(batch.new_tokens), rounded(batch.decode_tokens)
    here = stop - start if batch.prefills else 0
    wanted = {tokens: here} if here else {}
    if decoding and here < model.layers:
        wanted[decoding] = wanted.get(decoding, 0) + model.layers - here
    assert norms == wanted


def test_the_head_is_of_the_tokens_that_give_a_next_one() -> None:
    batch = Batch(((512, 0),), 3, 300, 4)
    found = dict(batch_operators(_MODELS[0], batch))
    assert found[Product("head", 4, 128256, 4096)] == 1


def test_sizes_are_rounded_up_little() -> None:
    assert [rounded(n) for n in (0, 1, 128, 129, 1000, 4097)] == [0, 1, 128, 130, 1000, 4160]
    assert all(n <= rounded(n) <= 1.016 * n for n in range(1, 20_000, 7))
