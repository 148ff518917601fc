"""Which weights of a model tiles may keep, and where those of each product lie."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from tlm.compute.base import ceil_div
from workloads.kernels.gemm.stream_plan import GridCut, StreamPlan
from workloads.kernels.gemm.stream_search import plan_streams, whole_weight_cuts
from workloads.kernels.parts.found import Found
from workloads.machine.place import Place
from workloads.models import Model
from workloads.models.operators import (
    Operator,
    Product,
    after_experts,
    before_experts,
    head,
    projections,
    routed,
)

#: Rows for which the cut of a product's weights is the fastest: decoding requests of a batch.
_ROWS = 16


class Matrix(NamedTuple):
    """The weights of a product: what tells them from others of the same model.

    Attributes:
        columns: Columns.
        depth: Rows.
        weight_bytes: Of a weight.
    """

    columns: int
    depth: int
    weight_bytes: float

    @classmethod
    def of(cls, product: Product) -> "Matrix":
        """Those of one of a product's groups."""
        return cls(product.columns, product.depth, product.weight_bytes)


class Held(NamedTuple):
    """Weights in the tiles.

    Attributes:
        cut: Which part each tile has.
        tile_bytes: Of the largest of these parts.
    """

    cut: GridCut
    tile_bytes: int


def held_weights(model: Model, place: Place, room: int) -> Iterator[tuple[Matrix, Held]]:
    """Cuts of products whose weights may be kept, each the fastest for a batch that decodes."""
    alone = replace(place, offchip=None)
    for matrix in matrices(model):
        tried = []
        for cut in whole_weight_cuts(place.rows, place.cols):
            held = Held(cut, _part_bytes(matrix, cut))
            if held.tile_bytes <= room:
                (found,) = kept_plans(alone, matrix, held, [(_ROWS, 1)])
                tried.append((found.cycles, held))
        if tried:
            yield matrix, min(tried)[1]


def kept_plans(
    place: Place, matrix: Matrix, held: Held, rows: Sequence[tuple[int, int]]
) -> list[Found[StreamPlan]]:
    """Plans of products with weights that lie in the tiles."""
    bits = 8 * matrix.weight_bytes
    weight_bits = None if bits == place.element_bits else bits
    method = place.method(None)
    return plan_streams(rows, matrix[:2], place, method, weight_bits, resident=True, cut=held.cut)


def matrices(model: Model) -> list[Matrix]:
    """Those of all products whose weights may be kept."""
    return list(dict.fromkeys(map(Matrix.of, products_of(list(_kinds(model))))))


def group_bytes(matrix: Matrix, tensor: int) -> int:
    """Bytes of a tile's part by K of a group of tiles, padding among them."""
    elements = tensor * ceil_div(matrix.columns, tensor) * ceil_div(matrix.depth, tensor)
    return ceil(elements * matrix.weight_bytes)


def _part_bytes(matrix: Matrix, cut: GridCut) -> int:
    """Bytes of a tile's part, padding among them."""
    _, columns, depth = cut.parts
    elements = ceil_div(matrix.columns, columns) * ceil_div(matrix.depth, depth)
    return ceil(elements * matrix.weight_bytes)


def _kinds(model: Model) -> Iterator[Operator]:
    """Operators of all kinds of layers, and of the head."""
    for number in (0, model.layers - 1):
        yield from kept_layer(model, number)
    if model.experts is not None:
        yield from routed(model, 1, _ROWS)
    yield from head(model, _ROWS)


def kept_layer(model: Model, number: int) -> Sequence[Operator]:
    """Operators of a layer but for attention and routed experts."""
    if model.count(range(number, number + 1)).dense:
        return list(projections(model, _ROWS, experts=None))
    return [*before_experts(model, _ROWS), *after_experts(model, _ROWS)]


def products_of(operators: Sequence[Operator]) -> list[Product]:
    """Those of some operators that are products."""
    return [each for each in operators if isinstance(each, Product)]


def weight_bytes(product: Product) -> float:
    """Bytes of the weights of all of a product's groups."""
    return product.groups * product.columns * product.depth * product.weight_bytes
