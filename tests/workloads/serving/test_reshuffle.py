"""Bytes on their way between regions of two sides."""

from collections import Counter
from dataclasses import replace

import pytest

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from tlm.engines.lt import run_lt
from workloads.kernels.catalogue import KERNELS
from workloads.machine.place import Place, chip_place
from workloads.serving.price.regions import Regions
from workloads.serving.price.reshuffle import PIECE_BYTES, Reshuffle, reshuffled, used

_CHIP = load_chip("wse2").for_dtype("fp16")


def _place(rows: int, cols: int) -> Place:
    return chip_place(_CHIP, (rows, cols), noc_timing(_CHIP), 16, 16)


def _regions(side: int, count: int) -> Regions:
    return Regions(side, count, 1, 0, 1)


@pytest.mark.parametrize(
    ("sides", "counts"), [((8, 20), (4, 1)), ((20, 8), (1, 4)), ((8, 12), (6, 2)), ((5, 7), (1, 1))]
)
def test_all_bytes_go_where_their_columns_are(
    sides: tuple[int, int], counts: tuple[int, int]
) -> None:
    source, target = map(_regions, sides, counts)
    place = _place(20, 22)
    (row, along), (column, across) = reshuffled(Reshuffle(source, target), place)
    assert (row.place.rows, row.place.cols) == (1, 22)
    assert (column.place.rows, column.place.cols) == (20, 1)
    assert (row.lines, column.lines) == (used(source, 20), used(target, 22))
    for line, mapped in ((row, along), (column, across)):
        sent, bytes_each = Counter[int](), mapped.sizes[1] * 2
        for each in mapped.plan.rounds:  # type: ignore[attr-defined]
            takers = [to for _, to in each.moves]
            assert len(set(takers)) == len(takers)
            for (_, one), (_, other) in (((0, max(a)), (0, max(b))) for a, b in each.moves):
                # Parts of a matrix that a tile has in either layout overlap.
                have, want = one % sides[0] / sides[0], other % sides[1] / sides[1]
                assert have < want + 1 / sides[1] and want < have + 1 / sides[0]
                sent[one] += bytes_each
        # A tile sends all that it has, but for what stays.
        spread = 1 if line is row else used(source, 22) / used(target, 22)
        assert max(sent.values()) == pytest.approx(PIECE_BYTES * spread, abs=16)
        assert {*sent} <= {*range(used(source, line.tiles))}


def test_the_closed_form_is_what_the_program_takes() -> None:
    part = Reshuffle(_regions(8, 4), _regions(20, 1))
    for line, mapped in reshuffled(part, _place(20, 22)):
        program = KERNELS["exchange"].program(mapped.plan)
        assert run_lt(program, line.place.timing).cycles == mapped.cycles
        assert program.tile_bytes < _CHIP.tile.sram_kib * 1024


def test_pieces_are_as_many_as_the_bytes_need() -> None:
    part = Reshuffle(_regions(10, 4), _regions(20, 1))
    assert part.pieces(400 * PIECE_BYTES, 22, 22) == 1
    assert part.pieces(400 * PIECE_BYTES + 1, 22, 22) == 2
    few = replace(part.source, count=1)
    assert Reshuffle(few, part.target).pieces(400 * PIECE_BYTES, 22, 22) == 4
