"""How the hot loops are compiled with Numba, and how what is stored of them is kept in step."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from graphlib import TopologicalSorter
from pathlib import Path
from threading import Lock
from types import FunctionType, ModuleType
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numba import njit, types
from numba.core.registry import CPUDispatcher
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import overload, register_jitable

# A column, or the record that begins with it. Unsigned: Numba then leaves out its test for indices
# that count from an array's end.
Address = Annotated[int, types.uint32]

_Index = TypeVar("_Index", contravariant=True)


class Numbers(Protocol[_Index]):
    """An array of whole numbers to the type checker; to NumPy's own types an item may be any."""

    def __getitem__(self, index: _Index, /) -> int: ...

    def __setitem__(self, index: _Index, value: int, /) -> None: ...


_Function = TypeVar("_Function", bound=Callable[..., Any])
_PLAIN = {int: types.int64, bool: types.boolean}
# The cores make no arrays. Counting references to those that they are given would take a third to
# two thirds of their time.
_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}
# Of two threads that need the same function one compiles it.
_preparing = Lock()
_laws = set[Callable[..., Any]]()


def compiled(function: _Function) -> _Function:
    """Compile a function that makes no array; the machine code is stored on disk."""
    made: _Function = njit(**_OPTIONS)(function)
    return made


def internal(function: _Function) -> _Function:
    """The same, for a function that compiled ones alone call: a third less to compile.

    What takes Python's named tuples apart for it is left out. Called by Python it raises TypeError.
    """
    made: _Function = njit(**_OPTIONS | {"no_cpython_wrapper": True})(function)
    if hasattr(made, "py_func"):  # else $NUMBA_DISABLE_JIT
        made.__class__ = _Internal  # type: ignore[assignment]  # Numba has no other way
    return made


class _Internal(CPUDispatcher):
    """Of a function that Python cannot call: without this the process would break down."""

    def __call__(self, *arguments: object, **named: object) -> None:
        del arguments, named
        raise TypeError(f"{self.py_func.__name__}: called by Python; compiled functions alone can")


def unlocked(function: _Function) -> _Function:
    """The same, for a function that runs in several threads at once."""
    made: _Function = njit(**_OPTIONS, nogil=True)(function)
    return made


def inlined(function: _Function) -> _Function:
    """The same, as a part of every function that calls it: its types are those of the call."""
    made: _Function = njit(**_OPTIONS, inline="always")(function)
    return made


def merged(function: _Function) -> _Function:
    """The same, as a part of its callers' machine code: for what is called for every packet-hop."""
    made: _Function = njit(**_OPTIONS, forceinline=True)(function)
    return made


def allocating(function: _Function) -> _Function:
    """The same, for a function that makes arrays or lists."""
    made: _Function = njit(**_OPTIONS | {"_nrt": True})(function)
    return made


def law(function: _Function) -> _Function:
    """Of numbers or of arrays, as it is in Python; compiled as a part of compiled callers."""
    made: _Function = register_jitable(function)
    _laws.add(made)
    return made


@compiled
def address(index: int) -> Address:
    """The same number as an address."""
    return np.uint32(index)  # type: ignore[return-value]  # an int to Numba


def lowest(bits: int) -> int:
    """Number of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


@overload(lowest, strict=False)
def _lowest(bits: int) -> Any:
    return lambda bits: trailing_zeros(bits)  # type: ignore[call-arg]  # one instruction


def prepare(*entries: Callable[..., Any]) -> None:
    """Compile functions and all that they call, each once, for the types of its annotations.

    Left to itself Numba compiles a function again for every width of its arguments. Named tuples
    are of what their fields are annotated with. What is inlined is compiled as a part of others.

    Raises:
        KeyError: if a parameter is of a type that is not known here.
    """
    with _preparing:
        for function in TopologicalSorter(forget_stale(*entries)).static_order():
            inline = function.targetoptions.get("inline") == "always"
            if not inline and not function.signatures:  # else a part of what was prepared before
                function.compile(tuple(_parameters(function.py_func)))
                function.disable_compile()


def forget_stale(*entries: Callable[..., Any]) -> dict[Any, set[Any]]:
    """Drop stored machine code of functions that is older than the newest of their sources.

    Numba looks at a function's own file only, not at those of what it calls, nor at those of the
    modules and classes whose constants it takes.

    Returns:
        The functions and all that they call, each with those that it calls itself.
    """
    calls: dict[Any, set[Any]] = {}
    for entry in entries:
        if hasattr(entry, "py_func"):  # else $NUMBA_DISABLE_JIT: nothing is compiled
            _find_calls(entry, calls)
    sources = {function: Path(function.py_func.__code__.co_filename) for function in calls}
    files = {*sources.values(), *(file for function in calls for file in _columns(function))}
    files |= {Path(__file__), Path(__file__).with_name("unchecked.py")}  # how all is compiled
    newest = max((file.stat().st_mtime for file in files), default=0.0)
    for function, source in sources.items():
        for index in Path(function.stats.cache_path).glob(f"{source.stem}.*.nbi"):
            with suppress(FileNotFoundError):  # another process drops it too
                if index.stat().st_mtime < newest:
                    index.unlink()
    return calls


def _find_calls(function: Any, calls: dict[Any, set[Any]]) -> None:
    """Enter a function and all that it calls, each with the compiled functions that it names."""
    if function in calls:
        return
    calls[function] = {each for each in _named(function) if hasattr(each, "py_func")}
    for callee in calls[function]:
        _find_calls(callee, calls)


def _columns(function: Any) -> Iterator[Path]:
    """Files of the modules, the classes and the laws that a function names."""
    for each in _named(function):
        inside = isinstance(each, type) or _is_law(each)
        module = sys.modules.get(each.__module__) if inside else each
        if file := getattr(module, "__file__", None):  # none of what is built in
            yield Path(file)


def _named(function: Any) -> list[Any]:
    """What a function, and laws that are parts of it, name of their modules and of those there."""
    found: list[Any] = []
    plain, seen = [function.py_func], set[Any]()
    while plain:
        code, known = plain[-1].__code__, plain.pop().__globals__
        scopes = [known, *(vars(each) for each in known.values() if isinstance(each, ModuleType))]
        named = [scope[name] for scope in scopes for name in code.co_names if name in scope]
        laws = [each for each in named if _is_law(each) and each not in seen]
        seen.update(laws)
        plain += laws
        found += named
    return found


def _is_law(named: Any) -> bool:
    return isinstance(named, FunctionType) and named in _laws


def _parameters(function: Callable[..., Any]) -> Iterator[types.Type]:
    for name, hint in get_type_hints(function, include_extras=True).items():
        if name != "return":
            yield _type_of(hint)


def _type_of(hint: Any) -> types.Type:
    if get_origin(hint) is Annotated:
        written: types.Type = get_args(hint)[1]
        return written
    if not hasattr(hint, "_fields"):
        return _PLAIN[hint]
    fields = [_type_of(field) for field in get_type_hints(hint, include_extras=True).values()]
    if len({*fields}) == 1:
        return types.NamedUniTuple(fields[0], len(fields), hint)  # type: ignore[no-untyped-call]  # Numba's
    return types.NamedTuple(fields, hint)  # type: ignore[no-untyped-call]  # Numba's
