"""Verdicts on P, L, M and R: those that WaferLLM states of its methods, measured on programs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.kernels.products import place
from tlm.check import TileLimits, Verdict, check_program, of_transfers, verdicts
from tlm.check.routes import Routes
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Program, Roots, Work
from tlm.program.operations import Along, Relay, Unicasts
from workloads.kernels.catalogue import KERNELS

LIMITS = TileLimits(tile_bytes=20_000, routing_paths=32)


def of_kernel(name: str, shape: tuple[int, int, int], side: int) -> dict[str, Verdict]:
    kernel = KERNELS[name]
    program = kernel.program(kernel.planned(shape, place(side, side)))
    found = verdicts(check_program(program, LIMITS), (side, side))
    quick = found[3:] if name.endswith("gemv") else found[1::2]
    assert of_transfers(program, LIMITS) == [*quick]
    return {each.letter: each for each in found}


@pytest.mark.parametrize(
    ("kernel", "missed"),
    [("mesh-gemm", ""), ("cannon", "L"), ("summa", "LR"), ("allgather-gemm", "LMR")],
)
def test_products_of_matrices(kernel: str, missed: str) -> None:
    """WaferLLM, section 5.1."""
    found = of_kernel(kernel, (480, 480, 480), 24)
    assert "".join(letter for letter, each in found.items() if not each.holds) == missed
    assert (found["L"].bound, found["M"].bound, found["R"].bound) == (2, 20_000, 32)


@pytest.mark.parametrize("length", [16, 30, 64])
@pytest.mark.parametrize(
    ("kernel", "missed"), [("mesh-gemv", ""), ("pipeline-gemv", "L"), ("ring-gemv", "L")]
)
def test_products_of_a_vector(kernel: str, missed: str, length: int) -> None:
    """WaferLLM, section 6.1: N stages of a pipeline or a ring, about the root of N of a tree."""
    found = of_kernel(kernel, (1, 2 * length**2, length), length)
    assert "".join(letter for letter, each in found.items() if not each.holds) == missed


def test_tiles_without_work_and_programs_without_any() -> None:
    everywhere, some = TileSet(range(2), range(2)), TileSet(range(1), range(2))

    def parallel(*tiles: TileSet) -> Verdict:
        work = [Work(Engine.VECTOR, each, 5) for each in tiles]
        return verdicts(check_program(Program(2, 2, {}, lambda: work)), (2, 2))[0]

    assert not parallel(some).holds and parallel(some).found == 0.5
    assert parallel(everywhere).holds and parallel().holds


def test_a_chip_that_knows_no_bound_and_a_program_without_work() -> None:
    report = check_program(Program(1, 1, {}, list))
    assert [each.bound for each in verdicts(report, (1, 1))] == [None, 2, None, None]
    assert all(each.holds for each in verdicts(report, (1, 1)))


@given(st.data(), st.sampled_from(["row", "column"]))
def test_routes_of_relays_are_those_between_their_tiles(data: st.DataObject, along: Along) -> None:
    rows, cols = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    size, lines = (cols, rows) if along == "row" else (rows, cols)
    segment = range(data.draw(st.integers(0, size - 1)), size, data.draw(st.integers(1, 2)))
    places = st.lists(st.sampled_from(list(segment)), min_size=lines, max_size=lines)
    relays = [
        Relay(Roots(range(lines), np.array(data.draw(places))), along, segment, 3) for _ in range(2)
    ]
    found, wanted = (Routes(Program(rows, cols, {}, lambda: relays)) for _ in range(2))
    for relay in relays:
        found.add(relay)
        for move in relay.moves():
            assert isinstance(move, Unicasts)
            wanted._add_unicasts(move)
    np.testing.assert_array_equal(found.paths(), wanted.paths())
