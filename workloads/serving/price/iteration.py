"""The operators of an iteration: those of its layers, each as often as it runs."""

from collections import Counter
from collections.abc import Iterator

from workloads.models import Model
from workloads.models.operators import (
    Operator,
    decode_attention,
    head,
    projections,
    prompt_attention,
)
from workloads.serving.price.cost import Batch
from workloads.serving.price.experts import distinct_experts

_EXACT_TOKENS = 128


def batch_operators(model: Model, batch: Batch) -> list[tuple[Operator, int]]:
    """Operators of an iteration, in the order in which a layer first meets them.

    Layers that compute prompts compute them beside the decoding requests; others those alone.
    """
    found: Counter[Operator] = Counter()
    filled = range(0)
    if batch.prefills:
        filled = range(model.layers) if batch.prefill_layers is None else batch.prefill_layers
    for layers in (range(filled.start), filled, range(filled.stop, model.layers)):
        tokens = batch.new_tokens if layers is filled else batch.decode_tokens
        for experts, count in _kinds(model, layers):
            for operator in layer_operators(model, tokens, experts=experts):
                found[operator] += count
    window = None if model.sliding_window is None else model.sliding_window.tokens
    for seen, everywhere, here in _seen(model, filled, window):
        for new, context in batch.prefills:
            for operator in prompt_operators(model, new, context, seen):
                found[operator] += here
        for operator in decode_operators(model, batch, seen):
            found[operator] += everywhere
    for operator in head(model, rounded(batch.logit_rows)) if batch.logit_rows else ():
        found[operator] += 1
    return [(operator, count) for operator, count in found.items() if count]


def layer_operators(model: Model, tokens: int, *, experts: bool) -> Iterator[Operator]:
    """All but attention of a layer; none without tokens."""
    if tokens:
        tokens = rounded(tokens)
        yield from projections(model, tokens, experts=needed(model, tokens) if experts else None)


def prompt_operators(
    model: Model, new: int, context: int, window: int | None
) -> Iterator[Operator]:
    """Attention of a prompt chunk in a layer that sees a window or, with None, all."""
    return prompt_attention(model, rounded(new), rounded(context), window)


def decode_operators(model: Model, batch: Batch, window: int | None) -> Iterator[Operator]:
    """Attention of the decoding requests in a layer, their contexts taken as equal."""
    sequences = batch.decode_sequences
    if sequences:
        context = rounded(-(-batch.decode_context_tokens // sequences))
        yield from decode_attention(model, sequences, batch.decode_width, context, window)


def needed(model: Model, tokens: int) -> int:
    """Experts of a layer that some tokens need."""
    experts = model.experts
    assert experts is not None
    return round(distinct_experts(experts.count, experts.active, tokens))


def rounded(tokens: int) -> int:
    """Tokens rounded up to 7 significant bits (1.6 % at most), to keep cases few."""
    if tokens <= _EXACT_TOKENS:
        return tokens
    unit = 1 << (tokens.bit_length() - 7)
    return -(-tokens // unit) * unit


def _kinds(model: Model, layers: range) -> Iterator[tuple[bool, int]]:
    """Whether layers have experts, and how many do and do not."""
    counts = model.count(layers)
    for experts, count in ((False, counts.dense), (True, counts.experts)):
        if count:
            yield experts, count


def _seen(model: Model, filled: range, window: int | None) -> Iterator[tuple[int | None, int, int]]:
    """What layers see, how many of all do, and how many of those that compute prompts."""
    everywhere, here = model.count(range(model.layers)), model.count(filled)
    if everywhere.full:
        yield None, everywhere.full, here.full
    if everywhere.windowed:
        yield window, everywhere.windowed, here.windowed
