"""The sequencer in Verilog: in-order queues, counting tokens, credits, and small programs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cosim.errors import HangError, SimulationError
from cosim.tiles.blocks import block_of, rows_of
from cosim.tiles.descriptors import Credit, Descriptor, Job, Transfer, TransferKind, Wait
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine, TileRun
from cosim.tiles.model import TileModel
from tlm.errors import InputError
from tlm.program import Engine
from tlm.tiles.jobs import MatrixJob, VectorJob

pytestmark = pytest.mark.rtl


@pytest.fixture(scope="module")
def machine() -> Iterator[TileMachine]:
    with TileMachine(TileModel(2, 2)) as machine:
        yield machine


def wait(
    cycles: int,
    takes: tuple[int, ...] = (),
    gives: tuple[int, ...] = (),
    credits: tuple[Credit, ...] = (),
    label: str = "",
) -> Descriptor:
    return Descriptor(Wait(cycles), frozenset(takes), frozenset(gives), credits, label)


def timeline(run: TileRun, tile: int, engine: Engine) -> list[tuple[int, int]]:
    """First and last cycles of an engine's descriptors."""
    return [(span.start_cycle, span.end_cycle) for span in run.of(tile, engine)]


def test_a_queue_is_in_order_and_tokens_are_there_in_the_next_cycle(machine: TileMachine) -> None:
    queues = {
        Engine.MATRIX: [wait(10, gives=(1,)), wait(5, takes=(2,)), wait(3)],
        Engine.VECTOR: [wait(4, takes=(1,), gives=(2,)), wait(2)],
    }
    run = machine.run({1: TileImage(queues)})
    # In cycle 14 both could start; it is the matrix queue's turn.
    assert timeline(run, 1, Engine.MATRIX) == [(0, 9), (14, 18), (19, 21)]
    assert timeline(run, 1, Engine.VECTOR) == [(10, 13), (15, 16)]


def test_tokens_are_counted(machine: TileMachine) -> None:
    queues = {
        Engine.CONTROL: [wait(2, gives=(7,))] * 3,
        Engine.VECTOR: [wait(20, takes=(7,))] * 5,
    }
    run = machine.run({0: TileImage(queues, tokens={7: 2})})
    # Two units are there from the start, three come at once: all of them are taken, in time.
    starts = [start for start, _ in timeline(run, 0, Engine.VECTOR)]
    assert np.diff(starts).tolist() == [20] * 4


def test_of_descriptors_that_could_start_together_one_does(machine: TileMachine) -> None:
    queues = {engine: [wait(6)] * 2 for engine in Engine}
    run = machine.run({0: TileImage(queues)})
    starts = [timeline(run, 0, engine)[0][0] for engine in Engine]
    assert sorted(starts) == [0, 1, 2, 3]
    # Of those that can start in every other cycle, each has its turn: one a cycle, of four queues.
    busy = machine.run({0: TileImage({engine: [wait(2)] * 3 for engine in Engine})})
    for engine in Engine:
        assert [start for start, _ in timeline(busy, 0, engine)] == [engine, engine + 4, engine + 8]
    # Two that want the same unit: it is taken once.
    pair = {engine: [wait(4, takes=(3,), gives=(3,))] for engine in (Engine.MATRIX, Engine.VECTOR)}
    spans = machine.run({0: TileImage(pair, tokens={3: 1})}).spans
    assert spans[1].start_cycle == spans[0].end_cycle + 1


def test_a_credit_takes_the_way_of_a_flit(machine: TileMachine) -> None:
    for tile, hops in ((1, 1), (3, 2), (0, 0)):
        giver = [wait(5, credits=(Credit(0, 0, 11),))]
        images = {tile: TileImage({Engine.VECTOR: giver})}
        taker = {Engine.CONTROL: [wait(2, takes=(11,))]}
        images.setdefault(0, TileImage()).queues.update(taker)
        run = machine.run(images)
        # Given at 5, offered in that cycle, one flit over h hops, there in the next cycle.
        assert timeline(run, 0, Engine.CONTROL)[0][0] == 5 + 1 + hops + 1


def test_credits_leave_one_a_cycle_and_none_is_lost(machine: TileMachine) -> None:
    # All engines of all tiles give eight credits twice to tile 2: 256 units in all.
    credits = tuple(Credit(1, 0, 20 + n) for n in range(8))
    images = {
        tile: TileImage({engine: [wait(2, credits=credits)] * 2 for engine in Engine})
        for tile in range(4)
    }
    takers = [wait(2, takes=tuple(range(20, 28)))] * 32
    images[2].queues[Engine.CONTROL] = images[2].queues[Engine.CONTROL] + takers
    run = machine.run(images)
    # They come one a cycle: the last ones 256 cycles after the first, and no more than a few more.
    assert 256 < run.of(2, Engine.CONTROL)[-1].start_cycle <= 256 + 20


def test_a_transfer_does_not_overtake_a_wait_whose_end_waits_for_credits(
    machine: TileMachine,
) -> None:
    # Given in cycle 1, eight credits leave from 2 to 9; then the wait ends, the transfer starts.
    credits = tuple(Credit(1, 1, 20 + n) for n in range(8))
    send = Descriptor(Transfer(TransferKind.UNICAST, 4, 0, 64, col=1))
    run = machine.run({0: TileImage({Engine.TRANSFER: [wait(2, credits=credits), wait(2), send]})})
    assert timeline(run, 0, Engine.TRANSFER) == [(0, 1), (2, 9), (10, 16)]


def test_queues_that_owe_credits_take_turns_whatever_stalls_them(machine: TileMachine) -> None:
    # Tiles 1 and 3 have two thirds of tile 1's port, so that credits of tile 0 have to stand there.
    def giver(cycles: int, token: int) -> list[Descriptor]:
        return [wait(cycles, credits=(Credit(0, 1, token),) * 8)]

    begins = {Engine.MATRIX: 4, Engine.VECTOR: 8, Engine.CONTROL: 7}
    givers = {engine: giver(cycles, 20 + engine) for engine, cycles in begins.items()}
    takers = {engine: [wait(2, takes=(20 + engine,))] * 8 for engine in begins}
    crowd = {Engine.TRANSFER: giver(2, 63) * 4}
    images = {0: TileImage(givers), 1: TileImage(takers | crowd), 3: TileImage(crowd)}
    run = machine.run(images)
    taken = [span for span in run.spans if span.tile == 1 and span.engine in begins]
    order = "".join("MVTC"[span.engine] for span in sorted(taken, key=lambda s: s.start_cycle))
    # The others ask while the matrix queue's fifth credit stands; none of them is passed over.
    assert order == "MMMMM" + "VCM" * 3 + "VC" * 5


def test_double_buffering_between_two_tiles(machine: TileMachine) -> None:
    # docs/programs.md, "An example": four blocks, each worked on for 20 cycles, one or two slots.
    def images(slots: int) -> dict[int, TileImage]:
        send = [
            Descriptor(Transfer(TransferKind.UNICAST, 8, 0, 64, col=1, tokens=(1,)), frozenset([2]))
        ] * 4
        work = [wait(20, takes=(1,), credits=(Credit(0, 0, 2),))] * 4
        return {
            0: TileImage({Engine.TRANSFER: send}, {2: slots}, {0: np.zeros(8, np.uint64)}),
            1: TileImage({Engine.MATRIX: work}),
        }

    for slots, issue_cycles in ((1, 4 * 3), (2, 3)):
        # One hop: a block takes 1 + 1 + 8 cycles and 3 to be issued, a credit 1 + 1 + 1.
        run = machine.run(images(slots))
        work = timeline(run, 1, Engine.MATRIX)
        rounds = 4 * (10 + 20) + 3 * 3 if slots == 1 else 10 + 4 * 20
        assert work[-1][1] + 1 == rounds + issue_cycles


def test_a_relay_in_software(machine: TileMachine) -> None:
    # Tile 1 gets a block from 0, adds its own, and passes the sum on to 3: a reduction in software.
    here, own, sum_there = 64, 129, 194
    blocks = np.random.default_rng(6).integers(-1000, 1000, (2, 1, 32))
    flits = 16
    add = VectorJob("add", flits, 1, here, flits, sum_there, flits, flits, b=own, b_row=flits)
    unicast = TransferKind.UNICAST
    first = Descriptor(Transfer(unicast, flits, 0, here, row=0, col=1, tokens=(1,)))
    on = Descriptor(Transfer(unicast, flits, sum_there, here, row=1, col=1), frozenset([2]))
    images = {
        0: TileImage({Engine.TRANSFER: [first]}, memory={0: rows_of(blocks[0])}),
        1: TileImage(
            {
                Engine.VECTOR: [Descriptor(add, frozenset([1]), frozenset([2]))],
                Engine.TRANSFER: [on],
            },
            memory={own: rows_of(blocks[1])},
        ),
    }
    run = machine.run(images)
    got = block_of(machine.read(3, here, flits), (1, 32))
    np.testing.assert_array_equal(got, blocks.sum(axis=0))
    # A stage: the block's flits on the link, the pass of the vector engine, issuing the next.
    [sent] = run.of(0, Engine.TRANSFER)
    [forwarded] = run.of(1, Engine.TRANSFER)
    link, touch, issue = 1 + 1 + flits, flits + 6, 3
    assert forwarded.start_cycle - sent.start_cycle == issue + link + touch


def test_a_program_that_waits_for_ever_says_where(machine: TileMachine) -> None:
    queues = {Engine.VECTOR: [wait(4), wait(4, takes=(9,), label="never")]}
    with pytest.raises(HangError) as error:
        machine.run({2: TileImage(queues)})
    assert str(error.value) == (
        "tile mesh 2x2 stands still since cycle 4; 1 queues have not ended, next: "
        "tile 2 vector 1 'never'"
    )


def test_what_a_tile_cannot_hold_is_refused(machine: TileMachine) -> None:
    with pytest.raises(InputError) as error:
        machine.run({0: TileImage({Engine.MATRIX: [wait(2)] * 257})})
    assert str(error.value) == "tile 0: matrix queue: found 257 descriptors; allowed: 256"
    with pytest.raises(InputError) as error:
        machine.run({0: TileImage(memory={4000: np.zeros(97, np.uint64)})})
    assert str(error.value) == "tile 0: found words 4000 to 4096; allowed: 0 to 4095"
    with pytest.raises(InputError) as error:
        wait(2, takes=(64,)).encode()
    assert str(error.value) == "descriptor: token: found 64; allowed: 0 to 63"


def test_a_closed_machine_says_so() -> None:
    with TileMachine(TileModel(2, 2)) as machine:
        pass
    machine.close()
    closed = pytest.raises(SimulationError, match=r"^tile mesh 2x2: the model is closed$")
    with closed:
        machine.run({0: TileImage({Engine.MATRIX: [wait(2)]})})
    with closed:
        machine.read(0, 0, 1)


def test_a_run_ends_with_the_last_end_not_with_the_last_credit(machine: TileMachine) -> None:
    run = machine.run({0: TileImage({Engine.VECTOR: [wait(9, credits=(Credit(1, 1, 3),))]})})
    assert run.cycles == run.spans[0].end_cycle + 1 == 9


def test_a_run_ends_with_the_last_word_whether_or_not_it_gives_a_token(
    machine: TileMachine,
) -> None:
    def run(*tokens: int) -> TileRun:
        job = Transfer(TransferKind.UNICAST, 5, 0, 64, row=1, col=1, tokens=tokens)
        return machine.run({0: TileImage({Engine.TRANSFER: [Descriptor(job)]})})

    assert run(4).cycles == run(4).arrivals[0][1] + 1
    assert run().cycles == run(4).cycles


def test_memory_is_read_right_while_what_was_cut_short_still_works(machine: TileMachine) -> None:
    # A pass that reads and writes one bank only, of which every word is then read.
    words = np.random.default_rng(2).integers(0, 2**64, 4096, dtype=np.uint64)
    work = VectorJob("scale", 1, 200, 0, 8, 2048, 8, 1)
    queues = {Engine.VECTOR: [Descriptor(work)] * 20}
    with pytest.raises(HangError, match="runs at cycle 100"):
        machine.run({0: TileImage(queues, memory={0: words})}, limit_cycles=100)
    np.testing.assert_array_equal(machine.read(0, 0, 2048), words[:2048])


def test_a_wave_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none" / "tiles.vcd"
    with pytest.raises(InputError) as error:
        TileMachine(TileModel(2, 2), waves=path)
    assert str(error.value) == f"{path}: No such file or directory; allowed: a file for the wave"


@pytest.mark.parametrize(
    ("engine", "job", "message"),
    [
        (
            Engine.VECTOR,
            MatrixJob(4, 0, 64, 128, 2),
            "tile 1: vector descriptor 0: job: found MatrixJob; allowed: VectorJob, Wait",
        ),
        (
            Engine.CONTROL,
            VectorJob("scale", 1, 1, 0, 0, 0, 0, 1),
            "tile 1: control descriptor 0: job: found VectorJob; allowed: Wait",
        ),
        (
            Engine.VECTOR,
            VectorJob("scale", 1, 1, 0, 0, 0, 0, 1, multiplier=40000),
            "descriptor: multiplier: found 40000; allowed: -32768 to 32767",
        ),
        (
            Engine.VECTOR,
            VectorJob("add", 4, 2, 0, 4, 64, 4, 3, b=8, b_row=4),
            "descriptor: words of a row of 'add' results: found 3; allowed: 4",
        ),
        (
            Engine.VECTOR,
            VectorJob("quantize", 6, 1, 0, 0, 64, 0, 2, pack=True),
            "tile 1: vector descriptor 0: words of a row of packed results: found 2 of 6; "
            "allowed: one of 2",
        ),
        (
            Engine.VECTOR,
            VectorJob("add", 4, 2, 0, 4, 64, 4, 4, b=4090, b_row=4),
            "tile 1: vector descriptor 0: b: found words up to 4097; allowed: up to 4095",
        ),
        (
            Engine.MATRIX,
            MatrixJob(4, 0, 64, 4090, 2),
            "tile 1: matrix descriptor 0: c: found words up to 4097; allowed: up to 4095",
        ),
        (
            Engine.TRANSFER,
            Transfer(TransferKind.UNICAST, 4, 0, 4296, row=1, col=1),
            "tile 1: transfer descriptor 0: target: found words up to 4299; allowed: up to 4095",
        ),
        (
            Engine.TRANSFER,
            Transfer(TransferKind.UNICAST, 4, 0, 64, row=2, col=2),
            "tile 1: transfer descriptor 0: found row 2 and column 2; "
            "allowed: rows 0 to 1, columns 0 to 1",
        ),
        (
            Engine.TRANSFER,
            Transfer(TransferKind.MULTICAST, 4, 0, 64, row_mask=5, col_mask=1),
            "tile 1: transfer descriptor 0: row mask: found 0b101; allowed: bits 0 to 1, "
            "one at least",
        ),
    ],
)
def test_a_job_that_does_not_fit_the_tiles_is_refused(
    machine: TileMachine, engine: Engine, job: Job, message: str
) -> None:
    with pytest.raises(InputError) as error:
        machine.run({1: TileImage({engine: [Descriptor(job)]})})
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("engine", "job", "message"),
    [
        (
            Engine.TRANSFER,
            VectorJob("scale", 1, 1, 0, 0, 64, 0, 1),
            "engine_queue: a job of kind 2 in a queue of kind 3",
        ),
        (
            Engine.CONTROL,
            MatrixJob(4, 0, 64, 128, 2),
            "engine_queue: a job of kind 1 in a queue of kind 0",
        ),
        (
            Engine.VECTOR,
            VectorJob("quantize", 4, 1, 0, 0, 64, 0, 1, pack=True),
            "vector_engine: a job ends with results left",
        ),
    ],
)
def test_the_verilog_stops_at_what_an_engine_cannot_do(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, job: Job, message: str
) -> None:
    monkeypatch.setattr("cosim.tiles.machine.check_fits", lambda *_: None)
    with TileMachine(TileModel(2, 2)) as machine, pytest.raises(SimulationError, match=message):
        machine.run({1: TileImage({engine: [Descriptor(job)]})})


def test_a_credit_to_a_tile_that_is_not_there_is_refused(machine: TileMachine) -> None:
    with pytest.raises(InputError) as error:
        machine.run({1: TileImage({Engine.CONTROL: [wait(2, credits=(Credit(2, 2, 3),))]})})
    assert str(error.value) == (
        "tile 1: control descriptor 0: credit: found row 2 and column 2; "
        "allowed: rows 0 to 1, columns 0 to 1"
    )
    with pytest.raises(InputError) as error:
        machine.read(4, 0, 1)
    assert str(error.value) == "tile: found 4; allowed: 0 to 3"
