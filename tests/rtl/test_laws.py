"""The closed forms of rtl/README.md, on meshes of all kinds: cycles of a transfer that is alone."""

from collections.abc import Callable

import numpy as np
import pytest

from calibration.routers.rtl_mesh import CHECK_MESH, FIT_MESH, RtlMesh
from tlm.interconnect.packets import REDUCTIONS, Packets, ReductionGoal, TileSet, cut

pytestmark = pytest.mark.rtl

Item = tuple[int, int, TileSet | ReductionGoal, int]
#: A transfer: its sends without their cycles, links on its longest way, flits.
Transfer = tuple[list[tuple[int, TileSet | ReductionGoal, int]], int, int]

SQUARES = [
    RtlMesh(1, 1, 4),
    RtlMesh(2, 2, 2, output_depth=2),
    RtlMesh(3, 3, 5, stages=2),
    RtlMesh(5, 5, 4, reduce_stages=0),
    RtlMesh(6, 6, 8, stages=2, output_depth=2, y_first=True),
    RtlMesh(7, 7, 3, reduce_stages=2, loopback=False),
]
OBLONGS = [
    RtlMesh(1, 7, 4, output_depth=3),
    RtlMesh(3, 5, 2, y_first=True),
    RtlMesh(5, 2, 16, stages=2, reduce_stages=3),
    RtlMesh(8, 3, 4, output_depth=4, stages=2),
]


def router_cycles(mesh: RtlMesh) -> int:
    """Cycles from a flit's entry into a router to its entry into the next."""
    return mesh.stages + (mesh.output_depth > 0)


def unicast_law(mesh: RtlMesh, hops: int, flits: int) -> int:
    return (hops + 1) * router_cycles(mesh) + flits - 1


def multicast_law(mesh: RtlMesh, hops: int, flits: int) -> int:
    places = mesh.fifo_depth + mesh.output_depth
    waits = (
        max(part + router_cycles(mesh) - places, 0) for part in cut(flits, mesh.fifo_depth)[1:]
    )
    return unicast_law(mesh, hops, flits) + sum(waits)


def reduction_law(mesh: RtlMesh, hops: int, flits: int) -> int:
    through = router_cycles(mesh) + mesh.reduce_stages
    waits = (max(part + through - mesh.fifo_depth, 0) for part in cut(flits, mesh.fifo_depth)[1:])
    return (hops + 1) * through + flits - 1 + (sum(waits) if hops else 0)


def some(size: int, rng: np.random.Generator) -> range:
    first, last = sorted(int(value) for value in rng.integers(0, size, 2))
    return range(first, last + 1, int(rng.integers(1, 4)))


def farthest(mesh: RtlMesh, node: int, where: TileSet) -> int:
    row, col = divmod(node, mesh.cols)
    return max(abs(r - row) + abs(c - col) for r in where.rows for c in where.cols)


def unicast(mesh: RtlMesh, flits: int, rng: np.random.Generator) -> Transfer:
    source, goal = (int(node) for node in rng.integers(0, mesh.rows * mesh.cols, 2))
    where = TileSet.tile(*divmod(goal, mesh.cols))
    return [(source, where, flits)], farthest(mesh, source, where), flits


def multicast(mesh: RtlMesh, flits: int, rng: np.random.Generator) -> Transfer:
    where = TileSet.tile(0, 0)
    while len(where) == 1:
        where = TileSet(some(mesh.rows, rng), some(mesh.cols, rng))
    source = int(rng.integers(mesh.rows * mesh.cols))
    parts = cut(flits, mesh.fifo_depth)
    return [(source, where, part) for part in parts], farthest(mesh, source, where), flits


def reduction(mesh: RtlMesh, flits: int, rng: np.random.Generator) -> Transfer:
    where = TileSet(some(mesh.rows, rng), some(mesh.cols, rng))
    root = int(rng.integers(mesh.rows * mesh.cols))
    goal = ReductionGoal(where, root, REDUCTIONS[int(rng.integers(2))])
    sends = [
        (n, goal, part) for n in where.nodes(mesh.cols) for part in cut(flits, mesh.fifo_depth)
    ]
    return list(sends), farthest(mesh, root, where), flits


KINDS = {
    "unicast": (unicast, unicast_law),
    "multicast": (multicast, multicast_law),
    "reduction": (reduction, reduction_law),
}


def measured(mesh: RtlMesh, transfers: list[Transfer]) -> list[int]:
    """Cycles of each transfer, from the first injection to the last ejection, one after another."""
    items: list[Item] = []
    ends, cycle = [], 0
    for sends, hops, flits in transfers:
        items += [(cycle, node, goal, part) for node, goal, part in sends]
        ends.append(len(items))
        # Longer than any of the laws allows.
        cycle += 8 * (hops + 1) + 6 * flits + 20
    seen = mesh.simulate(Packets.of(items))
    last = seen.last_ejected()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    finishes = [int(last[a:b].max()) for a, b in spans]
    assert all(end < items[b][0] for end, (_, b) in zip(finishes, spans[:-1], strict=False))
    return [
        end - int(seen.head_injected[a:b].min())
        for end, (a, b) in zip(finishes, spans, strict=True)
    ]


def check(mesh: RtlMesh, kind: str, lengths: list[int]) -> None:
    make: Callable[[RtlMesh, int, np.random.Generator], Transfer]
    make, law = KINDS[kind]
    rng = np.random.default_rng(len(lengths) + 64 * mesh.rows + mesh.cols)
    transfers = [make(mesh, flits, rng) for flits in lengths]
    due = [law(mesh, hops, flits) for _, hops, flits in transfers]
    assert measured(mesh, transfers) == due


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mesh", [FIT_MESH], ids=["4x4"])
def test_laws(mesh: RtlMesh, kind: str) -> None:
    check(mesh, kind, [1, 2, 3, 4, 5, 8, 15, 16, 17, 63, 64, 128, 255, 256])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "mesh"),
    [
        pytest.param(kind, mesh, id=f"{mesh.rows}x{mesh.cols}-{kind}")
        for mesh in [*SQUARES, FIT_MESH, CHECK_MESH, *OBLONGS]
        for kind in KINDS
        if kind != "multicast" or mesh.rows * mesh.cols > 1  # one tile has no multicast
    ],
)
def test_laws_for_all_sizes_and_lengths(mesh: RtlMesh, kind: str) -> None:
    check(mesh, kind, list(range(1, 257)))
