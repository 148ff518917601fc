"""A product whose operands stream from off-chip memory through the edge of the grid.

SUMMA with the sums at rest: the tile on the diagonal of a line loads a block and multicasts it to
those that share it. Two blocks of each operand are in place or under way, two more come from
memory. A block that one tile alone needs is loaded straight into place. A block of C that is done
goes to off-chip memory while the next one is computed: a part of the tiles in each step, so that
loads are not held up. It goes as sums: how to narrow them is for the next kernel to say, which
knows its scale, and where operands are floating-point sums are as wide as they.

With K cut, partial blocks are first summed in the network, or by messages. Weights that are kept in
the tiles (`StreamPlan.resident`) do not come: blocks of A alone stream past them.

Sources: R. A. van de Geijn and J. Watts, "SUMMA: scalable universal matrix multiplication
algorithm", 1997; FlatAttention, section III-E, whose diagonal tiles fetch and multicast panels.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tlm.interconnect.packets import TileSet
from tlm.program import (
    Buffer,
    Engine,
    Gemm,
    Load,
    Multicast,
    Operation,
    Program,
    Send,
    Store,
    Token,
    Work,
)
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm.stream_plan import StreamPlan
from workloads.kernels.parts.inlets import Inlet, inlet_tokens
from workloads.kernels.parts.passes import Passes


@dataclass(frozen=True, slots=True)
class _Step:
    """A block product: its number, that of its pass, and what it is the product of."""

    number: int
    turn: int
    first: bool
    last: bool
    slot: int
    sums: int
    panels: dict[str, int]


def stream_gemm(plan: StreamPlan) -> Program:
    """Program of all products; block i of a tile's C is in ``c.out.i``.

    Labels: ``a`` and ``b`` bring operands, ``c`` is a block product, ``result`` stores one.
    """
    stream = _Stream(plan)
    return Program(
        plan.place.rows, plan.place.cols, stream.tokens(), stream.operations, stream.buffers()
    )


class _Stream:
    """The operations of a plan."""

    def __init__(self, plan: StreamPlan) -> None:
        self._plan = plan
        self._memory = plan.place.offchip is not None
        self._tiles = TileSet(range(plan.place.rows), range(plan.place.cols))
        self._steps = list(steps(plan))
        self._senders = {name: list(plan.senders(name)) for name in "ab"}
        self._inlets = {
            name: Inlet(
                name,
                self._senders[name],
                [f"{name}.own.{step.panels[name]}" for step in self._steps],
                plan.flits[name],
                ahead=True,
                buffers=plan.slots,
            )
            for name in "ab"
            if self._memory and plan.shared[name]
        }
        self._reductions = {
            slot: plan.reductions(slot) if plan.reduced else [] for slot in range(plan.sums)
        }

    @property
    def _leaves(self) -> bool:
        """Whether a block of C goes elsewhere when it is done."""
        return self._memory or self._plan.reduced

    def tokens(self) -> dict[str, Token]:
        """All of them."""
        tokens = inlet_tokens(list(self._inlets), self._plan.slots)
        for slot in range(self._plan.slots):
            for name in self._plan.coming:
                tokens |= {f"{name}.there.{slot}": Token(), f"{name}.free.{slot}": Token(initial=1)}
        for slot, reductions in self._reductions.items():
            tokens |= reductions[0].tokens() if reductions else {}
            if self._leaves:
                tokens |= {f"c.there.{slot}": Token(), f"c.{slot}.left": Token(initial=1)}
        return tokens

    def buffers(self) -> dict[str, Buffer]:
        """Blocks in the tile, and those off chip."""
        plan, panels = self._plan, self._plan.panels()
        buffers = {f"{n}.{slot}": panels[n] for slot in range(plan.slots) for n in plan.coming}
        for name, inlet in self._inlets.items():
            buffers |= {inlet.buffer(number): panels[name] for number in range(plan.slots)}
        if self._leaves:
            buffers |= {f"c.{slot}": panels["c"] for slot in range(plan.sums)}
        for reductions in self._reductions.values():
            buffers |= reductions[0].buffers(panels["c"]) if reductions else {}
        if plan.weight_bits is not None:
            buffers["b.wide"] = panels["b.wide"]
        for name in "ab":
            numbers = sorted({step.panels[name] for step in self._steps})
            own = replace(panels[name], offchip=name in plan.coming)
            buffers |= {f"{name}.own.{number}": own for number in numbers}
        out = replace(panels["c"], offchip=True)
        return buffers | {f"c.out.{turn}": out for turn in range(plan.passes)}

    def operations(self) -> Iterator[Operation]:
        """In program order: what leaves goes behind what brings the next operands.

        Sums of passes of one step go before it: their buffer is waited for, and the next operands
        wait for the end of a product.
        """
        leaving: list[tuple[int, Operation]] = []
        ahead = self._plan.reduced and self._plan.steps == 1
        yield from self._ask(-1)
        yield from self._ask(0)
        for step in self._steps:
            for name in "ab":
                if self._plan.shared[name]:
                    yield from self._hand_on(name, step)
            now = [operation for when, operation in leaving if when == step.number]
            leaving = [each for each in leaving if each[0] > step.number]
            yield from (each for each in now if ahead and isinstance(each, Store))
            yield from self._ask(step.number + 1)
            yield from (each for each in now if not (ahead and isinstance(each, Store)))
            yield self._product(step)
            if step.last and self._leaves:
                leaving += self._results(step)
        yield from (operation for _, operation in sorted(leaving, key=lambda each: each[0]))

    def _ask(self, number: int) -> Iterator[Operation]:
        """For a step's blocks that one tile needs, and those of the next one that are handed on."""
        for name in self._plan.coming:
            if name in self._inlets:
                yield from self._inlets[name].ask(number + 1)
            elif not self._plan.shared[name] and 0 <= number < len(self._steps):
                yield self._bring(name, self._steps[number])

    def _bring(self, name: str, step: _Step) -> Operation:
        """A block straight into place."""
        plan, flits = self._plan, self._plan.flits[name]
        free, there = (f"{name}.free.{step.slot}",), (f"{name}.there.{step.slot}",)
        source, to = f"{name}.own.{step.panels[name]}", f"{name}.{step.slot}"
        if self._memory:
            return Load(
                self._tiles, flits, takes=free, arrivals=there, source=source, target=to, label=name
            )
        rows, cols = np.arange(plan.place.rows), np.arange(plan.place.cols)
        return Send(
            self._tiles, rows, cols, flits, slots=free, arrivals=there, source=source, target=to,
            label=name,
        )  # fmt: skip

    def _hand_on(self, name: str, step: _Step) -> Iterator[Operation]:
        """A block to all that share it."""
        inlet, source = self._inlets.get(name), f"{name}.own.{step.panels[name]}"
        buffer = source if inlet is None else inlet.buffer(step.number)
        for sharing in self._plan.sharing(name):
            yield Multicast(
                self._plan.roots(name, sharing),
                "row" if name == "a" else "column",
                sharing.segment,
                self._plan.flits[name],
                takes=(f"{buffer}.there",) if inlet else (),
                gives=(f"{buffer}.free",) if inlet else (),
                slots=(f"{name}.free.{step.slot}",),
                arrivals=(f"{name}.there.{step.slot}",),
                source=buffer,
                target=f"{name}.{step.slot}",
                label=name,
            )

    def _product(self, step: _Step) -> Work:
        plan, slot = self._plan, step.slot
        c = f"c.{step.sums}" if self._leaves else f"c.out.{step.turn}"
        begin = (f"c.{step.sums}.left",) if self._leaves and step.first else ()
        end = (f"c.there.{step.sums}",) if self._leaves and step.last else ()
        b = f"b.own.{step.panels['b']}" if plan.resident else f"b.{slot}"
        there, free = ([f"{n}.{what}.{slot}" for n in plan.coming] for what in ("there", "free"))
        task = Gemm(f"a.{slot}", b, c, accumulate=not step.first)
        return Work(
            Engine.MATRIX,
            self._tiles,
            plan.step_cycles,
            takes=(*there, *begin),
            gives=(*free, *end),
            task=task if plan.weight_bits is None else None,
            label="c",
        )

    def _results(self, step: _Step) -> Iterator[tuple[int, Operation]]:
        """What becomes of a block of C, each operation behind the operands of which step."""
        plan, following = self._plan, step.number + 1
        reductions = self._reductions[step.sums]
        for reduction in reductions:
            for operation in reduction.reduce():
                yield following, operation
        value, there, free = f"c.{step.sums}", f"c.there.{step.sums}", f"c.{step.sums}.left"
        if reductions:
            value, free = reductions[0].result, reductions[0].released
            there, following = f"c.{step.sums}.total", following + 1
        sets = plan.results()
        for number, tiles in enumerate(sets):
            when = following + number * plan.steps // len(sets)
            out = f"c.out.{step.turn}"
            if self._memory:
                yield when, Store(
                    tiles, plan.flits["c"], takes=(there,), gives=(free,), source=value,
                    target=out, label="result",
                )  # fmt: skip
                continue
            passes = Passes(tiles, plan.place, {value: plan.panels()["c"]}, "result")
            yield when, passes("scale", value, out, takes=(there,), gives=(free,))


def steps(plan: StreamPlan) -> Iterator[_Step]:
    """Block products in order: of a group row by row of C's blocks, each along K."""
    high, wide, deep = plan.blocks
    for turn in range(plan.passes):
        group, block = divmod(turn, high * wide)
        row, col = divmod(block, wide)
        for depth in range(deep):
            number = turn * deep + depth
            yield _Step(
                number=number,
                turn=turn,
                first=depth == 0,
                last=depth == deep - 1,
                slot=number % plan.slots,
                sums=turn % plan.sums,
                panels={
                    "a": (group * high + row) * deep + depth,
                    "b": (group * wide + col) * deep + depth,
                },
            )


def put(plan: StreamPlan, memory: TileBlocks, a: Integers, b: Integers) -> None:
    """Put A and B where the program expects them.

    Args:
        plan: The plan.
        memory: Of the program.
        a: Shape (groups, M, K), or (M, K) of one product.
        b: Shape (groups, K, N), or (K, N).
    """
    (high, wide, deep), (m, n, k) = plan.blocks, plan.block
    of_m, of_n, of_k = (plan.parts_of(dimension) for dimension in "mnk")
    parts_m, parts_n, parts_k = plan.cut.parts
    a_blocks = _cut(a, (plan.groups, parts_m, high, m, parts_k, deep, k))
    b_blocks = _cut(b, (plan.groups, parts_k, deep, k, parts_n, wide, n))
    for group in range(plan.groups):
        for depth in range(deep):
            for row in range(high):
                own = a_blocks[group, :, row, :, :, depth][of_m, :, of_k]
                memory[f"a.own.{(group * high + row) * deep + depth}"][:] = own
            for col in range(wide):
                own = b_blocks[group, :, depth, :, :, col][of_k, :, of_n]
                memory[f"b.own.{(group * wide + col) * deep + depth}"][:] = own


def result(plan: StreamPlan, memory: TileBlocks) -> Integers:
    """C, shape (groups, M, N)."""
    (high, wide, _), (m, n, _) = plan.blocks, plan.block
    parts_m, parts_n, _ = plan.cut.parts
    of_m, of_n = plan.parts_of("m"), plan.parts_of("n")
    whole = np.zeros((plan.groups, parts_m, high, m, parts_n, wide, n), dtype=np.int64)
    for turn in range(plan.passes):
        group, block = divmod(turn, high * wide)
        row, col = divmod(block, wide)
        for tiles in plan.results():
            at = np.ix_(np.array(tiles.rows), np.array(tiles.cols))
            own = memory[f"c.out.{turn}"][at]
            whole[group, of_m[at], row, :, of_n[at], col] = own
    size_m, size_n, _ = plan.shape
    padded = whole.reshape(plan.groups, parts_m * high * m, parts_n * wide * n)
    return padded[:, :size_m, :size_n]


def _cut(matrix: Integers, shape: tuple[int, ...]) -> Integers:
    """Matrices (of a group) as blocks of parts, padded with zeros."""
    groups, rows, columns = shape[0], int(np.prod(shape[1:4])), int(np.prod(shape[4:]))
    padded = np.zeros((groups, rows, columns), dtype=np.int64)
    each = matrix.reshape(groups, *matrix.shape[-2:])
    padded[:, : each.shape[1], : each.shape[2]] = each
    return padded.reshape(shape)
