"""The recipes of the kernels of rows.

Sums come in, as products leave them. What a product takes next leaves as narrow as its operands;
the rest as sums. The vector unit neither divides nor takes roots, so two functions differ from
those of models, at the same number of passes:

- ``rms-norm`` yields the narrowed rows and the sum of the squares of each. The root of its mean
  divides a row after the next product, as a softmax is divided by its sums.
- ``gate`` yields u g min(1, e^g): SiLU up to the quotient 1 + e^-|g|.
"""

from workloads.kernels.parts.passes import Factor
from workloads.kernels.vector.recipe import Part, Pass, Recipe, Step

_TABLE_BITS = 14
"""A cosine of one, and a weight of one, is 2 to this."""
_ONE_BITS = 16
"""An exponential of one is 2 to this."""
_SQUARE_BITS = 8
"""Squares are shifted by so many bits, so that their sums do not wrap."""
NARROW = Factor(1, 4)
"""From sums to operands."""


def rms_norm(narrow: Factor = NARROW) -> Recipe:
    """Rows times a factor, as operands, and the sums of their squares in units of 2^8."""
    squares = Factor(1, _SQUARE_BITS)

    def passes(_: Step) -> list[Pass]:
        return [
            Pass("multiply", "x", "square", "x", squares),
            Pass("row-sum", "square", "total"),
            Pass("quantize", "x", "out", factor=narrow),
        ]

    return Recipe(
        (Part("x"),),
        (Part("out", sums=False), Part("total", column=True)),
        (Part("square"),),
        passes,
        reduced="total",
    )


def residual() -> Recipe:
    """The sum of two blocks."""
    return Recipe(
        (Part("x"), Part("y")), (Part("out"),), (), lambda _: [Pass("add", "x", "out", "y")]
    )


def gate(unit: float = 1 / 16, narrow: Factor = NARROW) -> Recipe:
    """U g min(1, e^g) times a factor, as operands; g is in a unit."""
    exponent = Factor.of_exponent(unit)

    def passes(_: Step) -> list[Pass]:
        return [
            Pass("scale", "g", "share", factor=exponent),
            Pass("exp", "share", "share"),
            Pass("multiply", "share", "share", "g", Factor(1, _ONE_BITS)),
            Pass("multiply", "share", "share", "u", Factor(1, 0)),
            Pass("quantize", "share", "out", factor=narrow),
        ]

    return Recipe((Part("g"), Part("u")), (Part("out", sums=False),), (Part("share"),), passes)


def kv_append(narrow: Factor = NARROW) -> Recipe:
    """Keys or values times a factor, as operands, into the cache."""
    return Recipe(
        (Part("x"),),
        (Part("out", sums=False),),
        (),
        lambda _: [Pass("quantize", "x", "out", factor=narrow)],
    )


def rotary(narrow: Factor = NARROW) -> Recipe:
    """Each head's two halves turned by the angles of their rows, times a factor, as operands.

    Cosines and sines of a row serve all its heads.
    """
    turned = Factor(1, _TABLE_BITS)

    def passes(step: Step) -> list[Pass]:
        negative = Pass("scale", "sine", "negative", factor=Factor(-1, 0))
        return [
            *([negative] if step.new_rows else []),
            Pass("multiply", "x", "one", "cosine", turned),
            Pass("multiply", "y", "other", "negative", turned),
            Pass("add", "one", "one", "other"),
            Pass("quantize", "one", "x.out", factor=narrow),
            Pass("multiply", "y", "one", "cosine", turned),
            Pass("multiply", "x", "other", "sine", turned),
            Pass("add", "one", "one", "other"),
            Pass("quantize", "one", "y.out", factor=narrow),
        ]

    return Recipe(
        (Part("cosine", "rows"), Part("sine", "rows"), Part("x"), Part("y")),
        (Part("x.out", sums=False), Part("y.out", sums=False)),
        (Part("negative"), Part("one"), Part("other")),
        passes,
    )


def weighted_sum() -> Recipe:
    """The sum of blocks, each times a weight of its row."""
    down = Factor(1, _TABLE_BITS)

    def passes(step: Step) -> list[Pass]:
        if step.inner == 0:
            return [Pass("multiply", "x", "out", "weight", down)]
        return [Pass("multiply", "x", "part", "weight", down), Pass("add", "out", "out", "part")]

    return Recipe(
        (Part("x", "step"), Part("weight", "step", column=True)),
        (Part("out"),),
        (Part("part"),),
        passes,
    )
