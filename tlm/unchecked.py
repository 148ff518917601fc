"""Arrays as the hottest loops see them: an address, where Numba's arrays are seven words or more.

A compiled function with such a parameter is given NumPy's arrays. Indices are not looked at: they
must lie inside, and none counts from the end. Calls are cheap, as is an item of any index; what is
read of 32 bits has 64 from then on.
"""

import operator
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has none
from numba import types
from numba.core import cgutils
from numba.core.typeconv.castgraph import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import (
    NativeValue,
    intrinsic,
    lower_builtin,
    lower_cast,
    models,
    overload,
    register_model,
    unbox,
)
from numba.np.arrayobj import make_array

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator"
# Numba's decorators and builders are not typed.


class Unchecked(types.Type):
    """The type of an array of int32, in the order of C.

    Attributes:
        columns: Columns of a table; 0: the array has one dimension.
    """

    def __init__(self, columns: int = 0) -> None:
        self.columns = columns
        super().__init__(name=f"Unchecked({columns})")

    @property
    def array(self) -> types.Array:
        """NumPy's array that stands behind it, as Numba sees it."""
        return types.Array(types.int32, 2 if self.columns else 1, "C")

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        """Numba's question whether an argument fits; None: it does not."""
        del typingctx
        return Conversion.safe if other == self.array else None


@register_model(Unchecked)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Unchecked) -> None:
        super().__init__(manager, kind, ir.IntType(32).as_pointer())


@unbox(Unchecked)
def _from_python(kind: Unchecked, found: Any, c: Any) -> Any:
    native = c.unbox(kind.array, found)
    data = make_array(kind.array)(c.context, c.builder, native.value).data
    return NativeValue(data, is_error=native.is_error, cleanup=native.cleanup)


@lower_cast(types.Array, Unchecked)
def _from_array(context: Any, builder: Any, array: Any, _kind: Any, value: Any) -> Any:
    return make_array(array)(context, builder, value).data


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, arguments: Any, _keywords: Any) -> Any:
        array, index = arguments
        return signature(types.int64, array, index) if isinstance(array, Unchecked) else None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, arguments: Any, _keywords: Any) -> Any:
        array, index, _value = arguments
        if not isinstance(array, Unchecked):
            return None
        return signature(types.none, array, index, types.int32)


@lower_builtin(operator.getitem, Unchecked, types.Any)
def _get(context: Any, builder: Any, called: Any, values: Any) -> Any:
    item = builder.load(_place(context, builder, called.args, values))
    return builder.sext(item, ir.IntType(64))


@lower_builtin(operator.setitem, Unchecked, types.Any, types.Any)
def _set(context: Any, builder: Any, called: Any, values: Any) -> Any:
    builder.store(values[2], _place(context, builder, called.args, values))


def _place(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """Address of an item: of a table's, by its row and column."""
    index = values[1]
    if kinds[0].columns:
        row, column = (
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(cgutils.unpack_tuple(builder, index), kinds[1], strict=True)
        )
        index = builder.add(builder.mul(row, row.type(kinds[0].columns)), column)
    else:
        index = context.cast(builder, index, kinds[1], types.intp)
    return builder.gep(values[0], [index], inbounds=True)


def fetch(array: Any, index: int) -> None:
    """Have the processor fetch the cache's line of an array's item; nothing waits for it.

    A table's items are numbered row by row.
    """


@intrinsic
def _fetch_line(_typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, called: Any, values: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        place = context.cast(builder, values[1], called.args[1], types.intp)
        item = builder.bitcast(builder.gep(values[0], [place]), byte)
        # For reading, to stay in all caches, of data.
        builder.call(prefetch, [item, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


@overload(fetch, strict=False)
def _fetch(array: Any, index: int) -> Any:
    return lambda array, index: _fetch_line(array, index)  # type: ignore[call-arg]  # one given
