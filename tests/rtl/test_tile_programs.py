"""Kernels on tiles in Verilog: the same blocks, bit for bit, as by the functional interpreter."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from cosim.tiles.descriptors import Transfer
from cosim.tiles.lowering import lower, run_lowered
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from tlm.compute.vector_mac import VectorMac
from tlm.compute.vector_unit import VectorUnit
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Buffer, Engine, Gemm, Multicast, Program, Send, Token, Vector, Work
from tlm.program.arithmetic import Integers
from tlm.program.functional import TileBlocks, run_functional
from workloads.kernels.attention import flat_attention
from workloads.kernels.attention.flat_search import plan_flat
from workloads.kernels.attention.shape import AttentionShape
from workloads.kernels.gemm import (
    allgather_gemm,
    cannon,
    mesh_gemm,
    mesh_gemm_t,
    stream_gemm,
    summa,
)
from workloads.kernels.gemm.plan import GemmPlan, plan_gemm
from workloads.kernels.gemm.stream_plan import GridCut, StreamPlan
from workloads.kernels.gemv import plan as gemv
from workloads.kernels.gemv import ring_gemv
from workloads.kernels.gemv.plan import plan_gemv
from workloads.kernels.vector import relayout, softmax
from workloads.kernels.vector.relayout import plan_relayout
from workloads.kernels.vector.softmax import plan_softmax
from workloads.machine.place import Place

pytestmark = pytest.mark.rtl

Put = Callable[[GemmPlan, TileBlocks, Integers, Integers], None]


@dataclass(frozen=True)
class Kernel:
    """A product: how its program is built, where its operands go."""

    build: Callable[[GemmPlan], Program]
    put: Put
    transposed: bool = False
    method: str = "network"


KERNELS = {
    "mesh-gemm": Kernel(mesh_gemm.mesh_gemm, mesh_gemm.put),
    "mesh-gemm-t": Kernel(mesh_gemm_t.mesh_gemm_t, mesh_gemm_t.put, transposed=True),
    "cannon": Kernel(cannon.cannon, cannon.put),
    "summa": Kernel(summa.summa, summa.put),
    "summa by a tree": Kernel(summa.summa, summa.put, method="tree"),
    "summa in turn": Kernel(summa.summa, summa.put, method="sequential"),
    "allgather-gemm": Kernel(allgather_gemm.allgather_gemm, allgather_gemm.put),
}


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(TileModel(2, 2)) as machine:
        yield machine


def place_on(model: TileModel) -> Place:
    """The machine for planners; cycles of work are the Verilog's own."""
    bits = model.operand_bits
    timing = NocTiming(1, 1, 4, 1, flit_bytes=8)
    return Place(model.rows, model.cols, timing, bits, 32, VectorMac(1, 1, 0), VectorUnit(2, 3))


def hold_equal(
    machine: TileMachine, program: Program, put: Callable[[TileBlocks], None]
) -> TileBlocks:
    """Run a program both ways on the same blocks; all buffers of all tiles must be equal."""
    by_rtl, wanted = TileBlocks(program, 3), TileBlocks(program, 3)
    put(by_rtl)
    put(wanted)
    run_functional(program, wanted)
    run_lowered(lower(program, machine.model), by_rtl, machine)
    for name in program.buffers:
        np.testing.assert_array_equal(by_rtl[name], wanted[name], err_msg=name)
    return by_rtl


def run_kernel(machine: TileMachine, name: str, blocks: int, seed: int = 0) -> None:
    """A product of ``blocks`` array-sized blocks a tile and dimension."""
    model, kernel = machine.model, KERNELS[name]
    size = blocks * model.array_size * int(np.lcm(model.rows, model.cols))
    plan = replace(plan_gemm((size, size, size), place_on(model)), method=kernel.method)
    edge = 2 ** (model.operand_bits - 1)
    a, b = np.random.default_rng(seed).integers(-edge, edge, (2, size, size))
    memory = hold_equal(machine, kernel.build(plan), lambda at: kernel.put(plan, at, a, b))
    product = memory["c"].swapaxes(1, 2).reshape(size, size)
    wrapped = (a @ (b.T if kernel.transposed else b) + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(product, wrapped)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("blocks", [1, 3])
def test_products_on_four_tiles(machine: TileMachine, name: str, blocks: int) -> None:
    run_kernel(machine, name, blocks)


@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize("cut", [(2, 1, 1, 1, 2, 1), (1, 1, 2, 1, 2, 1), (2, 1, 1, 1, 1, 2)])
def test_streaming_products(
    machine: TileMachine, cut: tuple[int, int, int, int, int, int], *, resident: bool
) -> None:
    shape, parts, place = (24, 16, 32), GridCut(*cut), place_on(machine.model)
    m, n, k = shape
    plan = StreamPlan(place, shape, 1, parts, (8, 8, 8), "network", resident=resident)
    a, b = (np.random.default_rng(7).integers(-99, 99, size) for size in ((m, k), (k, n)))
    program = stream_gemm.stream_gemm(plan)
    memory = hold_equal(machine, program, lambda at: stream_gemm.put(plan, at, a, b))
    np.testing.assert_array_equal(stream_gemm.result(plan, memory)[0], a @ b)


@pytest.mark.parametrize("to_blocks", [False, True])
def test_changes_of_the_layout(machine: TileMachine, *, to_blocks: bool) -> None:
    place = replace(place_on(machine.model), whole_lines=True)
    plan = plan_relayout((11, 26), place, to_blocks=to_blocks)
    matrix = np.random.default_rng(8).integers(-(2**31), 2**31, (11, 26))
    program = relayout.relayout(plan)
    memory = hold_equal(machine, program, lambda at: relayout.put(plan, at, matrix))
    np.testing.assert_array_equal(relayout.result(plan, memory), relayout.expected(plan, matrix))


def run_gemv(machine: TileMachine, method: str) -> None:
    """A vector times a matrix, its parts of sums added by a method."""
    model = machine.model
    size = 2 * model.array_size * model.rows
    plan = plan_gemv((1, size, size), place_on(model), ring=method == "ring")
    a, b = np.random.default_rng(4).integers(-99, 99, (2, size, size))
    if method == "ring":
        program = ring_gemv.ring_gemv(plan)
        hold_equal(machine, program, lambda at: ring_gemv.put(plan, at, a[:1], b))
        return
    program = gemv.gemv(replace(plan, method=method, root=model.rows // 2))
    memory = hold_equal(machine, program, lambda at: gemv.put(plan, at, a[:1], b))
    for row in memory["c"]:
        np.testing.assert_array_equal(row.reshape(1, size), a[:1] @ b)


def run_softmax(machine: TileMachine, method: str) -> None:
    """Exponentials of the rows of a matrix, and their sums."""
    model = machine.model
    shape = 3 * model.rows, 6 * model.cols
    plan = plan_softmax(shape, place_on(model), method, unit=1 / 256)
    scores = np.random.default_rng(5).integers(-2000, 2000, shape)
    hold_equal(machine, softmax.softmax(plan), lambda at: softmax.put(plan, at, scores))


def run_attention(machine: TileMachine, schedule: str, method: str) -> None:
    """Three heads of attention."""
    model = machine.model
    shape = AttentionShape(1, 3, 3, 4 * model.rows, 8 * model.cols, 8, 8)
    plan = plan_flat(shape, place_on(model), method, schedule, 1 / 4096)
    generator = np.random.default_rng(6)
    q = generator.integers(-90, 90, (shape.heads, shape.rows, shape.qk_depth))
    k = generator.integers(-90, 90, (shape.heads, shape.kv_length, shape.qk_depth))
    v = generator.integers(-128, 128, (shape.heads, shape.kv_length, shape.v_depth))
    program = flat_attention.flat_attention(plan)
    hold_equal(machine, program, lambda at: flat_attention.put(plan, at, q, k, v))


METHODS = ("network", "chain", "tree", "sequential")


@pytest.mark.parametrize("method", (*METHODS, "ring"))
def test_a_vector_times_a_matrix(machine: TileMachine, method: str) -> None:
    run_gemv(machine, method)


@pytest.mark.parametrize("method", METHODS)
def test_softmax(machine: TileMachine, method: str) -> None:
    run_softmax(machine, method)


@pytest.mark.parametrize("schedule", ["naive", "async"])
@pytest.mark.parametrize("method", ["network", "tree"])
def test_flat_attention(machine: TileMachine, schedule: str, method: str) -> None:
    run_attention(machine, schedule, method)


@pytest.mark.slow
def test_other_kernels_on_sixteen_tiles() -> None:
    with TileMachine(TileModel(4, 4)) as machine:
        for method in METHODS:
            run_gemv(machine, method)
            run_softmax(machine, method)
        run_gemv(machine, "ring")
        for schedule in ("naive", "async"):
            run_attention(machine, schedule, "network")


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 16])
def test_products_on_sixteen_tiles(bits: int) -> None:
    with TileMachine(TileModel(4, 4, operand_bits=bits)) as machine:
        for name in KERNELS:
            run_kernel(machine, name, 2)


@pytest.mark.slow
def test_products_on_a_grid_that_is_not_square() -> None:
    with TileMachine(TileModel(3, 5)) as machine:
        for name in ("summa", "allgather-gemm"):
            run_kernel(machine, name, 1)


@pytest.mark.slow
def test_kernels_on_sixty_four_tiles() -> None:
    with TileMachine(TileModel(8, 8)) as machine:
        for name in KERNELS:
            run_kernel(machine, name, 1)
        for method in ("network", "tree"):
            run_gemv(machine, method)
            run_softmax(machine, method)
            run_attention(machine, "async", method)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        TileModel(2, 2, stages=2),
        TileModel(2, 2, output_depth=2, fifo_depth=8),
        TileModel(2, 2, y_first=True, reduce_stages=0, outstanding=1),
    ],
    ids=str,
)
def test_products_on_other_networks(model: TileModel) -> None:
    with TileMachine(model) as machine:
        for name in KERNELS:
            run_kernel(machine, name, 2)


def softmax_program() -> Program:
    """Scores, exponentials, their sums, and a product of them packed to operands, on a tile."""
    sums, column = Buffer(8, 8, 32), Buffer(8, 1, 32)
    buffers = {
        "q": Buffer(8, 12, 16), "k": Buffer(12, 8, 16), "v": Buffer(8, 4, 16), "s": sums,
        "top": column, "sum": column, "p": Buffer(8, 8, 16), "o": Buffer(8, 4, 32),
    }  # fmt: skip
    tile = TileSet.tile(0, 0)
    passes = [
        Vector("row-maximum", "s", "top"),
        Vector("scale", "top", "top", multiplier=-1),
        Vector("add", "s", "s", "top"),
        Vector("scale", "s", "s", multiplier=3, shift=1),
        Vector("exp", "s", "s"),
        Vector("row-sum", "s", "sum"),
        Vector("quantize", "s", "p", shift=2),
    ]

    def operations() -> Iterator[Work]:
        yield Work(Engine.MATRIX, tile, 1, gives=("s",), task=Gemm("q", "k", "s"))
        for number, task in enumerate(passes):
            first, last = number == 0, number == len(passes) - 1
            yield Work(
                Engine.VECTOR, tile, 1, ("s",) if first else (), ("p",) if last else (), task
            )
        yield Work(Engine.MATRIX, tile, 1, takes=("p",), task=Gemm("p", "v", "o"))

    return Program(2, 2, {"s": Token(), "p": Token()}, operations, buffers)


def test_what_the_vector_engine_makes_is_an_operand_of_a_product(machine: TileMachine) -> None:
    program = softmax_program()

    def put(memory: TileBlocks) -> None:
        generator = np.random.default_rng(2)
        for name in ("q", "k", "v"):
            memory[name][:] = generator.integers(-9, 9, memory[name].shape)

    hold_equal(machine, program, put)


def one_send(**changes: object) -> Program:
    """A program of one transfer of a block from tile (0, 0) to (1, 1)."""
    options: dict[str, object] = {
        "tiles": TileSet.tile(0, 0), "to_rows": np.array([1]), "to_cols": np.array([1]),
        "flits": 8, "source": "x", "target": "y",
    }  # fmt: skip
    send = Send(**(options | changes))
    tokens = {"t0": Token(), "t1": Token(), "t2": Token()}
    buffers = {"x": Buffer(4, 4, 32), "y": Buffer(4, 4, 32)}
    wait = Work(Engine.CONTROL, TileSet.tile(1, 1), 0, takes=send.arrivals)
    return Program(2, 2, tokens, lambda: [send, wait], buffers)


def test_units_of_slow_and_fast_givers_are_not_mixed_up(machine: TileMachine) -> None:
    # Two roots write the same buffer in turn; the second one's block is there long before the
    # first one's, but the first work may only begin when that one is.
    late, early, here = TileSet.tile(0, 0), TileSet.tile(0, 1), range(2)

    def operations() -> Iterator[Work | Multicast]:
        yield Work(Engine.CONTROL, late, 300, gives=("go",))
        for root, takes in ((late, ("go",)), (early, ())):
            yield Multicast(root, "row", here, 4, takes=takes, arrivals=("there",))
        for cycles in (40, 2):
            yield Work(Engine.MATRIX, TileSet(range(1), here), cycles, takes=("there",))

    program = Program(2, 2, {"go": Token(), "there": Token(depth=2)}, operations)
    run = machine.run(lower(program, machine.model).images)
    for tile in (0, 1):
        first, second = run.of(tile, Engine.MATRIX)
        assert first.start_cycle > 300
        assert second.start_cycle == first.end_cycle + 1


def test_streams_share_a_token_where_they_are_taken_as_they_are_given(machine: TileMachine) -> None:
    here = TileSet.tile(0, 0)

    def tokens_of(order: str, initial: int = 0) -> int:
        """Tokens of a program whose vector engine gives units to be taken in an order."""

        def operations() -> Iterator[Work]:
            for name in "abab"[: 4 - 2 * initial]:
                yield Work(Engine.VECTOR, here, 5, gives=(name,))
            for name in order:
                yield Work(Engine.MATRIX, here, 5, takes=(name,))

        tokens = {name: Token(initial=initial, depth=2) for name in "ab"}
        lowered = lower(Program(2, 2, tokens, operations), machine.model)
        run = machine.run(lowered.images)
        assert len(run.of(0, Engine.MATRIX)) == len(order)
        queue = lowered.images[0].queues[Engine.MATRIX]
        return len(frozenset().union(*(descriptor.takes for descriptor in queue)))

    assert tokens_of("abab") == 1
    assert tokens_of("aabb") == 2
    # Units that are there from the start are given before all others.
    assert tokens_of("abab", initial=1) == 1
    assert tokens_of("aabb", initial=1) == 2


def test_slots_that_come_with_a_transfer_are_refused(machine: TileMachine) -> None:
    there = {"tiles": TileSet.tile(0, 0), "to_rows": np.array([0]), "to_cols": np.array([1])}

    def operations() -> Iterator[Send]:
        for slots, arrivals in (((), ("x",)), (("x",), ())):
            yield Send(**there, flits=1, slots=slots, arrivals=arrivals)

    with pytest.raises(InputError) as error:
        lower(Program(2, 2, {"x": Token()}, operations), machine.model)
    assert str(error.value) == (
        "operation 0: token 'x' comes with a transfer and is a slot of another tile's; allowed: "
        "slots that an engine gives"
    )


def test_a_transfer_of_times_alone_is_as_long_as_it_says(machine: TileMachine) -> None:
    program = one_send(source=None, target=None, flits=23, arrivals=("t0", "t1"))
    lowered = lower(program, machine.model)
    [descriptor] = lowered.images[0].queues[Engine.TRANSFER]
    assert isinstance(descriptor.job, Transfer)
    assert (descriptor.job.words, len(descriptor.job.tokens)) == (23, 2)
    run = machine.run(lowered.images)
    # Both tokens are there when the tail is: 3 cycles to be issued, two hops, 23 flits.
    assert run.of(3, Engine.CONTROL)[0].start_cycle == 3 + 3 + 23


def test_what_tiles_in_verilog_cannot_run_is_refused(machine: TileMachine) -> None:
    def refusal(program: Program) -> str:
        with pytest.raises(InputError) as error:
            lower(program, machine.model)
        return str(error.value)

    assert refusal(Program(2, 3, {}, lambda: [])) == (
        "program: found 2x3 tiles; allowed: 2x2, those of the model"
    )
    assert refusal(one_send(arrivals=("t0", "t1", "t2"))) == (
        "operation 0: found 3 tokens on arrival; allowed: at most 2 of a transfer"
    )
    large = {"x": Buffer(256, 64, 32)}
    assert refusal(Program(2, 2, {}, lambda: [], large)) == (
        "buffers: found 8192 words of a tile's scratchpad; allowed: 4096"
    )
    narrow = {"x": Buffer(4, 4, 12)}
    assert refusal(Program(2, 2, {}, lambda: [], narrow)) == (
        "buffer 'x', rows of sums: found 12 bits; allowed: 32"
    )
    turned = Work(Engine.MATRIX, TileSet.tile(0, 0), 1, task=Gemm("x", "x", "y", turned=True))
    square = {"x": Buffer(4, 4, 16), "y": Buffer(4, 4, 32)}
    assert refusal(Program(2, 2, {}, lambda: [turned], square)) == (
        "buffer 'x': found a turned operand of a product; allowed: operands in the array's order "
        "of words"
    )
    gemm = Work(Engine.MATRIX, TileSet.tile(0, 0), 1, task=Gemm("x", "x", "y"))
    both = {"x": Buffer(4, 4, 16), "y": Buffer(4, 4, 32)}
    assert refusal(Program(2, 2, {}, lambda: [gemm], both)) == (
        "buffer 'x': found left operand of a product and right operand of a product; "
        "allowed: one of them"
    )
