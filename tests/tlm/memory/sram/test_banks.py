"""Banks and their conflicts: closed forms, laws, and a slow model of the same rules."""

from dataclasses import replace
from math import gcd
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.memory.sram.banks import Accesses, SramBanks, SramTiming

Access = tuple[int, int, int, int, bool]
"""Cycle, requester, address, bytes, write."""
WIDTH = 8
TIMING = SramTiming(banks=8, bank_width_bytes=WIDTH, ports=1, read_latency_cycles=1)


def table(accesses: list[Access]) -> Accesses:
    *columns, write = np.array(accesses, dtype=np.int64).reshape(-1, 5).T
    return Accesses(*columns, write.astype(np.bool_))


def run(timing: SramTiming, accesses: list[Access], requesters: int = 4) -> list[int]:
    return SramBanks(timing, requesters).simulate(table(accesses)).tolist()


timings = st.builds(
    SramTiming,
    banks=st.integers(1, 9),
    bank_width_bytes=st.sampled_from([4, 8]),
    ports=st.integers(1, 3),
    read_latency_cycles=st.integers(1, 4),
)


@st.composite
def traffic(draw: st.DrawFn, most: int = 25) -> list[Access]:
    """Accesses of four requesters, close enough together to meet."""
    one = st.tuples(
        st.integers(0, 40),
        st.integers(0, 3),
        st.integers(0, 300),
        st.integers(1, 90),
        st.booleans(),
    )
    return sorted(draw(st.lists(one, max_size=most)), key=lambda access: access[0])


def slowly(timing: SramTiming, accesses: list[Access], requesters: int = 4) -> list[int]:
    """The rules once more: every word an entry of a list."""
    waiting = {r: [n for n, a in enumerate(accesses) if a[1] == r] for r in range(requesters)}
    words: dict[int, list[int]] = {}  # of the open access of a requester: banks still to be asked
    turns = [list(range(requesters)) for _ in range(timing.banks)]
    done = [-1] * len(accesses)
    cycle = 0
    while any(waiting.values()):
        for requester, queue in waiting.items():
            if queue and requester not in words and accesses[queue[0]][0] <= cycle:
                _, _, address, length, _ = accesses[queue[0]]
                touched = {
                    byte // timing.bank_width_bytes for byte in range(address, address + length)
                }
                words[requester] = [word % timing.banks for word in touched]
        for bank, turn in enumerate(turns):
            for _ in range(timing.ports):
                asking = [r for r in turn if bank in words.get(r, [])]
                if asking:
                    words[asking[0]].remove(bank)
                    place = turn.index(asking[0]) + 1
                    turn[:] = turn[place:] + turn[:place]
        cycle += 1
        for requester in [r for r, left in words.items() if not left]:
            number = waiting[requester].pop(0)
            rest = 0 if accesses[number][4] else timing.read_latency_cycles - 1
            done[number] = cycle + rest
            del words[requester]
    return done


@given(timings, traffic())
def test_every_cycle_is_that_of_the_slow_model(timing: SramTiming, accesses: list[Access]) -> None:
    assert run(timing, accesses) == slowly(timing, accesses)


@pytest.mark.parametrize("seed", range(8))
def test_many_requesters_and_banks_are_those_of_the_slow_model(seed: int) -> None:
    # More than a row of bits of both.
    rng = np.random.default_rng(seed)
    timing = SramTiming(int(rng.integers(33, 99)), WIDTH, int(rng.integers(1, 4)))
    requesters, span = int(rng.integers(33, 99)), int(rng.choice([5, 400]))
    accesses: list[Access] = [
        (cycle, int(rng.integers(requesters)), int(rng.integers(2000)), length, True)
        for cycle, length in rng.integers(1, [span, 1500], size=(400, 2)).tolist()
    ]
    accesses.sort(key=lambda access: access[0])
    assert run(timing, accesses, requesters) == slowly(timing, accesses, requesters)


@given(
    st.integers(1, 16),
    st.integers(0, 40),
    st.integers(0, 60),
    st.integers(1, 32),
    st.integers(1, 3),
)
def test_a_stride_leaves_banks_idle(
    banks: int, stride: int, start: int, lanes: int, ports: int
) -> None:
    """Lanes a stride apart meet in banks / gcd(stride, banks) banks."""
    timing = replace(TIMING, banks=banks, ports=ports)
    together = [(0, lane, (start + stride * lane) * WIDTH, WIDTH, False) for lane in range(lanes)]
    used = banks // gcd(stride, banks)
    busiest = -(-lanes // used)
    assert max(run(timing, together, lanes)) == -(-busiest // ports)


@given(timings, st.integers(0, 200), st.integers(1, 2000), st.booleans())
def test_a_lone_access_keeps_all_banks_busy(
    timing: SramTiming, address: int, length: int, write: bool
) -> None:
    width = timing.bank_width_bytes
    words = (address + length - 1) // width - address // width + 1
    each = -(-words // timing.banks)
    expected = 5 + -(-each // timing.ports) + (0 if write else timing.read_latency_cycles - 1)
    assert run(timing, [(5, 0, address, length, write)]) == [expected]


@given(st.integers(1, 6), st.integers(1, 10))
def test_requesters_of_one_bank_take_turns(requesters: int, rounds: int) -> None:
    everyone = [(0, r, 0, WIDTH, False) for r in range(requesters)] * rounds
    assert run(TIMING, everyone, requesters) == list(range(1, requesters * rounds + 1))


def test_a_requester_does_not_wait_for_its_own_later_words() -> None:
    # Nine words on one bank against one word: the one comes second, not tenth.
    timing = replace(TIMING, banks=1)
    assert run(timing, [(0, 0, 0, 9 * WIDTH, True), (0, 1, 0, 1, True)]) == [10, 2]


def test_ports_serve_requesters_first_and_further_words_then() -> None:
    timing = replace(TIMING, banks=1, ports=2)
    assert run(timing, [(0, 0, 0, 4 * WIDTH, True), (0, 1, 0, 2 * WIDTH, True)]) == [3, 2]


def test_an_access_follows_a_cycle_behind_the_last_word_of_the_one_before() -> None:
    # The latency of a read holds nobody back.
    timing = replace(TIMING, read_latency_cycles=3)
    reads = [(0, 0, WIDTH * n, WIDTH, False) for n in range(4)]
    assert run(timing, reads) == [3, 4, 5, 6]


def test_what_does_not_touch_costs_nothing() -> None:
    apart = [(0, r, r * 2 * WIDTH, 2 * WIDTH, bool(r % 2)) for r in range(4)]
    assert run(TIMING, apart) == [1, 1, 1, 1]


@given(timings, traffic())
def test_every_word_is_served_once_and_no_port_twice(
    timing: SramTiming, accesses: list[Access]
) -> None:
    banks = SramBanks(timing, 4)
    asked = np.zeros(timing.banks, dtype=np.int64)
    for cycle, requester, address, length, _ in accesses:
        first, words = timing.words(address, length)
        np.add.at(asked, (first + np.arange(words)) % timing.banks, 1)
        banks.access(cycle, requester, address, length)
    before, events = banks.words_served, []
    while not banks.idle:
        for until in range(1, 10**4):
            events += banks.advance(until)
            assert (banks.words_served - before <= timing.ports).all()
            before = banks.words_served
            if banks.idle:
                break
    assert banks.words_served.tolist() == asked.tolist()
    assert sorted(event.access for event in events) == list(range(len(accesses)))


@given(timings, traffic())
def test_steps_of_any_length_find_the_same_times(
    timing: SramTiming, accesses: list[Access]
) -> None:
    banks = SramBanks(timing, 4)
    for access in accesses:
        banks.access(*access[:4])
    served: dict[int, int] = {}
    until = 1
    while not banks.idle:
        until += 3
        while events := banks.advance(until):
            served |= {event.access: event.cycle for event in events}
    ends = [served[n] + timing.latency_cycles(a[4]) for n, a in enumerate(accesses)]
    assert ends == run(timing, accesses)


@given(timings, traffic())
def test_twice_the_banks_never_hold_a_lone_requester_longer(
    timing: SramTiming, accesses: list[Access]
) -> None:
    alone = [(cycle, 0, *rest) for cycle, _, *rest in accesses]
    few, many = run(timing, alone), run(replace(timing, banks=2 * timing.banks), alone)
    assert all(after <= before for before, after in zip(few, many, strict=True))


@given(timings, st.lists(st.integers(0, 63), min_size=1, max_size=30))
def test_twice_the_banks_never_hold_simultaneous_accesses_longer(
    timing: SramTiming, words: list[int]
) -> None:
    width = timing.bank_width_bytes
    at_once = [(0, r, word * width, width, True) for r, word in enumerate(words)]
    ends = [
        max(run(replace(timing, banks=n * timing.banks), at_once, len(words))) for n in (1, 2, 4)
    ]
    assert ends == sorted(ends, reverse=True)


def test_times_far_apart_are_skipped() -> None:
    far = [(0, 0, 0, 1, True), (10**15, 1, 0, 1, True), (10**15, 0, 0, 1, True)]
    assert run(TIMING, far) == [1, 10**15 + 1, 10**15 + 2]  # it is requester 1's turn


def test_a_lone_access_is_served_at_once_until_another_begins() -> None:
    # A cycle at a time this would take days.
    words, begin = 8 * 10**12, 10**11
    both = [(0, 0, 0, words * WIDTH, True), (begin, 1, 0, 2 * WIDTH, True)]
    assert run(TIMING, both) == [10**12 + 1, begin + 1]


@pytest.mark.parametrize("field", ["banks", "bank_width_bytes", "ports", "read_latency_cycles"])
def test_figures_start_at_one(field: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(TIMING, **{field: 0})
    assert str(caught.value) == f"SRAM: {field} is 0; it must be 1 or more"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cycle": -1}, "SRAM access 1: cycle is -1; allowed are 0 to 4611686018427387903"),
        ({"requester": 4}, "SRAM access 1: requester is 4; allowed are 0 to 3"),
        ({"address": -8}, "SRAM access 1: address is -8; allowed are 0 to 4611686018427387903"),
        (
            {"length_bytes": 0},
            "SRAM access 1: length_bytes is 0; allowed are 1 to 4611686018427387903",
        ),
    ],
)
def test_accesses_are_looked_over(change: dict[str, Any], message: str) -> None:
    accesses = table([(0, 0, 0, 1, False)] * 2)
    for name, value in change.items():
        getattr(accesses, name)[1] = value
    with pytest.raises(InputError) as caught:
        SramBanks(TIMING, 4).simulate(accesses)
    assert str(caught.value) == message


def test_shapes_agree_and_somebody_asks() -> None:
    accesses = replace(table([(0, 0, 0, 1, False)]), write=np.zeros(2, dtype=np.bool_))
    with pytest.raises(InputError, match="all alike"):
        SramBanks(TIMING, 4).simulate(accesses)
    with pytest.raises(InputError, match="0 requesters"):
        SramBanks(TIMING, 0)
