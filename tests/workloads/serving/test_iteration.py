"""The operators of a batch are those of its layers, each as often as layers run it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.models import Model, load_model
from workloads.models.operators import Attention, Product, Rows
from workloads.serving.price.cost import Batch
from workloads.serving.price.iteration import Iterations
from workloads.serving.price.parts import (
    Decode,
    Head,
    Layer,
    Part,
    Prompt,
    alike,
    part_operators,
    rounded,
)

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
    for operator, count in Iterations(model).operators(batch):
        if isinstance(operator, Attention):
            rows = operator.sequences * operator.new
            found[operator.name] += count * rows
    return found


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(_MODELS), _BATCHES)
def test_every_layer_attends_once_for_every_token(model: Model, batch: Batch) -> None:
    prompts = sum(rounded(new, 5) for new, _ in batch.prefills)
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
        for operator, count in Iterations(model).operators(filled)
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
    found = dict(Iterations(_MODELS[0]).operators(batch))
    assert found[Product("head", 4, 128256, 4096)] == 1


def test_sizes_are_rounded_to_the_nearest_of_some_bits() -> None:
    sizes = (0, 1, 128, 129, 130, 1000, 4097, 4130)
    assert [rounded(n) for n in sizes] == [0, 1, 128, 128, 132, 1008, 4096, 4096]
    for bits, most in ((6, 1 / 64), (5, 1 / 32)):
        errors = [rounded(n, bits) / n - 1 for n in range(1, 1 << 15)]
        assert max(map(abs, errors)) <= most
        assert abs(sum(errors)) / len(errors) < most / 20  # too many as often as too few


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.builds(Layer, st.integers(1, 5000), st.booleans()),
        st.builds(Prompt, st.integers(1, 3000), st.integers(0, 9000), st.none()),
        st.builds(Decode, st.integers(1, 99), st.just(1), st.integers(0, 9000), st.just(None)),
        st.builds(Head, st.integers(1, 5000)),
    )
)
def test_parts_that_are_alike_have_the_same_operators_but_for_one_size(part: Part) -> None:
    if isinstance(part, Layer | Head):
        part = type(part)(rounded(part[0]), *part[1:])
    else:
        part = part._replace(context=rounded(part.context, 5))
    together = alike(part)
    assert part in together
    assert all(part in alike(each) for each in together)
    named = [[each.name for each in part_operators(_MODELS[1], each)] for each in together]
    assert all(each == named[0] for each in named)


def test_attention_of_a_prompt_chunk_is_planned_when_it_is_met() -> None:
    assert alike(Prompt(512, 1024, None)) == [Prompt(512, 1024, None)]
    assert len(alike(Decode(16, 1, 1024, None))) == 16


def test_what_is_cached_beyond_a_window_makes_no_difference() -> None:
    model = _MODELS[1]
    iterations = Iterations(model)
    stages = iterations.stages(Batch(((64, 3000),), 4, 4 * 3000, 5))
    parts = {part: count for stage in stages for part, count in iterations.parts(stage)}
    assert parts[Prompt(64, 128, 128)] == parts[Decode(4, 1, 128, 128)] == 12
    # A new token sees 3,032 in the mean, which is 3,072 with five significant bits.
    assert parts[Prompt(64, 3040, None)] == parts[Decode(4, 1, 3008, None)] == 12
    # So a window that is not full is like one that nothing is seen of.
    operators = list(part_operators(model, Prompt(64, 128, 128)))
    assert operators == list(part_operators(model, Prompt(64, 3040, 128)))
