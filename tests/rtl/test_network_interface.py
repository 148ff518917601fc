"""The network interface in Verilog: words that reach other memories, tokens, and their cycles."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.tiles.blocks import block_of, rows_of, wrapped
from cosim.tiles.descriptors import Descriptor, Transfer, TransferKind, Wait, Words
from cosim.tiles.image import TileImage
from cosim.tiles.lowering import lower
from cosim.tiles.machine import TileMachine, TileRun
from cosim.tiles.model import TileModel
from tlm.engines.at import run_at
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Program, Send
from tlm.tiles.timing import QueueTiming

pytestmark = pytest.mark.rtl

SOURCE, TARGET = 8, 2048
UNICAST, MULTICAST, SUM, MAXIMUM = TransferKind
#: Cycles from a transfer's start to its first flit at the router, both before it.
ISSUE = 3


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(TileModel(2, 2)) as machine:
        yield machine


def words_of(seed: int, count: int) -> Words:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def sender(jobs: list[Transfer], words: Words) -> TileImage:
    return TileImage({Engine.TRANSFER: [Descriptor(job) for job in jobs]}, memory={SOURCE: words})


def waiter(*tokens: int) -> list[Descriptor]:
    """A control queue that takes tokens one after the other."""
    return [Descriptor(Wait(), takes=frozenset([token])) for token in tokens]


def arrival(run: TileRun, tile: int) -> int:
    cycles = [cycle for at, cycle in run.arrivals if at == tile]
    assert len(cycles) == 1
    return cycles[0]


@pytest.mark.parametrize("flits", [1, 2, 4, 5, 40])
@pytest.mark.parametrize(("to", "hops"), [((0, 1), 1), ((1, 1), 2), ((0, 0), 0)])
def test_a_unicast(machine: TileMachine, to: tuple[int, int], hops: int, flits: int) -> None:
    words = words_of(flits, flits)
    job = Transfer(UNICAST, flits, SOURCE, TARGET, row=to[0], col=to[1], tokens=(5,))
    images = {0: sender([job], words)}
    node = 2 * to[0] + to[1]
    images.setdefault(node, TileImage()).queues[Engine.CONTROL] = waiter(5)
    run = machine.run(images)
    np.testing.assert_array_equal(machine.read(node, TARGET, flits), words)
    [span] = run.of(0, Engine.TRANSFER)
    assert span.cycles == ISSUE + flits
    assert arrival(run, node) - span.start_cycle == ISSUE + hops + 1 + flits - 1
    # The token is there in the cycle after the last word was written.
    assert run.of(node, Engine.CONTROL)[0].start_cycle == arrival(run, node) + 1


def test_rows_at_any_distance_on_either_side(machine: TileMachine) -> None:
    words = words_of(1, 60)
    job = Transfer(UNICAST, 3, SOURCE, TARGET, row=1, col=0, rows=4, source_row=11, target_row=7)
    machine.run({0: sender([job], words), 2: TileImage(memory={TARGET: np.zeros(60, np.uint64)})})
    got = machine.read(2, TARGET, 60)
    expected = np.zeros(60, np.uint64)
    for row in range(4):
        expected[7 * row : 7 * row + 3] = words[11 * row : 11 * row + 3]
    np.testing.assert_array_equal(got, expected)


def test_transfers_follow_each_other_without_a_gap(machine: TileMachine) -> None:
    words = words_of(2, 24)
    jobs = [Transfer(UNICAST, 8, SOURCE + 8 * n, TARGET + 8 * n, col=1) for n in range(3)]
    run = machine.run({0: sender(jobs, words)})
    np.testing.assert_array_equal(machine.read(1, TARGET, 24), words)
    spans = run.of(0, Engine.TRANSFER)
    first = spans[0].start_cycle
    # The next one is read from memory while the one before leaves: two are under way, never three.
    assert [span.start_cycle - first for span in spans] == [0, 8, 16]
    assert [span.end_cycle - first for span in spans] == [10, 18, 26]


@pytest.mark.parametrize(
    ("flits", "starts"), [(1, [0, 1, 4, 5, 8]), (2, [0, 2, 5, 7, 10]), (3, [0, 3, 6, 9, 12])]
)
def test_short_transfers_wait_for_room_among_those_outstanding(
    machine: TileMachine, flits: int, starts: list[int]
) -> None:
    # Two are under way, F + 3 cycles each: max(F, (F + 3) / 2) cycles apart on average.
    jobs = [Transfer(UNICAST, flits, SOURCE, TARGET, col=1)] * 5
    spans = machine.run({0: sender(jobs, words_of(3, flits))}).of(0, Engine.TRANSFER)
    assert [span.start_cycle for span in spans] == starts


@pytest.mark.parametrize(
    ("outstanding", "starts"),
    [(1, [0, 4, 8, 12, 16, 20]), (3, [0, 1, 2, 4, 5, 6]), (4, [0, 1, 2, 3, 4, 5])],
)
@pytest.mark.slow  # tiles of their own are built
def test_as_many_transfers_are_under_way_as_the_tile_is_built_for(
    outstanding: int, starts: list[int]
) -> None:
    model = TileModel(2, 2, outstanding=outstanding)
    send = Send(TileSet.tile(0, 0), np.array([0]), np.array([1]), flits=1)
    program = Program(2, 2, {}, lambda: [send] * len(starts))
    with TileMachine(model) as machine:
        run = machine.run(lower(program, model).images)
    assert [span.start_cycle for span in run.of(0, Engine.TRANSFER)] == starts
    # At the level `at`, the same.
    queues, timing = QueueTiming(launch_cycles=ISSUE, outstanding=outstanding), rtl_timing()
    outcome = run_at(program, timing, HandshakeMesh(2, 2, timing), queues=queues)
    assert outcome.cycles == run.cycles


@pytest.mark.parametrize("kind", [UNICAST, MULTICAST])
def test_of_two_transfers_to_one_address_the_later_one_stays(
    machine: TileMachine, kind: TransferKind
) -> None:
    words = words_of(5, 60)
    jobs = [
        Transfer(kind, 30, SOURCE + place, TARGET, row=1, col=1, row_mask=2, col_mask=2)
        for place in (0, 30)
    ]
    machine.run({0: sender(jobs, words)})
    np.testing.assert_array_equal(machine.read(3, TARGET, 30), words[30:])


def test_a_later_unicast_passes_a_reduction_that_waits(machine: TileMachine) -> None:
    # Tile 2's operand comes late; what tile 0 sends behind its own is there before the sum.
    words = words_of(6, 8) & np.uint64(0xFF)
    operand = Transfer(
        SUM, 4, SOURCE, TARGET, row=1, col=1, row_mask=3, col_mask=1, tokens=(1,)
    )  # fmt: skip
    late = Transfer(
        SUM, 4, SOURCE, TARGET, row=1, col=1, row_mask=3, col_mask=1, carry=False
    )  # fmt: skip
    behind = Transfer(UNICAST, 4, SOURCE + 4, TARGET, row=1, col=1, tokens=(2,))
    images = {0: sender([operand, behind], words), 2: sender([], words)}
    images[2].queues[Engine.TRANSFER] = [Descriptor(Wait(200)), Descriptor(late)]
    machine.run(images)
    np.testing.assert_array_equal(machine.read(3, TARGET, 4), 2 * words[:4])


@pytest.mark.parametrize("flits", [1, 4, 9, 30])
def test_a_multicast_is_cut_into_packets(machine: TileMachine, flits: int) -> None:
    words = words_of(flits, flits)
    job = Transfer(MULTICAST, flits, SOURCE, TARGET, row_mask=3, col_mask=3, tokens=(1,))
    images = {tile: TileImage({Engine.CONTROL: waiter(1)}) for tile in range(4)}
    images[0].queues[Engine.TRANSFER] = [Descriptor(job)]
    images[0].memory[SOURCE] = words
    run = machine.run(images)
    for tile in range(4):
        np.testing.assert_array_equal(machine.read(tile, TARGET, flits), words)
    # rtl/README.md, "Cycles": a full packet but the first waits a cycle on each of its links.
    full = sum(min(flits - place, 4) == 4 for place in range(4, flits, 4))
    start = run.of(0, Engine.TRANSFER)[0].start_cycle
    assert arrival(run, 3) - start == ISSUE + 3 + flits - 1 + full


@pytest.mark.parametrize(("kind", "combine"), [(SUM, np.sum), (MAXIMUM, np.max)])
def test_of_a_reduction_one_operand_carries_address_and_token(
    machine: TileMachine, kind: TransferKind, combine: object
) -> None:
    blocks = np.random.default_rng(4).integers(-(2**31), 2**31, (4, 1, 22))
    images = {}
    for tile in range(4):
        job = Transfer(
            kind,
            11,
            SOURCE,
            TARGET,
            row=1,
            col=0,
            row_mask=3,
            col_mask=3,
            tokens=(9,),
            carry=tile == 3,
        )
        images[tile] = sender([job], rows_of(blocks[tile]))
    images[2].queues[Engine.CONTROL] = waiter(9)
    run = machine.run(images)
    assert callable(combine)
    got = block_of(machine.read(2, TARGET, 11), (1, 22))
    np.testing.assert_array_equal(got, wrapped(combine(blocks, axis=0)))
    assert [tile for tile, _ in run.arrivals] == [2]


@st.composite
def traffic(draw: st.DrawFn) -> list[list[Transfer]]:
    """Transfers of every tile, each to a place of its own at its destinations."""
    queues: list[list[Transfer]] = []
    place = TARGET
    for _ in range(4):
        queue = []
        for _ in range(draw(st.integers(0, 3))):
            words, rows = draw(st.integers(1, 12)), draw(st.integers(1, 3))
            masks = draw(st.integers(1, 3)), draw(st.integers(1, 3))
            kind = draw(st.sampled_from([UNICAST, MULTICAST]))
            queue.append(
                Transfer(
                    kind, words, SOURCE + draw(st.integers(0, 50)), place,
                    row=draw(st.integers(0, 1)), col=draw(st.integers(0, 1)),
                    row_mask=masks[0], col_mask=masks[1], rows=rows,
                    source_row=draw(st.integers(0, 20)), target_row=words,
                )
            )  # fmt: skip
            place += words * rows
        queues.append(queue)
    return queues


@given(queues=traffic())
@settings(max_examples=50)
def test_everything_arrives_where_it_should(
    machine: TileMachine, queues: list[list[Transfer]]
) -> None:
    data = [words_of(tile, 100) for tile in range(4)]
    blank = np.zeros(1024, np.uint64)
    images = {}
    for tile, jobs in enumerate(queues):
        images[tile] = sender(jobs, data[tile])
        images[tile].memory[TARGET] = blank
    machine.run(images)
    expected = np.zeros((4, 1024), np.uint64)
    for tile, jobs in enumerate(queues):
        for job in jobs:
            begin = job.source - SOURCE
            rows = [data[tile][begin + job.source_row * r :][: job.words] for r in range(job.rows)]
            block = np.concatenate(rows)
            for node in range(4):
                marked = job.row_mask >> node // 2 & 1 and job.col_mask >> node % 2 & 1
                if marked if job.kind is MULTICAST else node == 2 * job.row + job.col:
                    expected[node, job.target - TARGET :][: len(block)] = block
    for node in range(4):
        np.testing.assert_array_equal(machine.read(node, TARGET, 1024), expected[node])
