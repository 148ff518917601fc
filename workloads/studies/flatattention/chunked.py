"""FlatAttention of a latent cache, whose depth comes in chunks: what the paper's authors run.

Tiles work in groups as `flat_attention` has them. A group has all rows and keys of a request under
way at once, in slices of 128 x 128. Of Q and of the latent keys a tile then has room for some
chunks of the depth alone, so that products go chunk by chunk:

1. scores: for each chunk of Q and K^T, the product is added to the scores;
2. a softmax over all keys of a row at once, with nothing to correct;
3. output: for each chunk of the latent again, now as V, the product is a whole chunk of the output.
   It comes together along the rows of a group, and goes to off-chip memory.

The latent is read twice. Two requests take turns: one's softmax is beside the other's products.

Sources: FlatAttention, section V-B, for slices and groups, and III-C for the turns. The text says
nothing of chunks. They are those of its authors' public simulator SoftHier, and so is the order of
transfers. A chunk is asked for, waited for and sent on, and only then is the next one asked for.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tlm.program import Engine, Gemm, Load, Operation, Program, Store, Token, Work
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.attention.core import in_place
from workloads.kernels.attention.shape import row_blocks
from workloads.kernels.parts.inlets import outlet_tokens, store_totals
from workloads.kernels.parts.passes import Factor, Passes
from workloads.kernels.vector.softmax import NEGATIVE
from workloads.studies.flatattention.chunked_plan import TURNS, ChunkedPlan, Phase, buffers_of

_ONE_BITS = 16
"""An exponential of one is 2 to this, as in `flat_attention`."""


def chunked_attention(plan: ChunkedPlan) -> Program:
    """Program of all requests: chunk c of stream i's output is in ``o.out.i.c``."""
    return Program(
        plan.place.rows, plan.place.cols, _tokens(plan), _Steps(plan).operations, buffers_of(plan)
    )


def _name(plan: ChunkedPlan, name: str, phase: Phase) -> str:
    """The buffer of a chunk, of which a narrower one takes a part."""
    whole = f"{name}.{phase.slot}"
    return whole if phase.width == plan.chunk else f"{whole}.narrow"


def _tokens(plan: ChunkedPlan) -> dict[str, Token]:
    tokens = outlet_tokens() | {"top.there": Token(), "sum.there": Token()}
    for reduction in (*plan.flat.core.maximum[:1], *plan.flat.core.total[:1]):
        tokens |= reduction.tokens()
    tokens |= plan.flat.outputs(plan.flat.groups, 0)[0].tokens()
    for name in ("q", "k", "v"):
        for slot in range(plan.held):
            tokens |= {f"{name}.there.{slot}": Token(), f"{name}.in.{slot}": Token()}
            tokens[f"{name}.free.{slot}"] = Token(initial=1)
    for state in range(TURNS):
        tokens |= {f"{name}.there.{state}": Token() for name in ("s", "p", "o")}
        tokens |= {f"{name}.free.{state}": Token(initial=1) for name in ("s", "p")}
        tokens[f"o.{state}.left"] = Token(initial=1)
    return tokens


def beside(phases: list[Phase]) -> dict[int, list[tuple[int, bool]]]:
    """Behind which products the maxima of a stream's rows come together, and its sums (True).

    As in SoftHier: behind the first and the third product after its scores, or before its output.
    """
    found: dict[int, list[tuple[int, bool]]] = {}
    for number, phase in enumerate(phases):
        if phase.last and not phase.values:
            output = next(
                at for at, one in enumerate(phases) if one.values and one.stream == phase.stream
            )
            for later, sums in ((1, False), (3, True)):
                at = min(number + later, output - 1)
                found.setdefault(at, []).append((phase.stream, sums))
    return found


class _Steps:
    """Operations of all tiles.

    Args:
        plan: What to do.
    """

    def __init__(self, plan: ChunkedPlan) -> None:
        self._plan, self._flat, self._groups = plan, plan.flat, plan.flat.groups
        buffers = buffers_of(plan)
        self._softmax = Passes(self._groups.tiles, plan.place, buffers, "softmax")
        self._output = Passes(self._groups.tiles, plan.place, buffers, "output")

    def operations(self) -> Iterator[Operation]:
        """One product after the other, with what is beside it."""
        phases, held = self._plan.phases, self._plan.held
        when = beside(phases)
        for number in range(held - 1):
            yield from self._ask(number)
        yield from self._send(0)
        for number, phase in enumerate(phases):
            yield from self._ask(number + held - 1)
            yield from self._send(number + 1)
            yield self._product(phase)
            for stream, sums in when.get(number, ()):
                yield from self._sums(stream) if sums else self._maxima(stream)
            if number and phases[number - 1].values:
                yield from self._finish(phases[number - 1])
        yield from self._finish(phases[-1])

    def _brought(self, number: int) -> Iterator[tuple[str, Phase]]:
        phases = self._plan.phases
        for phase in phases[number : number + 1]:
            for name in ("v",) if phase.values else ("q", "k"):
                yield name, phase

    def _flits(self, name: str, phase: Phase) -> int:
        return self._plan.of_width(phase.width).flits(name)

    def _ask(self, number: int) -> Iterator[Operation]:
        """Tiles of the diagonal load a chunk, if there is such, when its buffer is free."""
        if self._plan.place.offchip is None:
            return
        for name, phase in self._brought(number):
            free = f"{name}.free.{phase.slot}"
            for root in self._groups.roots(name):
                # The network writes to the root's buffer, too: it has room for that copy.
                yield Load(
                    root,
                    self._flits(name, phase),
                    takes=(free,),
                    arrivals=(f"{name}.in.{phase.slot}", free),
                    source=f"{name}.own.{phase.stream}.{phase.chunk}",
                    target=_name(self._plan, name, phase),
                    label=name,
                )

    def _send(self, number: int) -> Iterator[Operation]:
        """They send it on to all tiles of their lines when it has come."""
        for name, phase in self._brought(number):
            target = _name(self._plan, name, phase)
            how: dict[str, Any] = {"source": f"{name}.own.{phase.stream}.{phase.chunk}"}
            if self._plan.place.offchip is not None:
                how = {"source": target, "takes": (f"{name}.in.{phase.slot}",)}
            for each in self._flat.broadcasts(self._groups, name, phase.slot):
                sent = replace(each, target=target, flits=self._flits(name, phase), **how)
                yield from sent.operations()

    def _product(self, phase: Phase) -> Work:
        plan, state, slot, first = self._plan, phase.state, phase.slot, phase.chunk == 0
        if phase.values:
            out = phase.out
            freed = f"s.free.{state}" if in_place(plan.place) else f"p.free.{state}"
            task = Gemm(f"p.{state}", _name(plan, "v", phase), f"o.{out}")
            takes = (f"v.there.{slot}", f"o.{out}.left", *((f"p.there.{state}",) * first))
            gives = (f"v.free.{slot}", f"o.there.{out}", *((freed,) * phase.last))
        else:
            q, k = (_name(plan, name, phase) for name in ("q", "k"))
            task = Gemm(q, k, f"s.{state}", accumulate=not first)
            takes = (f"q.there.{slot}", f"k.there.{slot}", *((f"s.free.{state}",) * first))
            gives = (f"q.free.{slot}", f"k.free.{slot}", *((f"s.there.{state}",) * phase.last))
        return Work(
            Engine.MATRIX, self._groups.tiles, plan.product_cycles(phase), takes=takes, gives=gives,
            task=task, label="output" if phase.values else "scores",
        )  # fmt: skip

    def _maxima(self, stream: int) -> Iterator[Operation]:
        state, passes, maximum = stream % TURNS, self._softmax, self._flat.core.maximum
        give = ("top.there",) if maximum else ()
        yield passes("row-maximum", f"s.{state}", "top", takes=(f"s.there.{state}",), gives=give)
        for reduction in maximum:
            yield from reduction.all_reduce()
        yield passes("scale", "top", "negative", factor=NEGATIVE, takes=give)
        s = f"s.{state}"
        yield passes("add", s, s, "negative")
        yield passes("scale", s, s, factor=self._flat.exponent)
        yield passes("exp", s, s)

    def _sums(self, stream: int) -> Iterator[Operation]:
        state, passes, total = stream % TURNS, self._softmax, self._flat.core.total
        s, own, give = f"s.{state}", in_place(passes.place), ("sum.there",) if total else ()
        yield passes("row-sum", s, "sum", gives=give)
        for reduction in total:
            yield from reduction.all_reduce()
        yield passes("scale", "sum", f"total.{state}", takes=give)
        one = Factor(2 ** (passes.place.element_bits - 1) - 1, _ONE_BITS)
        yield passes(
            "quantize", s, f"p.{state}", factor=one, takes=() if own else (f"p.free.{state}",),
            gives=(f"p.there.{state}", *(() if own else (f"s.free.{state}",))),
        )  # fmt: skip
        out = f"total.out.{stream}"
        if passes.place.offchip is None:
            yield self._output("scale", f"total.{state}", out)
            return
        for root in self._groups.roots("q"):
            there = replace(self._output, tiles=root)
            yield from store_totals(there, state, out, self._flat.flits("total"))

    def _finish(self, phase: Phase) -> Iterator[Operation]:
        """A chunk of the output comes together at the diagonal, which stores it."""
        outputs = self._flat.outputs(self._groups, phase.out)
        for each in outputs:
            yield from each.reduce()
        there, free = (f"{outputs[0].name}.total",), (outputs[0].released,)
        source, target = outputs[0].result, f"o.out.{phase.stream}.{phase.chunk}"
        for root in self._groups.roots("q"):
            passes = replace(self._output, tiles=root)
            if passes.place.offchip is None:
                yield passes("scale", source, target, takes=there, gives=free)
                continue
            yield Store(
                root, self._flat.flits("o"), takes=there, gives=free, source=source,
                target=target, label=passes.label,
            )  # fmt: skip


def put(plan: ChunkedPlan, memory: TileBlocks, q: Integers, k: Integers) -> None:
    """Put Q and the latent keys where the program expects them.

    Args:
        plan: The plan.
        memory: Of the program.
        q: Shape (heads, rows, depth).
        k: Shape (heads, keys, depth): values are the first elements.
    """
    flat, (down, across) = plan.flat, plan.flat.group
    for stream, (rows, cols), head, block in _places(plan):
        for phase in plan.phases:
            if phase.stream != stream:
                continue
            start, number = phase.chunk * plan.chunk, f"{stream}.{phase.chunk}"
            depth = slice(start, start + phase.width)
            keys = row_blocks(k[head][:, depth], across, 1, flat.block.keys)[0]
            if phase.values:
                memory[f"v.own.{number}"][rows, cols] = keys[None]
                continue
            memory[f"k.own.{number}"][rows, cols] = keys.swapaxes(1, 2)[None]
            parts = row_blocks(q[head][:, depth], down, flat.q_blocks, flat.block.rows)[block]
            memory[f"q.own.{number}"][rows, cols] = parts[:, None]


def result(plan: ChunkedPlan, memory: TileBlocks) -> tuple[Integers, Integers]:
    """Output, shape (heads, rows, depth of V), and sums of rows, shape (heads, rows)."""
    flat, shape, tall = plan.flat, plan.shape, plan.flat.group[0] * plan.flat.block.rows
    roots, first = np.array(flat.groups.diagonals("q")), flat.tiles.rows.start
    output = np.zeros((shape.heads, flat.q_blocks * tall, shape.v_depth), dtype=np.int64)
    totals = np.zeros((shape.heads, flat.q_blocks * tall), dtype=np.int64)
    for stream, (rows, cols), head, block in _places(plan):
        own = cols.start + roots[(rows.start - first) // flat.group[0]]
        tiles, here = (
            (np.arange(rows.start, rows.stop), own),
            slice(block * tall, (block + 1) * tall),
        )
        for chunk in range(len(plan.widths[1])):
            depth = slice(chunk * plan.chunk, (chunk + 1) * plan.chunk)
            found = memory[f"o.out.{stream}.{chunk}"][tiles]
            output[head, here, depth] = found.reshape(tall, -1)
        totals[head, here] = memory[f"total.out.{stream}"][tiles].reshape(tall)
    return output[:, : shape.rows], totals[:, : shape.rows]


def _places(plan: ChunkedPlan) -> Iterator[tuple[int, tuple[slice, slice], int, int]]:
    """Of every stream its number in its group, that group, its head and its block of rows."""
    (rows, cols), groups = plan.flat.group, plan.flat.groups
    places = ((down, across) for down in groups.down for across in groups.across)
    for (down, across), own in zip(places, plan.flat.dealt, strict=True):
        tiles = slice(down * rows, (down + 1) * rows), slice(across * cols, (across + 1) * cols)
        for stream, (head, block) in enumerate(own):
            yield stream, tiles, head, block
