"""The banked SRAM behind sockets: its phases, and the same cycles as the batch."""

from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.lockstep import SteppedEnvironment
from tlm.memory.base import MemoryPort, PhaseTimes
from tlm.memory.sram.banks import Accesses, SramBanks, SramTiming
from tlm.memory.sram.sockets import BankedSram
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.sockets import Phase, Sync

TIMING = SramTiming(banks=4, bank_width_bytes=8, ports=1, read_latency_cycles=3)
Access = tuple[int, int, int, int, bool]
"""Cycle, requester, address, bytes, write."""
REQUESTERS = 3


class Bench:
    """An initiator at each port, behind a checker."""

    def __init__(self, timing: SramTiming = TIMING) -> None:
        self.env = SteppedEnvironment()
        sram = BankedSram(self.env, timing, REQUESTERS)
        self.initiators = [MemoryPort(self.env) for _ in range(REQUESTERS)]
        self.checkers = [
            ProtocolChecker(self.env, initiator.socket, port.socket)
            for initiator, port in zip(self.initiators, sram.ports, strict=True)
        ]

    def run(self) -> None:
        with ExitStack() as open_at_the_end:
            for checker in self.checkers:
                open_at_the_end.enter_context(checker)
            self.env.run()


def payload_of(address: int, length: int, write: bool) -> GenericPayload:
    return GenericPayload(Command.WRITE if write else Command.READ, address, length)


def run(timing: SramTiming, accesses: list[Access]) -> list[PhaseTimes]:
    bench = Bench(timing)
    found: dict[int, PhaseTimes] = {}

    def client(number: int, cycle: int, requester: int, *what: Any) -> Generator[Any]:
        yield bench.env.timeout(cycle)
        payload = payload_of(*what)
        found[number] = yield from bench.initiators[requester].access(payload)
        assert payload.response_status is ResponseStatus.OK

    for number, access in enumerate(accesses):
        bench.env.process(client(number, *access))
    bench.run()
    return [found[number] for number in range(len(accesses))]


def test_a_conflict_withholds_end_req() -> None:
    # Both of 8 words, two in each of the four banks: they take turns, word by word.
    both = [(5, 0, 0, 64, False), (5, 1, 64, 64, True), (5, 1, 0, 8, True)]
    assert run(TIMING, both) == [
        PhaseTimes(5, 8, 10, 10),
        PhaseTimes(5, 9, 9, 9),
        PhaseTimes(9, 10, 10, 10),
    ]


@given(
    st.builds(
        SramTiming,
        banks=st.integers(1, 5),
        bank_width_bytes=st.just(8),
        ports=st.integers(1, 2),
        read_latency_cycles=st.integers(1, 4),
    ),
    st.lists(
        st.tuples(
            st.integers(0, 30),
            st.integers(0, REQUESTERS - 1),
            st.integers(0, 200),
            st.integers(1, 60),
            st.booleans(),
        ),
        max_size=20,
    ),
)
def test_accesses_take_the_cycles_of_the_batch(timing: SramTiming, accesses: list[Access]) -> None:
    accesses = sorted(accesses, key=lambda access: access[0])
    *columns, write = np.array(accesses, dtype=np.int64).reshape(-1, 5).T
    accesses_at_once = Accesses(*columns, write.astype(np.bool_))
    batch = SramBanks(timing, REQUESTERS).simulate(accesses_at_once)
    assert [t.begin_resp for t in run(timing, accesses)] == batch.tolist()


def test_a_blocking_access_returns_what_is_left_of_the_latency() -> None:
    bench, seen = Bench(), []

    def client(requester: int, write: bool) -> Generator[Any]:
        payload = payload_of(0, 8, write)
        socket = bench.initiators[requester].socket
        left = yield from socket.b_transport(payload, 7)
        seen.append((bench.env.now, left, payload.response_status))

    bench.env.process(client(0, False))
    bench.env.process(client(1, True))
    bench.run()
    assert seen == [(8, 2, ResponseStatus.OK), (9, 0, ResponseStatus.OK)]


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        (GenericPayload(Command.READ, -8, 8), ResponseStatus.ADDRESS_ERROR),
        (GenericPayload(Command.READ, 8, 0), ResponseStatus.BURST_ERROR),
        (GenericPayload(Command.IGNORE, 0, 0), ResponseStatus.OK),
    ],
)
def test_what_needs_no_bank_is_answered_at_once(
    payload: GenericPayload, status: ResponseStatus
) -> None:
    env = SteppedEnvironment()
    port = BankedSram(env, TIMING, 1).ports[0]
    answer = port.nb_transport_fw(payload, Phase.BEGIN_REQ, 4)
    assert answer == (Sync.COMPLETED, Phase.END_RESP, 4)
    assert payload.response_status is status
    assert env.run(env.process(port.b_transport(payload, 6))) == 6
    assert payload.response_status is status
