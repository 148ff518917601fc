"""A model's operators do the work, and have the weights, that the model says it has."""

from collections.abc import Iterator

import pytest

from workloads.models import Model, load_model, model_names
from workloads.models.operators import (
    Attention,
    Operator,
    Product,
    Rows,
    decode_attention,
    head,
    projections,
    prompt_attention,
)


def decoding(model: Model, sequences: int, context: int, needed: int) -> Iterator[Operator]:
    """All layers of an iteration that decodes."""
    counts = model.count(range(model.layers))
    for _ in range(counts.dense):
        yield from projections(model, sequences, experts=None)
    for _ in range(counts.experts):
        yield from projections(model, sequences, experts=needed)
    window = None if model.sliding_window is None else model.sliding_window.tokens
    for seen, layers in ((None, counts.full), (window, counts.windowed)):
        for _ in range(layers):
            yield from decode_attention(model, sequences, 1, context, seen)


@pytest.mark.parametrize("name", model_names())
def test_products_are_the_multiply_accumulates_of_the_model(name: str) -> None:
    model = load_model(name)
    needed = 1 if model.experts is None else model.experts.count
    sequences = 2 * needed  # equal shares
    found = sum(
        each.macs for each in decoding(model, sequences, 9, needed) if isinstance(each, Product)
    )
    assert found == sequences * model.layer_macs_per_token


@pytest.mark.parametrize("name", model_names())
def test_products_have_the_weights_of_the_model(name: str) -> None:
    model = load_model(name)
    needed = 1 if model.experts is None else model.experts.count
    found = [each for each in decoding(model, needed, 9, needed) if isinstance(each, Product)]
    found += [each for each in head(model, 1) if isinstance(each, Product)]
    weighed = sum(each.groups * each.columns * each.depth * each.weight_bytes for each in found)
    norms = (2 * model.layers + 1) * model.hidden * model.weight_width_bytes
    looked_up = 0 if model.tied_embeddings else model.head.weights * model.head_width_bytes
    assert weighed + norms + looked_up == pytest.approx(model.weight_bytes, abs=1)


@pytest.mark.parametrize("name", model_names())
def test_decoding_sees_its_context_and_its_window(name: str) -> None:
    model = load_model(name)
    for operator in decoding(model, 3, 5000, 1):
        if isinstance(operator, Attention):
            windows = {4999 + 2} | (
                {model.sliding_window.tokens + 1} if model.sliding_window else set()
            )
            assert operator.keys in windows
            assert operator.latent == (model.latent_attention is not None)
            assert operator.q_heads == model.query_heads


def test_a_prompt_chunk_unfolds_the_latents_that_it_sees() -> None:
    model = load_model("deepseek-v3-671b")
    unfold, attention = prompt_attention(model, 100, 300, None)
    assert isinstance(unfold, Product)
    assert unfold.rows == 400
    assert attention == Attention("prompt attention", 1, 128, 128, 100, 400, 192, 128, causal=True)


@pytest.mark.parametrize(("new", "context"), [(64, 0), (128, 10), (300, 0), (300, 500), (5, 500)])
def test_rows_under_a_window_see_all_of_it(new: int, context: int) -> None:
    model = load_model("gpt-oss-20b")
    parts = list(prompt_attention(model, new, context, 128))
    assert sum(each.sequences * each.new for each in parts if isinstance(each, Attention)) == new
    for each in parts:
        assert isinstance(each, Attention)
        assert each.keys >= min(each.new + 128, new + context, 256) or each.keys == new + context
        assert each.keys <= new + context


def test_every_expert_that_is_needed_gets_its_share() -> None:
    model = load_model("qwen3-30b-a3b")
    found = list(projections(model, 48, experts=40))
    up = next(each for each in found if each.name == "expert gate and up")
    assert isinstance(up, Product)
    assert (up.groups, up.rows) == (40, 10)  # 48 tokens, 8 experts each
    gathered = next(each for each in found if isinstance(each, Rows) and each.operands > 1)
    assert (gathered.rows, gathered.operands) == (48, 8)
