"""Keys and values that spill from SRAM to a ring in main memory."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.serving.served import LoggedModel, serve, streamed_share, trace_of
from tlm.errors import InputError
from workloads.serving.engine.run import Limits, run
from workloads.serving.engine.speculation import Speculation
from workloads.serving.engine.spill import Ring, SpillingPool
from workloads.serving.price.cost import Batch
from workloads.serving.price.models import serving_model
from workloads.serving.schedulers import Chunked, Continuous


def test_sram_fills_first_and_what_a_request_spills_stays_in_its_buffer() -> None:
    # 3 blocks of SRAM: 2 are the first prompt's. The second puts one there and one into its buffer
    # of 3 blocks. At 16 s it needs its third, the first one its third and its own buffer. So of 64
    # tokens 3 blocks are spilled, of the first one's 33 then 1: blocks count as full.
    model = LoggedModel()
    kv = SpillingPool(48, 16 * 6)
    serve(trace_of((0, 32, 3), (0, 32, 2)), Continuous(), model, kv=kv)
    assert model.batches == [
        Batch(((32, 0), (32, 0)), 0, 0, 2),
        Batch((), 2, 64, 2, decode_sram_tokens=64 - 3 * 16),
        Batch((), 1, 33, 1, decode_sram_tokens=33 - 16),
    ]
    assert kv.spilled_tokens == 16 * 3
    assert kv.peak_tokens == 16 * 6
    assert kv.free_blocks == (3, 6)


def test_a_buffer_is_free_once_those_before_it_are() -> None:
    ring = Ring(10)
    for owner, blocks in ((1, 4), (2, 3), (3, 3)):
        ring.give_out(owner, blocks)
    free = []
    for owner in (2, 1, 3):
        ring.give_up(owner)
        free.append(ring.free)
    assert free == [0, 7, 10]


def test_who_finds_no_room_for_a_buffer_waits() -> None:
    # The first has the SRAM; the second needs a buffer of 3 blocks, and the third one too.
    model = LoggedModel()
    kv = SpillingPool(16, 16 * 5)
    trace = trace_of((0, 16, 1), (0, 40, 2), (0, 40, 2))
    serve(trace, Continuous(), model, kv=kv)
    assert [len(batch.prefills) for batch in model.batches] == [2, 0, 1, 0]
    assert kv.spilled_tokens == 16 * (3 + 2)


def test_spilled_bytes_are_reported_and_more_sram_spills_less() -> None:
    trace = trace_of(*[(0, 100, 50)] * 8)
    spilled = [
        run(
            trace,
            Chunked(64),
            LoggedModel(kv_sram_tokens=sram),
            limits=Limits(4000, kv_sram_tokens=sram),
        )["kv"]
        for sram in (0, 300, 600, 1200)
    ]
    assert [kv["capacity_tokens"] for kv in spilled] == [4000, 4288, 4592, 5200]
    amounts = [kv["spilled_bytes"] for kv in spilled]
    assert amounts == sorted(amounts, reverse=True)
    assert amounts[0] == 8 * 10 * 16 * 8  # ten blocks each, 8 bytes a token
    assert amounts[-1] == 0


@pytest.mark.parametrize("speculation", [None, Speculation(2, 0.5)])
def test_reading_what_is_spilled_takes_longer(speculation: Speculation | None) -> None:
    trace = trace_of(*[(0.01 * place, 200, 200) for place in range(12)])
    seconds = []
    for sram in (None, 0, 500, 1000, 2000):
        model = serving_model("llama3-8b", "flat32", kv_sram_tokens=sram)
        runs = [
            run(
                trace,
                Chunked(),
                model,
                limits=Limits(10**6, 256, sram, jump),
                speculation=speculation,
            )
            for jump in (False, True)
        ]
        assert runs[0] == runs[1]
        seconds.append(runs[0]["tbt_ms"]["mean"])
    assert seconds[0] == seconds[1]  # all in the ring is one level again
    assert all(more < less for less, more in pairwise(seconds[1:]))


def test_sram_reads_are_priced_by_its_bandwidth() -> None:
    # Half of each cache in SRAM: the memory is busy with the rest for half the time.
    model = serving_model("llama3-8b", "flat32")
    sequences, context = 64, 64 * 1000
    read_s = context * model.kv_bytes_per_token / (2e12 * streamed_share("hbm4", 32))
    all_spilled, half, none = (
        model.cost(Batch((), sequences, context, sequences, None, 1, kept)).seconds
        for kept in (0, context // 2, context)
    )
    assert all_spilled - half == pytest.approx(read_s / 2, rel=0.05)
    assert none < half


def test_a_request_that_fits_neither_level_is_refused() -> None:
    with pytest.raises(InputError, match="found 100 prompt and 50 output tokens; allowed: 129"):
        run(
            trace_of((0, 100, 50)),
            Continuous(),
            LoggedModel(kv_sram_tokens=64),
            limits=Limits(130, 4, 64),
        )


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 200), st.integers(1, 200), st.integers(1, 64), st.integers(0, 30), st.booleans()
)
def test_a_request_that_fits_alone_is_never_preempted(
    prompt: int, output: int, draft: int, other: int, in_sram: bool
) -> None:
    # Drafts of several blocks at once; one level just holds the request, the other is what it is.
    just = -(-(prompt + output - 1) // 16)
    sram, ring = (just, other) if in_sram else (other, just)
    kv = SpillingPool(16 * sram, 16 * ring)
    trace, drafts = trace_of((0, prompt, output)), Speculation(draft, 0.8)
    _, recorder = serve(trace, Chunked(32), LoggedModel(), kv=kv, speculation=drafts)
    assert recorder.preemptions == 0
    assert kv.free_blocks == (sram, ring)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 60), st.integers(1, 40)), min_size=1),
    st.integers(0, 200),
    st.integers(100, 300),
    st.integers(1, 8),
)
def test_every_block_comes_back(
    requests: list[tuple[float, int, int]], sram: int, ring: int, most: int
) -> None:
    kv = SpillingPool(sram, ring)
    trace = trace_of(*sorted(requests))
    model = LoggedModel(lambda batch: 0.01 * batch.new_tokens)
    _, recorder = serve(trace, Chunked(32), model, kv=kv, max_sequences=most, jump=True)
    assert recorder.finished == len(trace)
    assert kv.free_blocks == (sram // 16, ring // 16)
    assert kv.peak_tokens <= kv.capacity_tokens
