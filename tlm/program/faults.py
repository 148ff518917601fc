"""What can be wrong with an operation on its program's grid, tokens and buffers."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program.data import Buffer, Gemm, task_fault, unknown_buffer
from tlm.program.operations import (
    Collective,
    Engine,
    Indices,
    Load,
    OffChip,
    Operation,
    Reduce,
    Roots,
    Send,
    Transfer,
    Work,
    root_lines,
)

Grid = tuple[int, int]


def operation_fault(
    operation: Operation, grid: Grid, tokens: Mapping[str, object], buffers: Mapping[str, Buffer]
) -> str | None:
    """What is wrong with an operation, if anything is.

    Args:
        operation: The operation.
        grid: Rows and columns of tiles.
        tokens: Known tokens by name.
        buffers: Known buffers by name.
    """
    names = {*operation.takes, *operation.gives}
    if not isinstance(operation, Work):
        names |= {*operation.slots, *operation.arrivals}
    unknown = sorted(names - tokens.keys())
    if unknown:
        return f"unknown token '{unknown[0]}'; known: {', '.join(sorted(tokens))}"
    if isinstance(operation, Work):
        return _work_fault(operation, grid, buffers)
    fault = _transfer_fault(operation) or _data_fault(operation, buffers)
    if fault is not None:
        return fault
    if isinstance(operation, Send):
        return _send_fault(operation, grid)
    if isinstance(operation, OffChip):
        return _offchip_fault(operation, buffers) or _outside(operation.tiles, grid)
    return _collective_fault(operation, grid)


def _transfer_fault(transfer: Transfer) -> str | None:
    if not isinstance(transfer.flits, int | np.integer):
        return f"flits is {transfer.flits!r}; allowed: whole numbers from 1"
    if transfer.flits < 1:
        return f"flits is {transfer.flits}; a transfer has at least 1"
    for here, there, names in (
        ("takes", "slots", {*transfer.takes} & {*transfer.slots}),
        ("gives", "arrivals", {*transfer.gives} & {*transfer.arrivals}),
    ):
        # A tile is a source and a destination of the same operation: which unit would come first?
        if names:
            return f"token '{min(names)}' is among both {here} and {there}"
    return None


def _data_fault(transfer: Transfer, buffers: Mapping[str, Buffer]) -> str | None:
    source, target = transfer.source, transfer.target
    if source is None or target is None:
        if source == target:
            return None
        return f"source '{source}' and target '{target}'; allowed: both or neither"
    fault = unknown_buffer((source, target), buffers)
    if fault:
        return fault
    here, there = buffers[source], buffers[target]
    if (here.shape, here.bits) != (there.shape, there.bits):
        return (
            f"source '{source}' is {here.rows} x {here.columns} of {here.bits} bits, target "
            f"'{target}' {there.rows} x {there.columns} of {there.bits}"
        )
    return None


def _offchip_fault(operation: OffChip, buffers: Mapping[str, Buffer]) -> str | None:
    if operation.source is None or operation.target is None:
        return None
    found = (buffers[operation.source].offchip, buffers[operation.target].offchip)
    loads = isinstance(operation, Load)
    if found == (loads, not loads):
        return None
    where = ["off chip" if offchip else "in the tile" for offchip in found]
    return (
        f"source '{operation.source}' lies {where[0]}, target '{operation.target}' {where[1]}; "
        f"allowed: a {'source' if loads else 'target'} off chip, the other in the tile"
    )


def _work_fault(work: Work, grid: Grid, buffers: Mapping[str, Buffer]) -> str | None:
    if work.engine is Engine.TRANSFER:
        return "engine TRANSFER only moves data; use Send, Multicast or Reduce"
    fault = _cycles_fault(work)
    if fault:
        return fault
    if work.task is not None:
        engine = Engine.MATRIX if isinstance(work.task, Gemm) else Engine.VECTOR
        if work.engine is not engine:
            return f"a task of engine {engine.name} on engine {work.engine.name}"
        fault = task_fault(work.task, buffers)
        if fault:
            return fault
    return _outside(work.tiles, grid)


def _cycles_fault(work: Work) -> str | None:
    cycles = work.cycles
    if isinstance(cycles, int):
        least = cycles
    else:
        expected = (len(work.tiles.rows), len(work.tiles.cols))
        if cycles.dtype.kind not in "iu":
            return f"cycles is of type {cycles.dtype}; allowed: whole numbers"
        if cycles.shape != expected:
            return f"cycles has shape {cycles.shape}; the tile set is {expected}"
        least = int(cycles.min()) if cycles.size else 0
    return f"cycles holds {least}; allowed: 0 or more" if least < 0 else None


def _indices_fault(name: str, indices: Indices) -> str | None:
    if indices.dtype != np.int64 or indices.ndim != 1:
        return (
            f"{name} is of type {indices.dtype} and shape {indices.shape}; "
            "allowed: whole numbers in a row"
        )
    return None


def _send_fault(send: Send, grid: Grid) -> str | None:
    for axis, sources, targets, size in (
        ("rows", send.tiles.rows, send.to_rows, grid[0]),
        ("cols", send.tiles.cols, send.to_cols, grid[1]),
    ):
        fault = _indices_fault(f"to_{axis}", targets)
        if fault:
            return fault
        if len(targets) != len(sources):
            return f"to_{axis} has {len(targets)} entries for {len(sources)} {axis}"
        fault = _targets_fault(targets.tobytes(), size, grid)
        if fault:
            return f"to_{axis} {fault}"
    return _outside(send.tiles, grid)


@lru_cache(256)  # loops send the same way again and again
def _targets_fault(targets: bytes, size: int, grid: Grid) -> str | None:
    """What is wrong with the rows, or columns, of destinations, of so many."""
    places = np.frombuffer(targets, dtype=np.int64)
    if not len(places):
        return None
    if not 0 <= places.min() <= places.max() < size:
        return f"leaves the grid of {grid[0]} x {grid[1]} tiles"
    return "names a destination twice" if np.bincount(places).max() > 1 else None


def _collective_fault(collective: Collective, grid: Grid) -> str | None:
    fault = _roots_fault(collective, grid)
    if fault:
        return fault
    segment = collective.segment
    if not len(segment):
        return "the segment is empty"
    if segment.step < 1:
        return f"the segment has a step of {segment.step}; allowed: 1 or more"
    lines = root_lines(collective)[0]
    by_row = collective.along == "row"
    return _outside(TileSet(lines, segment) if by_row else TileSet(segment, lines), grid) or (
        _reduce_fault(collective) if isinstance(collective, Reduce) else None
    )


def _roots_fault(collective: Collective, grid: Grid) -> str | None:
    roots = collective.roots
    if isinstance(roots, TileSet):
        across = roots.cols if collective.along == "row" else roots.rows
        if len(across) != 1:
            return f"{len(across)} roots share a {collective.along}; allowed: 1"
        return _outside(roots, grid)
    return _places_fault(roots, collective.along, grid)


def _places_fault(roots: Roots, along: str, grid: Grid) -> str | None:
    fault = _indices_fault("places", roots.places)
    if fault:
        return fault
    if len(roots.places) != len(roots.lines):
        return f"roots has {len(roots.places)} places for {len(roots.lines)} {along}s"
    size = grid[1] if along == "row" else grid[0]
    if not len(roots.lines) or not 0 <= roots.places.min() <= roots.places.max() < size:
        return f"roots leave the grid of {grid[0]} x {grid[1]} tiles"
    return None


def _reduce_fault(reduce: Reduce) -> str | None:
    if reduce.operation not in ("sum", "maximum"):
        return f"unknown reduction '{reduce.operation}'; known: sum, maximum"
    others = set(reduce.segment) - {*reduce.neutral} if reduce.neutral else reduce.segment
    if not others or not {*reduce.neutral} <= {*reduce.segment}:
        return f"neutral is {list(reduce.neutral)}; allowed: some of the segment, but not all"
    return None


def _outside(tiles: TileSet, grid: Grid) -> str | None:
    for indices, size in ((tiles.rows, grid[0]), (tiles.cols, grid[1])):
        ends = (indices[0], indices[-1]) if len(indices) else (-1, -1)
        if min(ends) < 0 or max(ends) >= size:
            return f"tiles {tiles} on a grid of {grid[0]} x {grid[1]}"
    return None
