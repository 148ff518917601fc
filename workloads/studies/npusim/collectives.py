"""Beyond the paper: its partitions with multicasts and reductions that routers make.

In rings a core sends each part again that it has got. A router that copies packets has a core send
its part of B once. One that combines them has no core add sums: of the all-reduction of P cores a
core then sends P parts, and gets as many, where it is 2 (P - 1) in a ring.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from tlm.chips.parts import PacketRouter
from tlm.compute.base import ceil_div
from tlm.interconnect.packets import TileSet
from tlm.on_routers import run_on_routers
from tlm.program import Buffer, Engine, Gemm, Multicast, Operation, Program, Token, Work
from workloads.kernels.gemm.partition_gemm import partition_gemm
from workloads.kernels.gemm.partition_search import find_partition
from workloads.kernels.gemm.plan import Shape
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines
from workloads.machine.place import Place
from workloads.studies.campaign import Figures
from workloads.studies.npusim.cases import group_place
from workloads.studies.npusim.facts import LINKS
from workloads.studies.npusim.judge import row

#: Cores of a group, and columns of the chip that have a row of as many.
CORES = {4: 8, 16: 16}
#: What is shared: B by M and N; sums by K, whole ones everywhere, or each part in one core.
SHARED = ("MN", "K-all-reduce", "K-reduce-scatter")
#: Cores in a ring, or in a row in the order of their numbers, that send each other messages; or
#: cores in a row whose routers copy and combine.
WAYS = ("ring", "row", "network")
#: Of a chunk of a prompt, or of a micro-batch that decodes, as published: M, N, K.
SHAPES = {"64rows": (64, 2048, 512), "5rows": (5, 2048, 512)}
#: Links, one of `LINKS`, and rows.
_RUNS = (("noc160", "64rows"), ("noc160", "5rows"), ("noc8", "5rows"))


class CollectiveCase(NamedTuple):
    """A product on a group, whose outputs are not locked.

    Attributes:
        cores: Of the group.
        shared: One of `SHARED`.
        way: One of `WAYS`.
        link: One of `LINKS`.
        shape: One of `SHAPES`.
    """

    cores: int
    shared: str
    way: str
    link: str
    shape: str


def collective_figures(case: CollectiveCase) -> Figures:
    """Cycles of the product at level `at`."""
    shape = SHAPES[case.shape]
    place, packet_flits = group_place(
        case.cores,
        "ring" if case.way == "ring" else "linear",
        LINKS[case.link],
        chip_cols=CORES[case.cores],
        more=("noc.reduce_cycles=1",),
    )
    if case.way != "network":
        by = "mn" if case.shared == "MN" else "k"
        scattered = case.shared == "K-reduce-scatter"
        program = partition_gemm(find_partition(shape, place, by, scattered=scattered))
    elif case.shared == "MN":
        program = copied_gemm(shape, place)
    else:
        program = combined_gemm(shape, place, everywhere=case.shared == "K-all-reduce")
    outcome, _ = run_on_routers(program, PacketRouter(place.timing, packet_flits))
    return {"cycles": float(outcome.cycles)}


def copied_gemm(shape: Shape, place: Place) -> Program:
    """A product by M and N on a row of cores, each of which multicasts its part of B both ways.

    What comes has two buffers, which take turns; a core sends when all have one free.
    """
    size_m, size_n, k = shape
    m, n = ceil_div(size_m, place.cols), ceil_div(size_n, place.cols)
    flits, bits = place.flits(k, n, place.element_bits), place.element_bits
    tokens = {f"b.there.{index}": Token() for index in range(2)}
    tokens |= {f"b.free.{index}": Token(initial=1) for index in range(2)}
    buffers = {"a": Buffer(m, k, bits), "b.own": Buffer(k, n, bits)}
    buffers |= {f"b.{index}": Buffer(k, n, bits) for index in range(2)}
    buffers |= {f"c.{part}": Buffer(m, n, place.sum_bits) for part in range(place.cols)}

    def operations() -> Iterator[Operation]:
        cycles = place.matrix.gemm_cycles(m, k, n)
        tasks = [Gemm("a", "b.own", f"c.{part}") for part in range(place.cols)]
        for part, task in enumerate(tasks):  # each begins with its own
            yield Work(Engine.MATRIX, TileSet.tile(0, part), cycles, task=task, label="C")
        for part, task in enumerate(tasks):
            index, root = part % 2, TileSet.tile(0, part)
            for others in filter(len, (range(part), range(part + 1, place.cols))):
                yield Multicast(
                    root,
                    "row",
                    others,
                    flits,
                    slots=(f"b.free.{index}",),
                    arrivals=(f"b.there.{index}",),
                    source="b.own",
                    target=f"b.{index}",
                    label="B",
                )
                yield Work(
                    Engine.MATRIX,
                    TileSet(range(1), others),
                    cycles,
                    takes=(f"b.there.{index}",),
                    gives=(f"b.free.{index}",),
                    task=replace(task, b=f"b.{index}"),
                    label="C",
                )

    return Program(place.rows, place.cols, tokens, operations, buffers)


def combined_gemm(shape: Shape, place: Place, *, everywhere: bool) -> Program:
    """A product by K on a row of cores: routers add the sums of a part on the way to its core.

    Args:
        shape: M, N and K.
        place: The row.
        everywhere: Each core then multicasts its part.
    """
    m, size_n, size_k = shape
    n, k = ceil_div(size_n, place.cols), ceil_div(size_k, place.cols)
    part = Buffer(m, n, place.sum_bits)
    sums = [
        Reduction(
            _row(place),
            core,
            "network",
            f"sum.{core}",
            f"c.{core}",
            f"c.there.{core}",
            place.flits(m, n, place.sum_bits),
            place.vector.pass_cycles(m, n),
        )
        for core in range(place.cols)
    ]
    buffers = {"a": Buffer(m, k, place.element_bits)}
    tokens: dict[str, Token] = {}
    for core, each in enumerate(sums):
        buffers |= {f"b.{core}": Buffer(k, n, place.element_bits), each.value: part}
        buffers |= each.buffers(part)
        tokens |= {each.there: Token(), f"sum.{core}.left": Token()} | each.tokens()
    operations = partial(_combined, place, sums, (m, k, n), everywhere=everywhere)
    return Program(place.rows, place.cols, tokens, operations, buffers)


def _combined(
    place: Place, sums: Sequence[Reduction], block: tuple[int, int, int], *, everywhere: bool
) -> Iterator[Operation]:
    """A part is multicast while the next one is added up."""
    last: list[Operation] = []
    for core, each in enumerate(sums):
        yield Work(
            Engine.MATRIX,
            _everywhere(place),
            place.matrix.gemm_cycles(*block),
            gives=(each.there,),
            task=Gemm("a", f"b.{core}", each.value),
            label="C",
        )
        adds, *spreads = each.all_reduce() if everywhere else each.reduce()
        yield adds
        yield from last
        last = spreads
    yield from last


def _row(place: Place) -> Lines:
    return Lines("row", range(place.rows), place.cols)


def _everywhere(place: Place) -> TileSet:
    return TileSet(range(place.rows), range(place.cols))


def collective_cases() -> Iterator[CollectiveCase]:
    """All products."""
    for cores, shared, way, of in product(CORES, SHARED, WAYS, _RUNS):
        yield CollectiveCase(cores, shared, way, *of)


def collective_rows(found: Mapping[str, Figures]) -> Iterator[dict[str, Any]]:
    """Cycles each way, and what routers that copy and combine are worth over the best messages."""
    for cores, shared, (link, shape) in product(CORES, SHARED, _RUNS):
        name, cycles = f"NEW/{shared}/{cores}cores-{link}-{shape}", {}
        for way in WAYS:
            figure = found[repr(CollectiveCase(cores, shared, way, link, shape))]["cycles"]
            assert figure is not None
            cycles[way] = figure
            note = f"{' x '.join(map(str, SHAPES[shape]))}, no output is locked"
            yield row(f"{name}/{way}_cycles", figure, None, "cycles", "at", note)
        worth = min(cycles["ring"], cycles["row"]) / cycles["network"]
        note = "of routers that copy and combine packets, over the faster messages"
        yield row(f"{name}/worth", worth, None, "x", "at", note)
