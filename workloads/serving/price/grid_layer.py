"""The kernels of a dense layer on a square grid of tiles that hold weights, keys and values.

As WaferLLM runs it (sections 4.1 and 4.2; its public code). Prompts are nine products by
compute and shift, of which five align their first operand: the others share it with the one before,
or shift one operand alone. A decoding token is nine products of a vector in eight kernels, as
queries, keys and values are summed together, like gate and up. Each ends in an all-reduction.
Another one adds the squares of each norm, and two belong to the softmax: ten in all.

A sum of rows stands for the maxima of a softmax, too. Passes that scale rows, or take exponentials,
are not counted: a tile has a few dozen elements, beside thousands of cycles of each product.

Every size is padded up to the grid. Keys and values are as wide as queries, even where heads share
them, and the scores of all heads are one matrix: so does the code that was measured.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.kernels.catalogue import Choices, Sizes
from workloads.models import Model
from workloads.serving.price.parts import Decode, Head, Layer, Part, Prompt

_SKEWED = Choices(skewed=True)
#: Elements that are turned together lie side by side: columns of weights may have any order.
_PAIR = 2


class GridOperator(NamedTuple):
    """An operator of a model, as a kernel.

    Attributes:
        name: What it is in the model.
        kernel: The kernel that runs it.
        sizes: Of its problem, as in ``--shape``.
        choices: The kernel's variant.
    """

    name: str
    kernel: str
    sizes: Sizes
    choices: Choices = Choices()


def check_grid_model(model: Model) -> None:
    """Hold that a model's layers are those of this file.

    Raises:
        InputError: for experts, a latent cache and sliding windows.
    """
    parts = {
        "experts": model.experts,
        "a latent cache": model.latent_attention,
        "sliding windows": model.sliding_window,
    }
    found = [name for name, part in parts.items() if part is not None]
    if found:
        raise InputError(
            f"--model: '{model.name}' has {' and '.join(found)}; allowed on a chip without "
            "off-chip memory: dense models whose layers see all tokens"
        )


def grid_operators(
    model: Model, part: Part, side: int, gemv: str = "mesh-gemv"
) -> Iterator[GridOperator]:
    """Kernels of a part.

    Args:
        model: A dense model.
        part: Of an iteration; layers and decoding requests of one token, or prompts.
        side: Tiles along each edge of the grid.
        gemv: The kernel of products of a vector: with its all-reduction.
    """
    if isinstance(part, Head):
        return _head(model, part.rows, gemv)
    if isinstance(part, Prompt):
        return _prompt_attention(model, part.new, part.new + part.context)
    if isinstance(part, Decode):
        return _decode_attention(model, part.context + part.width, gemv)
    if part.tokens == 1:
        return _decode_layer(model, side, gemv)
    return _prompt_layer(model, part)


def padded(size: int, side: int) -> int:
    """A size padded up to whole blocks."""
    return ceil_div(size, side) * side


def width(model: Model) -> int:
    """Elements of the queries of a token, and so of its keys and values."""
    return model.query_heads * model.head_dim


def _prompt_layer(model: Model, part: Layer) -> Iterator[GridOperator]:
    rows, hidden, wide, ffn = part.tokens, model.hidden, width(model), model.ffn_hidden or 0
    yield GridOperator("attention norm", "row-sum", (rows, hidden))
    yield GridOperator("query", "mesh-gemm", (rows, wide, hidden))
    yield GridOperator("key", "mesh-gemm", (rows, wide, hidden), _SKEWED)
    yield GridOperator("value", "mesh-gemm", (rows, wide, hidden), _SKEWED)
    yield GridOperator("rotary embedding", "rotary", (rows, 2 * wide, _PAIR))
    yield GridOperator("attention output", "mesh-gemm", (rows, hidden, wide))
    yield GridOperator("attention residual", "residual", (rows, hidden))
    yield GridOperator("feed-forward norm", "row-sum", (rows, hidden))
    yield GridOperator("gate", "mesh-gemm", (rows, ffn, hidden))
    yield GridOperator("up", "mesh-gemm", (rows, ffn, hidden), _SKEWED)
    yield GridOperator("activation", "gate", (rows, ffn))
    yield GridOperator("down", "mesh-gemm", (rows, hidden, ffn))
    yield GridOperator("feed-forward residual", "residual", (rows, hidden))


def _prompt_attention(model: Model, rows: int, keys: int) -> Iterator[GridOperator]:
    wide = width(model)
    yield GridOperator("scores", "mesh-gemm-t", (rows, keys, wide))
    yield GridOperator("softmax maximum", "row-sum", (rows, keys))
    yield GridOperator("softmax sum", "row-sum", (rows, keys))
    yield GridOperator("values", "mesh-gemm", (rows, wide, keys))


def _decode_layer(model: Model, side: int, gemv: str) -> Iterator[GridOperator]:
    hidden, wide, ffn = model.hidden, width(model), model.ffn_hidden or 0
    heads, both = 3 * padded(wide, side), 2 * padded(ffn, side)
    yield _sum("attention norm", gemv, hidden)
    yield GridOperator("query, key and value", gemv, (1, heads, hidden))
    yield GridOperator("rotary embedding", "rotary", (1, 2 * wide, _PAIR))
    yield GridOperator("attention output", gemv, (1, hidden, wide))
    yield GridOperator("attention residual", "residual", (1, hidden))
    yield _sum("feed-forward norm", gemv, hidden)
    yield GridOperator("gate and up", gemv, (1, both, hidden))
    yield GridOperator("activation", "gate", (1, ffn))
    yield GridOperator("down", gemv, (1, hidden, ffn))
    yield GridOperator("feed-forward residual", "residual", (1, hidden))


def _decode_attention(model: Model, keys: int, gemv: str) -> Iterator[GridOperator]:
    wide = width(model)
    yield GridOperator("scores", gemv, (1, keys, wide))
    yield _sum("softmax maximum", gemv, keys)
    yield _sum("softmax sum", gemv, keys)
    yield GridOperator("values", gemv, (1, wide, keys))


def _head(model: Model, rows: int, gemv: str) -> Iterator[GridOperator]:
    for _ in range(rows):
        yield _sum("last norm", gemv, model.hidden)
        yield GridOperator("head", gemv, (1, model.vocabulary, model.hidden))


def _sum(name: str, gemv: str, size: int) -> GridOperator:
    """A number of a vector that every tile gets; all rows of tiles have the vector."""
    pipeline = Choices(collective="pipeline") if gemv == "pipeline-gemv" else Choices()
    return GridOperator(name, "row-sum", (1, size), pipeline)
