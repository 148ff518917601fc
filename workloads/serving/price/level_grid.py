"""Points of a coarse grid of parts, at which the ratio of another level to `perf` is measured.

Sizes of the grid are powers of two, and all counts up to 8, as few fill tiles unevenly. In between
the ratio is interpolated, by the logarithm of the size: closed forms know padding and ragged
contexts, so it changes slowly. Beyond the largest sizes, which take seconds each, it is taken to
stay: kernels repeat their blocks there.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from math import log
from typing import Any, cast

import numpy as np

from workloads.serving.price.parts import (
    After,
    Before,
    Draft,
    Head,
    Kept,
    Layer,
    Part,
    Prompt,
    Routed,
    StageHandOver,
    WithExperts,
    rounded,
)

#: Up to so many every count is in the grid.
_FEW = 8
#: The least context of a prompt chunk beside none.
_LEAST_CONTEXT = 256
#: The largest sizes: of a layer's tokens, of new tokens of a prompt, of contexts, and of counts.
_MOST_TOKENS, _MOST_NEW, _MOST_CONTEXT, _MOST_COUNT = 4096, 2048, 8192, 256
#: Parts that are checked of each kind, drawn evenly by logarithm from sizes that serving meets,
#: some of them beyond the grid.
_CHECKS, _SEED = 16, 21
_TOKENS, _NEW, _SEQUENCES, _CONTEXTS = (2, 6000), (2, 3000), (2, 128), (64, 12_000)

#: Of experts: those that get any tokens, and tokens of each.
_EXPERTS, _COPIES = (2, 32), (1, 512)

#: What has a number of tokens: parts of a layer with experts, and what stages hand on.
_Tokens = Before | After | Draft | StageHandOver
#: What has points.
OnGrid = Part | Kept | Routed | WithExperts | _Tokens
#: A size of the grid, and the weight of the ratio there.
_Weighed = tuple[int, float]


def around(part: OnGrid) -> list[tuple[OnGrid, float]]:
    """Points of the grid around a part, and their weights, which sum up to 1."""
    if isinstance(part, Kept):
        # Of what tiles may keep, which is no attention.
        return [
            (replace(part, part=cast(Any, point)), weight) for point, weight in around(part.part)
        ]
    if isinstance(part, _Tokens):
        sizes = _between(min(part.tokens, _MOST_TOKENS))
        return [(replace(part, tokens=size), weight) for size, weight in sizes]
    if isinstance(part, Routed):
        pairs = product(_between(min(part.needed, _MOST_COUNT)), _of_each(part))
        return [(Routed(count, count * each), one * two) for (count, one), (each, two) in pairs]
    if isinstance(part, WithExperts):
        return [*_around_layer(part)]
    return [*_around(part)]


def _of_each(experts: Routed) -> list[_Weighed]:
    """Sizes next to the tokens that each expert gets."""
    return _between(min(max(1, round(experts.copies / experts.needed)), _MOST_TOKENS))


def _around_layer(part: WithExperts) -> Iterator[tuple[WithExperts, float]]:
    """Points around a layer, each of whose experts gets as many tokens as another."""
    experts = part.here or part.away
    assert experts is not None  # tokens go to some
    for (tokens, one), (each, two), (here, three), (away, four) in product(
        _between(min(part.tokens, _MOST_TOKENS)), _of_each(experts),
        _counts(part.here), _counts(part.away),
    ):  # fmt: skip
        point = replace(part, tokens=tokens, here=_routed(here, each), away=_routed(away, each))
        yield point, one * two * three * four


def _counts(experts: Routed | None) -> list[_Weighed]:
    """Numbers next to that of some experts; 0 if there are none."""
    return [(0, 1.0)] if experts is None else _between(min(experts.needed, _MOST_COUNT))


def _routed(count: int, each: int) -> Routed | None:
    return Routed(count, count * each) if count else None


def _around(part: Part) -> list[tuple[Any, float]]:
    if isinstance(part, Layer):
        sizes = _between(min(part.tokens, _MOST_TOKENS))
        return [(part._replace(tokens=size), weight) for size, weight in sizes]
    if isinstance(part, Head):
        return [(Head(size), weight) for size, weight in _between(min(part.rows, _MOST_COUNT))]
    context = min(part.context, _MOST_CONTEXT)
    if isinstance(part, Prompt):
        new = min(part.new, _MOST_NEW)
        pairs = product(_between(new), _contexts(Prompt(new, context, part.window)))
        return [(part._replace(new=n, context=c), one * two) for (n, one), (c, two) in pairs]
    pairs = product(_between(min(part.sequences, _MOST_COUNT)), _seen(context, part.window))
    return [(part._replace(sequences=n, context=c), one * two) for (n, one), (c, two) in pairs]


def checks(part: OnGrid) -> list[OnGrid]:
    """Parts of the same kind, the same for all of it, on which interpolation is checked."""
    if isinstance(part, Kept):
        return [replace(part, part=cast(Any, each)) for each in checks(part.part)]
    if isinstance(part, _Tokens):
        return [replace(part, tokens=tokens) for tokens in _drawer()(*_TOKENS)]
    if isinstance(part, Routed):
        drawn = _drawer()
        pairs = zip(drawn(*_EXPERTS), drawn(*_COPIES), strict=True)
        return [Routed(count, count * each) for count, each in pairs]
    if isinstance(part, WithExperts):
        drawn = _drawer()
        drawings = zip(
            drawn(*_TOKENS), drawn(*_COPIES), drawn(*_EXPERTS), drawn(*_EXPERTS), strict=True
        )
        return [
            replace(
                part,
                tokens=tokens,
                here=part.here and _routed(here, each),
                away=part.away and _routed(away, each),
            )
            for tokens, each, here, away in drawings
        ]
    return [*_checks(part)]


def _drawer() -> Callable[[int, int], list[int]]:
    """Draws sizes between two, evenly by logarithm; the same ones each time."""
    stream = np.random.default_rng(_SEED)

    def drawn(least: int, most: int) -> list[int]:
        sizes = np.exp(stream.uniform(log(least), log(most), _CHECKS))
        return [rounded(round(size)) for size in sizes.tolist()]

    return drawn


def _checks(part: Part) -> list[Any]:
    drawn = _drawer()
    if isinstance(part, Layer):
        return [part._replace(tokens=tokens) for tokens in drawn(*_TOKENS)]
    if isinstance(part, Head):
        return [Head(rows) for rows in drawn(*_SEQUENCES)]
    contexts = [min(size, part.window or size) for size in drawn(*_CONTEXTS)]
    if isinstance(part, Prompt):
        pairs = zip(drawn(*_NEW), contexts, strict=True)
        return [part._replace(new=new, context=context) for new, context in pairs]
    pairs = zip(drawn(*_SEQUENCES), contexts, strict=True)
    return [part._replace(sequences=count, context=context) for count, context in pairs]


def kind(part: OnGrid) -> OnGrid:
    """What parts have in common that differ in sizes of the grid alone."""
    if isinstance(part, Kept):
        return replace(part, part=cast(Any, kind(part.part)))
    if isinstance(part, _Tokens):
        return replace(part, tokens=1)
    if isinstance(part, Routed):
        return Routed(1, 1)
    if isinstance(part, WithExperts):
        one = Routed(1, 1)
        return replace(part, tokens=1, here=part.here and one, away=part.away and one)
    if isinstance(part, Layer):
        return part._replace(tokens=1)
    if isinstance(part, Head):
        return Head(1)
    if isinstance(part, Prompt):
        return part._replace(new=1, context=0)
    return part._replace(sequences=1, context=1)


def _between(count: int) -> list[_Weighed]:
    """The counts next to one that is at least 1."""
    return [(count, 1.0)] if count <= _FEW else _seen(count, None)


def _seen(size: int, most: int | None) -> list[_Weighed]:
    """The powers of two next to a size that is at least 1; ``most`` is in the grid, too."""
    below = 1 << (size.bit_length() - 1)
    if size in (below, most):
        return [(size, 1.0)]
    above = 2 * below if most is None else min(2 * below, most)
    return _weighed(below, above, log(size / below) / log(above / below))


def _contexts(part: Prompt) -> list[_Weighed]:
    """Contexts next to a prompt chunk's, by the logarithm of all tokens that it sees."""
    new, context, window = part
    below = 0 if context < _LEAST_CONTEXT else 1 << (context.bit_length() - 1)
    if context in (below, window):
        return [(context, 1.0)]
    above = max(_LEAST_CONTEXT, 2 * below)
    above = above if window is None else min(above, window)
    share = log((new + context) / (new + below)) / log((new + above) / (new + below))
    return _weighed(below, above, share)


def _weighed(below: int, above: int, share: float) -> list[_Weighed]:
    return [(below, 1 - share), (above, share)]
