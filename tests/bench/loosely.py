"""Speed of the loosely-timed engine: kernels from 16x16 to 921x921 tiles, and against `at`."""

import resource
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import isqrt

import numpy as np

from tests.bench.measure import Row, cpu_seconds, ratios
from tests.bench.network import Note
from tlm.engines.at import run_at
from tlm.engines.lt import run_lt
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Multicast, Operation, Program, Send, Token, Work
from workloads.kernels.gemm.mesh_gemm import mesh_gemm
from workloads.kernels.gemm.plan import GemmPlan

_TARGETS = {720: 2.0, 921: 4.0}  # CPU seconds of MeshGEMM with jitter
_ALL_REDUCES_PER_S = 100.0
_RACE_SIDE = 64
_GAIN = 100.0
_LAYERS = 32
_DECODE_SIDE = 660
_DECODE_S = 5.0
# Flits of a layer's all-reduces: fp16 words of a tile (1, 3d, s, 1, 1, d, d, 1, 2f, d), with d, s
# and f its shares of Llama3-8B's 4096, 4096 tokens and 14336, two to a flit of 4 bytes.
_DECODE_FLITS = (1, 11, 4, 1, 1, 4, 4, 1, 22, 4)


def jittered(side: int) -> Program:
    """MeshGEMM whose block products differ by up to a seventh from tile to tile."""
    program = mesh_gemm(GemmPlan(side, side, (8, 8, 8), 300, 128, 128))
    cycles = np.random.default_rng(side).integers(280, 320, (side, side))
    cycles.setflags(write=False)

    def build() -> Iterator[Operation]:
        for operation in program.build():
            if isinstance(operation, Work) and operation.engine is Engine.MATRIX:
                operation = replace(operation, cycles=cycles)
            yield operation

    return replace(program, build=build)


def two_level(side: int, along: str, flits: int) -> Iterator[Operation]:
    """An all-reduce of every row (column): chains in groups, one of their roots, a multicast."""
    group = isqrt(side)
    while 0 < side % group <= group // 2:  # the last group needs a root too
        group -= 1
    middle = group // 2
    groups = len(range(middle, side, group))
    root = groups // 2 * group + middle
    for near in (range(middle), range(group - 1, middle, -1)):
        for place in near:
            closer = place + (1 if place < middle else -1)
            yield from _pass_on(side, along, range(place, side, group), closer - place, flits)
    for near in (range(groups // 2), range(groups - 1, groups // 2, -1)):
        for place in near:
            tile = place * group + middle
            hop = group if tile < root else -group
            yield from _pass_on(side, along, range(tile, tile + 1), hop, flits)
    lines = range(side)
    yield Multicast(
        _tiles(side, along, range(root, root + 1)),
        "row" if along == "row" else "column",
        lines,
        flits,
        slots=("free",),
        arrivals=("result",),
    )
    everywhere = TileSet(lines, lines)
    yield Work(Engine.CONTROL, everywhere, 0, takes=("result",), gives=("free",))


def _pass_on(side: int, along: str, places: range, hop: int, flits: int) -> Iterator[Operation]:
    sources = places if places[-1] + hop < side else places[:-1]
    targets = range(sources.start + hop, sources.stop + hop, sources.step)
    lines, moved = np.arange(side), np.arange(targets.start, targets.stop, targets.step)
    to = (lines, moved) if along == "row" else (moved, lines)
    tiles = _tiles(side, along, sources)
    yield Send(tiles, *to, flits, slots=("place",), arrivals=("part",))
    adders = _tiles(side, along, targets)
    yield Work(Engine.VECTOR, adders, flits, takes=("part",), gives=("place",))


def _tiles(side: int, along: str, places: range) -> TileSet:
    return TileSet(range(side), places) if along == "row" else TileSet(places, range(side))


def all_reduces(side: int, repeats: int) -> Program:
    """All-reduces along the columns, one after the other."""

    def build() -> Iterator[Operation]:
        for _ in range(repeats):
            yield from two_level(side, "column", 4)

    return Program(side, side, _reduce_tokens(), build)


def decode(side: int, layers: int) -> Program:
    """Layers of a decoder for one token: products on the tiles, and all-reduces along both axes."""
    cycles = np.random.default_rng(side).integers(150, 170, (side, side))
    cycles.setflags(write=False)

    def build() -> Iterator[Operation]:
        everywhere = TileSet(range(side), range(side))
        for _ in range(layers):
            for number, flits in enumerate(_DECODE_FLITS):
                yield Work(Engine.MATRIX, everywhere, cycles, takes=("go",), gives=("go",))
                yield from two_level(side, "row" if number % 2 else "column", flits)

    return Program(side, side, _reduce_tokens() | {"go": Token(initial=1)}, build)


def _reduce_tokens() -> dict[str, Token]:
    there = Token(initial=1)
    return {"place": there, "free": there, "part": Token(), "result": Token()}


def _seconds(program: Program, runs: int, done: Note) -> tuple[float, ...]:
    found = []
    for _ in range(runs):
        found.append(cpu_seconds(partial(run_lt, program, rtl_timing())))
        done()
    return tuple(found)


def loosely_rows(sides: tuple[int, ...], runs: int, done: Note) -> list[Row]:
    """The curve over sizes, all-reduces, a decoder, the gain over `at`, and memory."""
    for warm_up in (jittered(4), all_reduces(4, 1), decode(4, 1)):
        run_lt(warm_up, rtl_timing())
    rows = []
    for side in sides:
        seconds = _seconds(jittered(side), runs, done)
        name = f"lt, MeshGEMM {side}x{side}, jitter"
        rows.append(Row(name, "CPU-s", seconds, _TARGETS.get(side)))
        per_step = tuple(s / side**3 * 1e9 for s in seconds)
        rows.append(Row(name, "ns a tile and step", per_step))
    # As many as are wanted in a CPU-second; beginning and ending a run is a fifth of ten.
    largest, repeats = max(sides), 100
    rows.append(
        Row(
            f"lt, {repeats} two-level all-reduces on {largest}x{largest}",
            "all-reduces/CPU-s",
            tuple(repeats / s for s in _seconds(all_reduces(largest, repeats), runs, done)),
            _ALL_REDUCES_PER_S if largest == 921 else None,
        )
    )
    side, layers = min(_DECODE_SIDE, largest), _LAYERS if largest > _DECODE_SIDE else 1
    rows.append(
        Row(
            f"lt, {layers} layers of a decoder, one token, {side}x{side}",
            "CPU-s",
            _seconds(decode(side, layers), runs, done),
            _DECODE_S,
        )
    )
    rows.append(_gain(min(_RACE_SIDE, largest), runs, done))
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows.append(Row("lt, all of these", "GB at most", (peak_gb,)))
    return rows


def _gain(side: int, runs: int, done: Note) -> Row:
    program, timing = jittered(side), rtl_timing()
    mesh = HandshakeMesh(side, side, timing)
    at_s = (cpu_seconds(partial(run_at, program, timing, mesh)),) * runs
    gains = ratios(at_s, _seconds(program, runs, done))
    return Row(f"lt, MeshGEMM {side}x{side}", "x at", gains, _GAIN if side == _RACE_SIDE else None)
