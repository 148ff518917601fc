"""The operators of a model's layers: mathematics, whatever runs them.

A layer of a decoder is, in order: norm, projections, rotary embedding, append to the cache,
attention, output projection, residual, norm, the gated feed-forward network (dense, or router,
experts and their weighted sum), residual. Tokens that give a next token then pass a norm and the
output head.

A latent cache (DeepSeek-V2 paper, section 2.1) is unfolded for prompts, the cached tokens of a
chunk included. Decoding works on the compressed tokens: both parts of the unfolding become
products of each head, one before attention and one after.

Not among them: the look-up of embeddings, which reads a row a token.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from workloads.models.model import Heads, Linear, Model

#: Work on rows that no weights take part in.
RowsKind = Literal["rms-norm", "rotary", "residual", "gate", "kv-append", "weighted-sum"]


class Product(NamedTuple):
    """Products of ``rows`` x ``depth`` and ``depth`` x ``columns`` weights.

    Attributes:
        name: What it is in the model.
        rows: Rows of each: tokens.
        columns: Columns of the weights.
        depth: Rows of the weights.
        groups: Products of this shape, each with weights and rows of its own.
        weight_bytes: Of a weight.
    """

    name: str
    rows: int
    columns: int
    depth: int
    groups: int = 1
    weight_bytes: float = 2.0

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.rows * self.columns * self.depth * self.groups


class Attention(NamedTuple):
    """Attention of new tokens of sequences of one length on what their caches hold.

    Attributes:
        name: What it is in the model.
        sequences: How many.
        q_heads: Heads of queries.
        kv_heads: Heads of keys and values.
        new: New tokens of each.
        keys: Tokens that the last of them sees, itself included.
        qk_depth: Elements of a query and of a key.
        v_depth: Elements of a value.
        latent: Values are the first elements of the keys.
        causal: A new token does not see those after it; else they are so few that all see all.
    """

    name: str
    sequences: int
    q_heads: int
    kv_heads: int
    new: int
    keys: int
    qk_depth: int
    v_depth: int
    latent: bool = False
    causal: bool = False


class Rows(NamedTuple):
    """Work on each row alone.

    Attributes:
        name: What it is in the model.
        kind: What is done.
        rows: Tokens.
        columns: Elements of each.
        operands: Of a weighted sum, how many rows come to one.
        head_dim: Of a rotary embedding, elements of a head.
    """

    name: str
    kind: RowsKind
    rows: int
    columns: int
    operands: int = 1
    head_dim: int = 1


Operator = Product | Attention | Rows


def projections(model: Model, tokens: int, *, experts: int | None) -> Iterator[Operator]:
    """All of a layer that works on each new token alone.

    Args:
        model: The model.
        tokens: New tokens.
        experts: Of a layer with experts: how many the tokens need; None of a dense one.
    """
    yield from _around_attention(model, tokens)
    if experts is None:
        yield from _gated(model, tokens, model.dense_linears)
        yield Rows("feed-forward residual", "residual", tokens, model.hidden)
    else:
        assert model.experts is not None
        yield from _for_all(model, tokens)
        yield from routed(model, experts, tokens * model.experts.active)
        yield from after_experts(model, tokens)


def before_experts(model: Model, tokens: int) -> Iterator[Operator]:
    """Of a layer with experts, what works on each new token before its experts do."""
    yield from _around_attention(model, tokens)
    yield from _for_all(model, tokens)


def routed(model: Model, needed: int, copies: int) -> Iterator[Operator]:
    """Experts.

    Args:
        model: The model.
        needed: Experts that get any, equal shares of the copies.
        copies: Tokens that experts get, each as often as it has experts.
    """
    experts = model.experts
    assert experts is not None
    each = -(-copies // needed)
    up, down = (
        Product(f"expert {part.name}", each, part.n, part.k, needed, model.expert_width_bytes)
        for part in model.expert_linears
    )
    yield up
    yield Rows("expert activation", "gate", copies, experts.width)
    yield down


def after_experts(model: Model, tokens: int) -> Iterator[Operator]:
    """The sum of what comes back of each token's experts, and the end of the layer."""
    experts = model.experts
    assert experts is not None
    operands = experts.active + bool(experts.shared)
    yield Rows("weighted sum of experts", "weighted-sum", tokens, model.hidden, operands)
    yield Rows("feed-forward residual", "residual", tokens, model.hidden)


def draft(model: Model, tokens: int) -> Iterator[Operator]:
    """What comes before the layer of a module that drafts: DeepSeek-V3 paper, section 2.2.

    Hidden states and embeddings, each normed, are projected to one.
    """
    hidden = model.hidden
    yield Rows("norm of hidden states", "rms-norm", tokens, hidden)
    yield Rows("norm of embeddings", "rms-norm", tokens, hidden)
    yield _product(model, Linear("draft projection", 2 * hidden, hidden), tokens)


def _around_attention(model: Model, tokens: int) -> Iterator[Operator]:
    """A layer up to its feed-forward network, but for attention."""
    hidden = model.hidden
    yield Rows("attention norm", "rms-norm", tokens, hidden)
    *before, after = model.attention_linears
    latent = model.latent_attention
    for linear in before:
        if linear.name != "cache up":
            yield _product(model, linear, tokens)
    heads, kept = model.query_heads, model.kv_heads * model.head_dim
    rotated, depth = heads * model.head_dim + kept, model.head_dim
    appended = 2 * kept
    if latent is not None:
        rotated, depth = (heads + 1) * latent.rope_dim, latent.rope_dim
        appended = latent.kv_rank + latent.rope_dim
    yield Rows("rotary embedding", "rotary", tokens, rotated, head_dim=depth)
    yield Rows("append to the cache", "kv-append", tokens, appended)
    yield _product(model, after, tokens)
    yield Rows("attention residual", "residual", tokens, hidden)
    yield Rows("feed-forward norm", "rms-norm", tokens, hidden)


def prompt_attention(
    model: Model, new: int, context: int, window: int | None
) -> Iterator[Operator]:
    """Attention of a prompt chunk in a layer, which sees a window or, with None, all tokens.

    Under a window as many rows as it has tokens go together, on their own keys and as many before.
    """
    latent = model.latent_attention
    if latent is not None:
        unfolded = next(each for each in model.attention_linears if each.name == "cache up")
        yield _product(model, unfolded, new + context)
    heads = model.prefill_heads
    if window is None or new + context <= window:
        yield _attention("prompt attention", heads, 1, new, new + context, causal=True)
        return
    parts, rest = divmod(new, window)
    if parts:
        keys = min(2 * window, window + context) if parts == 1 else 2 * window
        yield _attention("prompt attention", heads, parts, window, keys, causal=True)
    if rest:
        keys = min(window + rest, new + context)
        yield _attention("prompt attention", heads, 1, rest, keys, causal=True)


def decode_attention(
    model: Model, sequences: int, width: int, context: int, window: int | None
) -> Iterator[Operator]:
    """Attention of ``width`` new tokens of each decoding request in a layer.

    Args:
        model: The model.
        sequences: Decoding requests.
        width: New tokens of each.
        context: Tokens in the cache of each.
        window: What the layer sees; None: all.
    """
    latent, weight = model.latent_attention, model.weight_width_bytes
    tokens, heads = sequences * width, model.query_heads
    keys = width + (context if window is None else min(context, window))
    if latent is not None:
        into = Product("queries to latent", tokens, latent.kv_rank, latent.nope_dim, heads, weight)
        yield into
    shared = latent is not None
    yield _attention("decode attention", model.decode_heads, sequences, width, keys, latent=shared)
    if latent is not None:
        yield Product("values from latent", tokens, latent.value_dim, latent.kv_rank, heads, weight)


def head(model: Model, rows: int) -> Iterator[Operator]:
    """The last norm and the output head, of the tokens that give a next token."""
    yield Rows("last norm", "rms-norm", rows, model.hidden)
    linear = model.head
    yield Product(linear.name, rows, linear.n, linear.k, 1, model.head_width_bytes)


def _attention(
    name: str,
    heads: Heads,
    sequences: int,
    new: int,
    keys: int,
    *,
    latent: bool = False,
    causal: bool = False,
) -> Attention:
    return Attention(
        name, sequences, heads.kv_heads * heads.queries_per_kv, heads.kv_heads, new, keys,
        heads.qk_dim, heads.value_dim, latent, causal and new > 1,
    )  # fmt: skip


def _product(model: Model, linear: Linear, tokens: int) -> Product:
    return Product(linear.name, tokens, linear.n, linear.k, 1, model.weight_width_bytes)


def _gated(
    model: Model, tokens: int, linears: Sequence[Linear], kind: str = ""
) -> Iterator[Operator]:
    """A gated feed-forward network."""
    up, down = (_product(model, each, tokens) for each in linears)
    yield up._replace(name=kind + up.name)
    yield Rows(f"{kind}activation", "gate", tokens, down.depth)
    yield down._replace(name=kind + down.name)


def _for_all(model: Model, tokens: int) -> Iterator[Operator]:
    """What every token passes beside its experts: the router, and the shared experts."""
    router, *shared = model.shared_linears
    yield _product(model, router, tokens)
    if shared:
        yield from _gated(model, tokens, shared, "shared ")
