"""Which modules of a mesh stand once at each node: the largest, in whatever modules they lie."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosim.errors import SimulationError
from cosim.verilated.cache import ask_verilator
from tlm.scratch import scratch_folder

_NUMBER = re.compile(r"(\d+)'(s?)h([0-9a-f]+)")
_Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A module that every node has.

    Attributes:
        module: Its name.
        parameters: Values of its parameters at a node in the middle of the mesh.
        each_node: How many of them stand at a node.
    """

    module: str
    parameters: Mapping[str, int]
    each_node: float


def parts_of(top: str, arguments: Sequence[str], nodes: int) -> list[Part]:
    """The modules of which a mesh has one or more a node.

    Args:
        top: The mesh.
        arguments: Options and sources of Verilator, which says what the mesh is made of.
        nodes: Its nodes.

    Raises:
        SimulationError: if there are errors in the Verilog, or a parameter is no whole number.
    """
    with scratch_folder() as folder:
        tree = Path(folder) / "tree.json"
        shown = ["--json-only-output", str(tree), "--json-only-meta-output", os.devnull]
        if problem := ask_verilator(Path(folder), top, [*arguments, *shown]):
            raise SimulationError(problem[-4000:])
        modules = {each["addr"]: each for each in json.loads(tree.read_text())["modulesp"]}
    inside = {addr: [*_cells(module)] for addr, module in modules.items()}
    first = next(addr for addr, module in modules.items() if module["name"] == top)
    counts = Counter(_name(modules[addr]) for addr in _instances(first, inside))
    many = {name for name, count in counts.items() if count >= nodes}
    found: dict[str, list[str]] = {}
    for addr in _outermost(first, inside, many, modules):
        found.setdefault(_name(modules[addr]), []).append(addr)
    return [
        Part(name, _parameters(modules[each[len(each) // 2]]), len(each) / nodes)
        for name, each in found.items()
    ]


def _instances(addr: str, inside: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for each in inside[addr]:
        yield each
        yield from _instances(each, inside)


def _outermost(
    addr: str, inside: Mapping[str, Sequence[str]], wanted: set[str], modules: Mapping[str, _Tree]
) -> Iterator[str]:
    for each in inside[addr]:
        if _name(modules[each]) in wanted:
            yield each
        else:
            yield from _outermost(each, inside, wanted, modules)


def _name(module: _Tree) -> str:
    return str(module["origName"])


def _cells(tree: _Tree) -> Iterator[str]:
    """Modules of the instances in a part of Verilator's tree."""
    if tree["type"] == "CELL":
        yield tree["modp"]
    for branch in tree.values():
        for each in branch if isinstance(branch, list) else ():
            yield from _cells(each)


def _parameters(module: _Tree) -> dict[str, int]:
    return {
        each["name"]: _value(module, each)
        for each in module["stmtsp"]
        if each["type"] == "VAR" and each["varType"] == "GPARAM"
    }


def _value(module: _Tree, parameter: _Tree) -> int:
    text = parameter["valuep"][0]["name"] if parameter["valuep"] else ""
    number = _NUMBER.fullmatch(text)
    if number is None:
        raise SimulationError(
            f"{_name(module)}: {parameter['name']}: found {text}; allowed: numbers"
        )
    bits, value = int(number[1]), int(number[3], 16)
    return value - (1 << bits) if number[2] and value >> bits - 1 else value
