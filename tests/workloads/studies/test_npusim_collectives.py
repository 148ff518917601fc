"""NpuSim's partitions on routers that copy and combine: what comes out, and how long it takes."""

import numpy as np
import pytest

from tests.workloads.kernels.products import computed, operands, place
from tlm.program.functional import TileBlocks
from workloads.studies.npusim.collectives import (
    CollectiveCase,
    collective_figures,
    collective_rows,
    combined_gemm,
    copied_gemm,
)

CORES, SHAPE = 4, (8, 12, 16)


@pytest.mark.parametrize("seed", range(3))
def test_every_core_multiplies_its_rows_by_all_of_b(seed: int) -> None:
    size_m, size_n, size_k = SHAPE
    a, b = operands((size_m, size_k), (size_k, size_n))
    m, n = size_m // CORES, size_n // CORES

    def put(memory: TileBlocks) -> None:
        for core in range(CORES):
            memory["a"][0, core] = a[m * core : m * (core + 1)]
            memory["b.own"][0, core] = b[:, n * core : n * (core + 1)]

    memory = computed(copied_gemm(SHAPE, place(1, CORES)), put, seed)
    for core in range(CORES):
        found = np.hstack([memory[f"c.{part}"][0, core] for part in range(CORES)])
        assert (found == (a @ b)[m * core : m * (core + 1)]).all()


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_routers_add_the_parts(seed: int, everywhere: bool) -> None:
    """Each core has all sums in the end, or its own part of them."""
    size_m, size_n, size_k = SHAPE
    a, b = operands((size_m, size_k), (size_k, size_n))
    n, k = size_n // CORES, size_k // CORES

    def put(memory: TileBlocks) -> None:
        for core in range(CORES):
            own = slice(k * core, k * (core + 1))
            memory["a"][0, core] = a[:, own]
            for part in range(CORES):
                memory[f"b.{part}"][0, core] = b[own, n * part : n * (part + 1)]

    program = combined_gemm(SHAPE, place(1, CORES), everywhere=everywhere)
    memory = computed(program, put, seed)
    for part in range(CORES):
        wanted = (a @ b)[:, n * part : n * (part + 1)]
        assert (memory[f"sum.{part}.total"][0, part] == wanted).all()
        for core in range(CORES) if everywhere else ():
            assert (memory[f"c.{part}"][0, core] == wanted).all()


def test_rows_say_what_such_routers_are_worth() -> None:
    names = ("ring", "row", "network")
    found = {
        way: collective_figures(CollectiveCase(4, "K-all-reduce", way, "noc160", "5rows"))
        for way in names
    }
    # Six messages to a neighbour one after the other, or a way in and a way out.
    assert found["network"]["cycles"] < found["ring"]["cycles"] < found["row"]["cycles"]


def test_worth_is_over_the_faster_messages() -> None:
    class Invented(dict[str, dict[str, float | None]]):
        def __missing__(self, case: str) -> dict[str, float | None]:
            way = next(each for each in ("ring", "row", "network") if f"'{each}'" in case)
            return {"cycles": {"ring": 300.0, "row": 400.0, "network": 200.0}[way]}

    rows = [*collective_rows(Invented())]
    assert len({each["id"] for each in rows}) == len(rows)
    assert {each["model"] for each in rows if each["id"].endswith("/worth")} == {1.5}
