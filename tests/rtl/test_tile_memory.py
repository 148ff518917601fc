"""Tiles and memory channels in Verilog: blocks from off-chip memory and to it, data and times."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from calibration.harness.simulator import build
from calibration.tile.blocks import encode
from calibration.tile.functional import held_equal
from calibration.tile.image import TileImage
from calibration.tile.lowering import lower
from calibration.tile.machine import TileMachine
from calibration.tile.model import EDGE_FILES, TILE_FILES, TileModel
from tlm.calibrated import REPOSITORY, stale_allowed
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing, offchip_channels, own_tile
from tlm.engines.at import run_at
from tlm.errors import InputError
from tlm.functional import Memory
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.memory.calibration import rtl_channel
from tlm.memory.dram_target import DramMemory
from tlm.offchip.system import OffChipMemory
from tlm.operations import Engine, Operation
from tlm.program import Buffer, Load, Program, Send, Store, Token, Work
from tlm.tiles.programs import on_tiles
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.kernels.target import chip_target

pytestmark = pytest.mark.rtl

MODEL = TileModel(3, 2, operand_bits=8, bank_depth=1024, memory=True)
GRID = (2, 2)
BLOCK = Buffer(6, 8, 32)
OFFCHIP = replace(BLOCK, offchip=True)


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(MODEL) as machine:
        yield machine


def attention(name: str, sizes: tuple[int, ...], schedule: str | None = None) -> Program:
    chip = load_chip("rtl-2x2")
    with stale_allowed(True):
        target = chip_target(chip, GRID, noc_timing(chip), 8, 32)
        target = replace(target, offchip=offchip_channels(chip, *GRID))
        kernel = KERNELS[name]
        return kernel.program(kernel.planned(sizes, target, Choices(schedule=schedule)))


@pytest.mark.parametrize(
    ("name", "sizes", "schedule"),
    [
        ("flat-attention", (1, 2, 2, 16, 16, 8, 8), None),
        ("flat-attention", (1, 2, 2, 32, 32, 16, 16), "naive"),
        ("flash-attention-2", (1, 2, 2, 16, 32, 8, 8), None),
        ("flash-attention-3", (1, 4, 4, 32, 32, 16, 16), None),
    ],
)
def test_attention_with_its_blocks_off_chip(
    machine: TileMachine, name: str, sizes: tuple[int, ...], schedule: str | None
) -> None:
    program = attention(name, sizes, schedule)
    run = held_equal(program, Memory(program, 3), machine)
    chip = load_chip("rtl-2x2")
    with stale_allowed(True):
        timing, tile = noc_timing(chip), own_tile(chip)
        assert tile is not None
        channel = rtl_channel()
        memory = OffChipMemory(offchip_channels(chip, *GRID), lambda env: DramMemory(env, channel))
        timed, mesh = on_tiles(program, tile), HandshakeMesh(3, 2, timing)
        at = run_at(timed, timing, mesh, queues=tile.queues, offchip=memory)
    assert at.cycles == pytest.approx(run.cycles, rel=0.03)


def test_what_is_stored_is_loaded(machine: TileMachine) -> None:
    """Every tile stores a block, learns that it is kept, loads it elsewhere, and stores that."""
    everywhere = TileSet(range(2), range(2))
    buffers = {"a": BLOCK, "b": BLOCK, "x": OFFCHIP, "y": OFFCHIP}
    operations: list[Operation] = [
        Store(everywhere, 24, arrivals=("kept",), source="a", target="x"),
        Load(everywhere, 24, takes=("kept",), arrivals=("there",), source="x", target="b"),
        Store(everywhere, 24, takes=("there",), source="b", target="y"),
    ]
    tokens = {"kept": Token(), "there": Token()}
    program = Program(2, 2, tokens, lambda: operations, buffers)
    memory = Memory(program, 5)
    wanted = memory["a"].copy()
    held_equal(program, memory, machine)
    for name in "bxy":
        assert (memory[name] == wanted).all()


def test_refused() -> None:
    load = Load(TileSet.tile(0, 0), 4, source="x", target="a")
    program = Program(2, 2, {}, lambda: [load], {"a": BLOCK, "x": OFFCHIP})
    with pytest.raises(InputError, match="found a load or store; allowed with memory channels"):
        lower(program, TileModel(2, 2))
    with pytest.raises(InputError, match="found 2x2 tiles; allowed: 1x2"):
        lower(program, replace(MODEL, rows=2))
    moved = Load(TileSet.tile(0, 0), 4, source="x", target="a")
    for rows, bank_depth, allowed in ((8000, 8192, 32768), (1100, 1024, 8192)):
        large = replace(BLOCK, rows=rows)
        buffers = {"a": large, "x": replace(large, offchip=True)}
        with pytest.raises(InputError, match=f"words of a memory channel; allowed: {allowed}, "):
            lower(
                Program(2, 2, {}, lambda: [moved], buffers), replace(MODEL, bank_depth=bank_depth)
            )


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


def test_words_of_channels_that_are_not_there(machine: TileMachine) -> None:
    words = np.arange(4, dtype=np.uint64)
    for col in (-1, 2):
        with pytest.raises(InputError, match=f"channel: found {col}; allowed: 0 to 1"):
            machine.write_memory(col, 0, words)
        with pytest.raises(InputError, match=f"channel: found {col}; allowed: 0 to 1"):
            machine.read_memory(col, 0, 4)
    with pytest.raises(InputError, match="found words 32766 to 32769; allowed: 0 to 32767"):
        machine.write_memory(1, 32766, words)
    machine.write_memory(1, 32764, np.arange(8)[::2])
    assert machine.read_memory(1, 32764, 4).tolist() == [0, 2, 4, 6]


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


@pytest.mark.slow
def test_the_mesh_in_one_piece_does_the_same(machine: TileMachine) -> None:
    program = attention("flat-attention", (1, 2, 2, 16, 16, 8, 8))
    lowered, memory = lower(program, MODEL), Memory(program)
    for tile, image in lowered.images.items():
        image.memory |= {
            place.address: encode(place, memory[name][divmod(tile, 2)])
            for name, place in lowered.places.items()
            if place.in_tile
        }
    run = machine.run(lowered.images)
    images = [lowered.images.get(node, TileImage()) for node in range(MODEL.tiles)]
    loads = [image.loads(MODEL.queue_depth) for image in images]
    plan = {
        "tiles": MODEL.tiles,
        "loads": [
            [np.column_stack(pair).tolist() for pair in lists] for lists in zip(*loads, strict=True)
        ],
    }
    sources = [*TILE_FILES, *EDGE_FILES, REPOSITORY / "rtl" / "tile" / "tile_mesh.sv"]
    mesh = build("tile_mesh", sources, MODEL.parameters())
    events = mesh.run("calibration.benches.tile_mesh_bench", plan, seed=1)
    wanted = [(cycle, "arrival", tile) for tile, cycle in run.arrivals]
    for span in run.spans:
        place = 4 * span.tile + span.engine
        wanted += [(span.start_cycle, "start", place), (span.end_cycle, "end", place)]
    assert sorted(map(tuple, events)) == sorted(wanted)
