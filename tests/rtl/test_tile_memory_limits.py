"""What tiles with memory channels cannot hold, reach or ask for is refused by name."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.tiles.descriptors import Credit, Descriptor, Transfer, TransferKind, Wait, memory_request
from cosim.tiles.fit import check_fits
from cosim.tiles.lowering import lower
from cosim.tiles.model import TileModel
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.program import Buffer, Load, Program, Reduce, Send, Work
from tlm.program.operations import Engine

MODEL = TileModel(3, 2, operand_bits=8, bank_depth=1024, memory=True)
WORDS = MODEL.channel_words
BLOCK = Buffer(6, 8, 32)
OFFCHIP = replace(BLOCK, offchip=True)


def test_refused() -> None:
    load = Load(TileSet.tile(0, 0), 4, source="x", target="a")
    program = Program(2, 2, {}, lambda: [load], {"a": BLOCK, "x": OFFCHIP})
    with pytest.raises(InputError, match="found a load or store; allowed with memory channels"):
        lower(program, TileModel(2, 2))
    with pytest.raises(InputError, match="found 2x2 tiles; allowed: 1x2"):
        lower(program, replace(MODEL, rows=2))
    large = replace(BLOCK, rows=1100)
    buffers = {"a": large, "x": replace(large, offchip=True)}
    loads = [replace(load, tiles=TileSet(range(2), range(2)))]  # only tiles that load take room
    program = replace(program, build=lambda: loads, buffers=buffers)
    lower(program, replace(MODEL, memory_row_width=3))
    with pytest.raises(InputError, match="found 8800 words of a memory channel; allowed: 8192"):
        lower(program, replace(MODEL, memory_row_width=2))


def test_neutral_contributions_are_refused() -> None:
    reduce = Reduce(TileSet.tile(0, 0), "row", range(2), 4, source="a", target="a", neutral=(1,))
    program = Program(2, 2, {}, lambda: [reduce], {"a": BLOCK})
    with pytest.raises(InputError, match=r"operation 0: neutral: found \[1\]; allowed: none"):
        lower(program, MODEL)
    whole = replace(reduce, neutral=())
    lower(replace(program, build=lambda: [whole]), MODEL)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"address": 66}, "address: found 66; allowed: multiples of 4, the words of a burst"),
        ({"address": 1 << 27}, "address: found 134217728; allowed: 0 to 134217727"),
        ({"words": 0}, "words: found 0; allowed: 1 to 65535"),
        ({"words": 65_536}, "words: found 65536; allowed: 1 to 65535"),
        ({"row": 16}, "row: found 16; allowed: 0 to 15"),
        ({"col": -1}, "column: found -1; allowed: 0 to 15"),
    ],
)
def test_requests_that_a_node_does_not_understand(changed: dict[str, int], said: str) -> None:
    with pytest.raises(InputError, match=f"memory request.* {said}"):
        memory_request(**{"address": 64, "words": 8, "row": 1, "col": 0} | changed, loads=True)


STORE = Transfer(TransferKind.UNICAST, 8, 0, 64, row=2, col=1)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (replace(STORE, target=66), "target in a memory channel: found 66; allowed: multiples of"),
        (
            replace(STORE, target=WORDS - 4),
            f"target: found words up to {WORDS + 3}; allowed: up to",
        ),
        (replace(STORE, tokens=(1,)), "tokens of words for a memory channel: found 1; allowed: 0"),
        (replace(STORE, rows=2, target_row=6), "target_row in a memory channel: found 6; allowed"),
        (replace(STORE, words=6, rows=2, target_row=8), "words in a memory channel: found 6; allo"),
        (replace(STORE, request=True), "words of a request: found 8; allowed: 1"),
        (replace(STORE, words=1, target=8192, request=True), "target: found words up to 8192; all"),
        (replace(STORE, row=1, target=8192), "target: found words up to 8199; allowed: up to 8191"),
        (
            replace(STORE, kind=TransferKind.MULTICAST, row_mask=4, col_mask=1),
            "row mask: found 0b100; allowed: bits 0 to 1",
        ),
        (
            replace(STORE, kind=TransferKind.SUM, row_mask=3, col_mask=1),
            "found row 2 and column 1; allowed: rows 0 to 1, columns 0 to 1",
        ),
        (replace(STORE, row=1, words=1, request=True), "found a request to a tile; allowed: to a"),
    ],
)
def test_transfers_that_a_node_does_not_understand(job: Transfer, said: str) -> None:
    with pytest.raises(InputError, match=f"transfer 3: {said}"):
        check_fits("transfer 3", Engine.TRANSFER, Descriptor(job), MODEL)


def test_credits_for_a_node_are_refused() -> None:
    credited = Descriptor(Wait(), credits=(Credit(2, 0, 1),))
    with pytest.raises(InputError, match="credit: found row 2 and column 0; allowed: rows 0 to 1"):
        check_fits("descriptor 3", Engine.CONTROL, credited, MODEL)


def test_a_full_scratchpad_is_refused_only_with_requests() -> None:
    tile, free = TileSet.tile(0, 0), MODEL.memory_words - 32  # beside one block
    beside = replace(BLOCK, rows=free // 4)
    full = {"a": beside, "b": BLOCK}
    lower(Program(2, 2, {}, lambda: [Work(Engine.CONTROL, tile, 5)], full), MODEL)
    load = Load(tile, 24, source="x", target="b")
    with pytest.raises(InputError, match="found 1 words of requests; allowed: 0"):
        lower(Program(2, 2, {}, lambda: [load], {**full, "x": OFFCHIP}), MODEL)


def test_requests_and_words_of_no_buffer_do_not_meet() -> None:
    tile, free = TileSet.tile(0, 0), MODEL.memory_words - 32  # beside one block
    load = Load(tile, 24, source="x", target="b")
    buffers = {"b": BLOCK, "x": OFFCHIP}

    def lowered(flits: int) -> None:
        send = Send(tile, np.array([1]), np.array([1]), flits)
        lower(Program(2, 2, {}, lambda: [load, send], buffers), MODEL)

    lowered(free - 1)
    with pytest.raises(InputError, match="found 1 words of requests; allowed: 0"):
        lowered(free)


@pytest.mark.parametrize(("rows", "cols"), [(9, 8), (16, 4), (2, 16)])
def test_as_many_tiles_with_channels_as_without(rows: int, cols: int) -> None:
    assert TileModel(rows, cols, memory=True).tile_rows == rows - 1


@pytest.mark.parametrize(
    ("rows", "cols", "found"), [(1, 2, "0x2"), (10, 8, "9x8"), (17, 2, "16x2")]
)
def test_tiles_that_are_too_many_or_none(rows: int, cols: int, found: str) -> None:
    said = f"found {found} in Verilog; allowed: 1 to 15 rows, 1 to 16 columns, 64 tiles"
    with pytest.raises(InputError, match=said):
        TileModel(rows, cols, memory=True)
