"""Tiles and memory channels in Verilog: blocks from off-chip memory and to it, data and times."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from calibration.simulator import build
from cosim.tiles.blocks import encode
from cosim.tiles.descriptors import BURST_WORDS, Descriptor, Transfer, TransferKind, Words
from cosim.tiles.functional import held_equal
from cosim.tiles.image import TileImage
from cosim.tiles.lowering import edge_words, lower
from cosim.tiles.machine import TileMachine, TileRun
from cosim.tiles.model import TileModel
from cosim.verilog import EDGE_FILES, TILE_FILES
from tlm.calibrated import REPOSITORY, stale_allowed
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing, offchip_channels, own_tile
from tlm.engines.at import run_at
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.memory.dram.calibration import rtl_channel
from tlm.memory.dram.target import DramMemory
from tlm.offchip.edge import Blocks
from tlm.offchip.system import OffChipMemory
from tlm.program import Buffer, Load, Program, Send, Store, Token
from tlm.program.functional import TileBlocks
from tlm.program.operations import Engine, Operation
from tlm.tiles.layout import SUM_BITS, WORD_BITS
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.programs import on_tiles
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.machine.place import chip_place

pytestmark = pytest.mark.rtl

#: With channels of 131,072 words: more than 16 bits of an address say, or a scratchpad has.
MODEL = TileModel(3, 2, operand_bits=8, bank_depth=1024, memory=True, memory_row_width=6)
WORDS = MODEL.channel_words
#: `TRefi` of rtl/memory/memory_channel.sv.
REFRESH_CYCLES = 3900
GRID = (2, 2)
BLOCK = Buffer(6, 8, 32)
OFFCHIP = replace(BLOCK, offchip=True)


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(MODEL) as machine:
        yield machine


def planned(name: str, sizes: tuple[int, ...], schedule: str | None = None) -> Program:
    chip = load_chip("rtl-2x2")
    with stale_allowed(True):
        place = chip_place(chip, GRID, noc_timing(chip), 8, 32, memory=True)
        kernel = KERNELS[name]
        return kernel.program(kernel.planned(sizes, place, Choices(schedule=schedule)))


def random_words(seed: int, *shape: int) -> Words:
    return np.random.default_rng(seed).integers(0, 2**64, shape, dtype=np.uint64)


def channels_held_equal(program: Program, memory: TileBlocks, machine: TileMachine) -> TileRun:
    """As `held_equal`, and then every word of the channels; those of no block stay as they were.

    What a block's last burst has behind the block is nobody's.
    """
    lowered = lower(program, MODEL)
    edge = lowered.edge
    assert edge is not None
    wanted = random_words(4, MODEL.cols, WORDS)
    for col, words in enumerate(wanted):
        machine.write_memory(col, 0, words)
    run = held_equal(program, lowered, memory, machine)
    found = [machine.read_memory(col, 0, WORDS) for col in range(MODEL.cols)]
    # The memory is the functional interpreter's now.
    for at, name, place in edge.blocks():
        first, block = edge.address(at, name), edge_words(place, memory[name][at])
        end = first + len(block)
        wanted[at[1], first:end] = block
        behind = slice(end, end + -end % BURST_WORDS)
        wanted[at[1], behind] = found[at[1]][behind]
    np.testing.assert_array_equal(found, wanted)
    return run


@pytest.mark.parametrize(
    ("name", "sizes", "schedule"),
    [
        ("flat-attention", (1, 2, 2, 16, 16, 8, 8), None),
        ("flat-attention", (1, 2, 2, 32, 32, 16, 16), "naive"),
        ("flash-attention-2", (1, 2, 2, 16, 32, 8, 8), None),
        ("flash-attention-3", (1, 4, 4, 32, 48, 16, 16), None),
        ("flash-attention-3", (1, 4, 4, 32, 32, 16, 16), None),
        # Values come before queries, which are loaded before them.
        ("flash-attention-3", (1, 2, 2, 32, 32, 16, 8), None),
    ],
)
def test_attention_with_its_blocks_off_chip(
    machine: TileMachine, name: str, sizes: tuple[int, ...], schedule: str | None
) -> None:
    run_as_modelled(machine, planned(name, sizes, schedule))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("residual", (16, 128)),
        ("residual", (32, 256)),  # two loads of 64 bursts at once, and a refresh
        ("kv-append", (32, 256)),
        ("gate", (12, 96)),
        ("weighted-sum", (12, 96, 4)),  # weights of rows that end within a burst
        ("rms-norm", (16, 64)),
        ("rotary", (16, 64, 16)),
    ],
)
def test_rows_with_their_blocks_off_chip(
    machine: TileMachine, name: str, sizes: tuple[int, ...]
) -> None:
    run_as_modelled(machine, planned(name, sizes))


@pytest.mark.parametrize("sizes", [(16, 32, 16), (1, 64, 64), (8, 48, 96), (40, 24, 64)])
def test_products_with_operands_off_chip(machine: TileMachine, sizes: tuple[int, ...]) -> None:
    run_as_modelled(machine, planned("stream-gemm", sizes))


def run_as_modelled(machine: TileMachine, program: Program) -> None:
    """The Verilog computes what the program says, and takes the cycles of the model."""
    run = channels_held_equal(program, TileBlocks(program, 3), machine)
    chip = load_chip("rtl-2x2")
    with stale_allowed(True):
        timing, tile = noc_timing(chip), own_tile(chip)
        assert tile is not None
        channel = rtl_channel()
        memory = OffChipMemory(offchip_channels(chip, *GRID), lambda env: DramMemory(env, channel))
        timed, mesh = on_tiles(program, tile), TiledMesh(*GRID, timing, tile, edge_rows=1)
        at = run_at(timed, timing, mesh, queues=tile.queues, offchip=memory)
    assert at.cycles == run.cycles


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("residual", (16, 64)),
        ("kv-append", (32, 64)),
        ("gate", (12, 96)),
        ("stream-gemm", (40, 24, 64)),
    ],
)
def test_blocks_lie_where_the_model_has_them(name: str, sizes: tuple[int, ...]) -> None:
    program, chip = planned(name, sizes), load_chip("rtl-2x2")
    lowered = lower(program, MODEL)
    with stale_allowed(True):
        tile = own_tile(chip)
        assert tile is not None
        modelled = Blocks(on_tiles(program, tile), offchip_channels(chip, *GRID))
    assert lowered.edge is not None
    for at, block, _ in lowered.edge.blocks():
        assert modelled.address(at, block) == lowered.edge.address(at, block) * WORD_BITS // 8


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
    memory = TileBlocks(program, 5)
    wanted = memory["a"].copy()
    channels_held_equal(program, memory, machine)
    for name in "bxy":
        assert (memory[name] == wanted).all()


def test_blocks_larger_than_a_scratchpad_together(machine: TileMachine) -> None:
    """Each tile has five blocks in its channel; each goes to the next one's place, by the tile."""
    everywhere, block = TileSet(range(2), range(2)), replace(BLOCK, rows=500)
    names = [f"x{n}" for n in range(5)]
    buffers = {"a": block} | dict.fromkeys(names, replace(block, offchip=True))
    operations: list[Operation] = []
    for name, following in pairwise(names):
        operations += [
            Load(everywhere, 2000, takes=("free",), arrivals=("there",), source=name, target="a"),
            Store(
                everywhere, 2000, takes=("there",), arrivals=("free",), source="a", target=following
            ),
        ]
    program = Program(2, 2, {"free": Token(1), "there": Token()}, lambda: operations, buffers)
    memory = TileBlocks(program, 6)
    wanted = memory["x0"].copy()
    channels_held_equal(program, memory, machine)
    for name in names:
        assert (memory[name] == wanted).all()


def answers_in_a_crowd() -> Program:
    """The northern tiles load blocks while the southern ones send them others on the same links."""
    north, south = TileSet(range(1), range(2)), TileSet(range(1, 2), range(2))
    block = replace(BLOCK, rows=100)
    buffers = dict.fromkeys("abc", block) | {"x": replace(block, offchip=True)}
    operations: list[Operation] = [
        Load(north, 400, source="x", target="c"),
        Send(south, np.array([0]), np.array([0, 1]), 400, source="a", target="b"),
    ]
    return Program(2, 2, {}, lambda: operations, buffers)


def loads_past_a_refresh() -> Program:
    """Channels that are asked without a pause."""
    block = replace(BLOCK, rows=250)
    buffers = {"a": block, "x": replace(block, offchip=True)}
    everywhere, turn = TileSet(range(2), range(2)), ("there",)
    load = Load(everywhere, 1000, takes=turn, arrivals=turn, source="x", target="a")
    return Program(2, 2, {"there": Token(1)}, lambda: [load] * 4, buffers)


def at_once(moves: Sequence[tuple[bool, int, int]]) -> Program:
    """Loads and stores that wait for nothing: whether it loads, the row of tiles, words."""
    buffers: dict[str, Buffer] = {}
    operations: list[Operation] = []
    for number, (loads, row, words) in enumerate(moves):
        inside, outside = f"in.{number}", f"out.{number}"
        buffers[inside] = Buffer(1, words * WORD_BITS // SUM_BITS, SUM_BITS)
        buffers[outside] = replace(buffers[inside], offchip=True)
        tiles = TileSet(range(row, row + 1), range(2))
        operations.append(
            Load(tiles, words, source=outside, target=inside)
            if loads
            else Store(tiles, words, source=inside, target=outside)
        )
    return Program(2, 2, {}, lambda: operations, buffers)


@settings(deadline=None, max_examples=20)
@example([(True, number % 2, 1) for number in range(40)])  # more than there are slots
@example([(number % 3 > 0, number // 3 % 2, 2) for number in range(60)])
@example([(number % 2 > 0, number // 2 % 2, 40) for number in range(16)])
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1), st.integers(1, 40)), min_size=1))
def test_whatever_is_asked_for_at_once(
    machine: TileMachine, moves: list[tuple[bool, int, int]]
) -> None:
    run_as_modelled(machine, at_once(moves))


def test_answers_wait_for_what_tiles_send(machine: TileMachine) -> None:
    program = answers_in_a_crowd()
    run = channels_held_equal(program, TileBlocks(program, 7), machine)
    assert run.cycles > 800  # one after the other


@settings(deadline=None, max_examples=30)
@example(near=1 << 16, bursts=-2, rows=1, row_bursts=5, gap_bursts=0, seed=0)
@example(near=1 << 16, bursts=-2, rows=2, row_bursts=2, gap_bursts=9000, seed=0)
@given(
    near=st.sampled_from([0, 1 << 12, 1 << 13, 1 << 16, 3 << 15, WORDS]),
    bursts=st.integers(-8, 8),
    rows=st.integers(1, 3),
    row_bursts=st.integers(1, 5),
    gap_bursts=st.sampled_from([0, 1, 4096, 9000]),
    seed=st.integers(0, 2**20),
)
def test_a_store_reaches_all_of_a_channel(
    machine: TileMachine, near: int, bursts: int, rows: int, row_bursts: int, gap_bursts: int,
    seed: int,
) -> None:  # fmt: skip
    words, distance = 4 * row_bursts, 4 * (row_bursts + gap_bursts)
    most = WORDS - (rows - 1) * distance - words
    target = min(max(near + 4 * bursts, 0), most)
    sent, wanted = random_words(seed, rows, words), random_words(seed + 1, 2, WORDS)
    store = Transfer(
        TransferKind.UNICAST, words, 0, target, row=2, col=1, rows=rows, source_row=words,
        target_row=distance,
    )  # fmt: skip
    image = TileImage({Engine.TRANSFER: [Descriptor(store)]}, memory={0: sent.reshape(-1)})
    for col in (0, 1):
        machine.write_memory(col, 0, wanted[col])
    machine.run({0: image})
    for row in range(rows):
        wanted[1, target + row * distance :][:words] = sent[row]
    for col in (0, 1):
        np.testing.assert_array_equal(machine.read_memory(col, 0, WORDS), wanted[col])


def test_refreshes_come_at_the_same_cycles_whatever_is_loaded(machine: TileMachine) -> None:
    images = lower(planned("flash-attention-3", (1, 4, 4, 32, 32, 16, 16)), MODEL).images
    short = machine.run(images)
    images[0].memory[0] = np.zeros(1500, np.uint64)  # 1500 cycles more to load
    assert machine.run(images) == short
    assert short.cycles > REFRESH_CYCLES


def test_words_of_channels_that_are_not_there(machine: TileMachine) -> None:
    words = np.arange(4, dtype=np.uint64)
    for col in (-1, 2):
        with pytest.raises(InputError, match=f"channel: found {col}; allowed: 0 to 1"):
            machine.write_memory(col, 0, words)
        with pytest.raises(InputError, match=f"channel: found {col}; allowed: 0 to 1"):
            machine.read_memory(col, 0, 4)
    with pytest.raises(InputError, match="found words 131070 to 131073; allowed: 0 to 131071"):
        machine.write_memory(1, 131_070, words)
    machine.write_memory(1, 131_068, np.arange(8)[::2])
    assert machine.read_memory(1, 131_068, 4).tolist() == [0, 2, 4, 6]


@pytest.mark.slow
@pytest.mark.parametrize(
    "program_of",
    [
        lambda: planned("flat-attention", (1, 2, 2, 16, 16, 8, 8)),
        answers_in_a_crowd,
        loads_past_a_refresh,
    ],
    ids=["attention", "answers in a crowd", "past a refresh"],
)
def test_the_mesh_in_one_piece_does_the_same(
    machine: TileMachine, program_of: Callable[[], Program]
) -> None:
    program = program_of()
    lowered, memory = lower(program, MODEL), TileBlocks(program)
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
    events = mesh.run("tests.rtl.benches.tile_mesh_bench", plan, seed=1)
    wanted = [(cycle, "arrival", tile) for tile, cycle in run.arrivals]
    for span in run.spans:
        place = 4 * span.tile + span.engine
        wanted += [(span.start_cycle, "start", place), (span.end_cycle, "end", place)]
    assert sorted(map(tuple, events)) == sorted(wanted)
