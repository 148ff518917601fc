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
from tlm.operations import Operation
from tlm.program import Buffer, Load, Program, Store, Token
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
    large = replace(BLOCK, rows=8000)
    moved = Load(TileSet.tile(0, 0), 4, source="x", target="a")
    buffers = {"a": large, "x": replace(large, offchip=True)}
    with pytest.raises(InputError, match="words of a memory channel; allowed: 32768"):
        lower(Program(2, 2, {}, lambda: [moved], buffers), replace(MODEL, bank_depth=8192))


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
