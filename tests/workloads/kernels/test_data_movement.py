"""Kernels executed with real blocks: who holds which block at each step, and that C = A B."""

from collections import deque
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tlm.compute.vector_mac import VectorMac
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Multicast, Program, Send, Work, destination, segment_of
from workloads.kernels.cannon import cannon
from workloads.kernels.gemm import GemmPlan, plan_gemm
from workloads.kernels.mesh_gemm import mesh_gemm
from workloads.kernels.ring import Ring
from workloads.kernels.summa import summa

Block = NDArray[np.int64]
Tile = tuple[int, int]
Blocks = dict[Tile, Block]

COMPUTE = VectorMac(1.0, 1.0, 0.0)
SHAPES = [(1, 1, 1), (6, 6, 6), (7, 5, 9), (16, 3, 20)]


class Buffers:
    """The blocks of a matrix that each tile holds: to work on in turn, and to pass on in turn."""

    def __init__(self, tiles: list[Tile], room: int) -> None:
        self._room = room
        self._work: dict[Tile, deque[Block]] = {tile: deque() for tile in tiles}
        self._pass: dict[Tile, deque[Block]] = {tile: deque() for tile in tiles}

    def put(self, tile: Tile, block: Block, *, passes: bool) -> None:
        """A block comes in; it stays until it is worked on, and passed on if it ``passes``."""
        self._work[tile].append(block)
        if passes:
            self._pass[tile].append(block)
        assert max(len(self._work[tile]), len(self._pass[tile])) <= self._room, "no buffer is free"

    def use(self, tile: Tile) -> Block:
        return self._work[tile].popleft()

    def pass_on(self, tile: Tile) -> Block:
        return self._pass[tile].popleft()

    def move_out(self, tile: Tile) -> Block:
        """Give a block away without having worked on it."""
        self._work[tile].popleft()
        return self._pass[tile].popleft()


class Interpreter:
    """Executes a program by its labels: ``A`` and ``B`` move blocks, ``C`` multiplies them.

    A multicast sends the root's own block; a send passes on the block that came before.
    """

    def __init__(self, program: Program, a: Blocks, b: Blocks) -> None:
        self._own = {"A": a, "B": b}
        self._program = program
        self._buffers = {matrix: Buffers(list(a), room=2) for matrix in self._own}
        self.c = {tile: a[tile] @ b[tile] * 0 for tile in a}
        self.products = dict.fromkeys(a, 0)

    def start_with_own_blocks(self) -> None:
        for matrix, blocks in self._own.items():
            for tile, block in blocks.items():
                self._buffers[matrix].put(tile, block, passes=True)

    def run(self) -> None:
        aligning = any(operation.label == "aligned" for operation in self._program.operations())
        for operation in self._program.operations():
            if operation.label == "aligned":
                aligning = False
            elif isinstance(operation, Work):
                assert (operation.label, operation.engine) == ("C", Engine.MATRIX)
                for tile in self.c:
                    self._multiply(tile)
            else:
                self._move(operation, aligning=aligning)

    def _multiply(self, tile: Tile) -> None:
        a, b = (self._buffers[matrix].use(tile) for matrix in "AB")
        self.c[tile] = self.c[tile] + a @ b
        self.products[tile] += 1

    def _move(self, operation: Send | Multicast, *, aligning: bool) -> None:
        """All blocks leave before any comes in."""
        buffers, own = self._buffers[operation.label], self._own[operation.label]
        if isinstance(operation, Multicast):
            for root in _tiles(operation.roots):
                for tile in _tiles(segment_of(operation, *root)):
                    buffers.put(tile, own[root], passes=False)
            return
        leave = buffers.move_out if aligning else buffers.pass_on
        sources = _tiles(operation.tiles)
        moving = [(destination(operation, *tile), leave(tile)) for tile in sources]
        for tile, block in moving:
            buffers.put(tile, block, passes=True)


def _tiles(tiles: TileSet) -> list[Tile]:
    return [(row, col) for row in tiles.rows for col in tiles.cols]


def blocks_of(matrix: Block, side: int, height: int, width: int) -> Blocks:
    """Blocks of a matrix padded with zeros, each at the tile of its row and column of blocks."""
    padded = np.zeros((side * height, side * width), dtype=np.int64)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    cut = padded.reshape(side, height, side, width).swapaxes(1, 2)
    return {(row, col): cut[row, col] for row in range(side) for col in range(side)}


def problem(shape: tuple[int, int, int], side: int) -> tuple[GemmPlan, Block, Block]:
    size_m, size_n, size_k = shape
    rng = np.random.default_rng(size_m * size_n * size_k + side)
    a = rng.integers(-9, 10, (size_m, size_k))
    b = rng.integers(-9, 10, (size_k, size_n))
    return plan_gemm(shape, (side, side), 2, 4, COMPUTE), a, b


def skewed(ring: Ring, blocks: Blocks, matrix: str) -> Blocks:
    """At places (i, j) of the rings the block whose place along the shared dimension is i + j."""
    tile_at = np.argsort(ring.position)
    placed = {}
    for row, col in blocks:
        inner = int(tile_at[(ring.position[row] + ring.position[col]) % ring.size])
        placed[row, col] = blocks[(row, inner) if matrix == "A" else (inner, col)]
    return placed


def check(run: Interpreter, a: Block, b: Block, side: int) -> None:
    run.run()
    rows = [np.hstack([run.c[row, col] for col in range(side)]) for row in range(side)]
    product = np.vstack(rows)
    expected = a @ b
    assert product[: a.shape[0], : b.shape[1]].tolist() == expected.tolist()
    assert not product[a.shape[0] :].any()
    assert not product[:, b.shape[1] :].any()
    assert set(run.products.values()) == {side}


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize(
    ("kernel", "make_ring"), [(mesh_gemm, Ring.interleaved), (cannon, Ring.natural)]
)
def test_compute_shift_multiplies(
    kernel: Callable[..., Program],
    make_ring: Callable[[int], Ring],
    side: int,
    shape: tuple[int, int, int],
    align: bool,
) -> None:
    plan, a, b = problem(shape, side)
    m, k, n = plan.block
    ring = make_ring(side)
    in_order, own_b = blocks_of(a, side, m, k), blocks_of(b, side, k, n)
    own_a = in_order if align else skewed(ring, in_order, "A")
    run = Interpreter(kernel(plan, align=align), own_a, skewed(ring, own_b, "B"))
    run.start_with_own_blocks()
    check(run, a, b, side)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [1, 2, 3, 4, 5, 8, 13])
def test_summa_multiplies(side: int, shape: tuple[int, int, int]) -> None:
    plan, a, b = problem(shape, side)
    m, k, n = plan.block
    run = Interpreter(summa(plan), blocks_of(a, side, m, k), blocks_of(b, side, k, n))
    check(run, a, b, side)
