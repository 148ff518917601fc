"""Cycles of a job of a tile's engines, stream by stream: who waits for whom at which bank.

A job's streams read and write words at addresses that are known beforehand, one a cycle each, and
take turns where they meet at a bank. A reader asks only for words that it has places for. What lies
between readers and writer is the systolic array (rtl/tile/systolic_array.sv) or the vector unit
(rtl/tile/vector_unit.sv); other engines are taken to be at other banks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlm.compiled import compiled, forget_stale

Numbers = NDArray[np.int64]
_ASKED, _HELD, _COMING, _END = range(4)
_NOBODY = -1


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """Constants of the streams, which calibration identifies.

    Attributes:
        lead_cycles: From the start of a job to the cycle in which its first operand is there; at
            least 2.
        places: Words that a reader holds or has asked for.
        pipeline_cycles: From an operand's entry into the vector unit to its result.
    """

    lead_cycles: int
    places: int
    pipeline_cycles: int


@dataclass(frozen=True, slots=True)
class Folds:
    """What the systolic array does in a job.

    Attributes:
        size: Rows, and columns, of the array.
        folds: Folds of the job.
        length: Steps of a fold.
        output_stationary: The dataflow.
    """

    size: int
    folds: int
    length: int
    output_stationary: bool


@dataclass(frozen=True, slots=True)
class Pass:
    """What the vector unit does in a job.

    Attributes:
        words: Words of a row of A.
        of_rows: A row has one result.
        packed: Words of results that become one.
    """

    words: int
    of_rows: bool = False
    packed: int = 1


def loop(base: int, counts: Sequence[int], strides: Sequence[int]) -> Numbers:
    """Addresses of nested loops in the order of their words; the innermost loop comes first."""
    found = np.array([base], dtype=np.int64)
    for count, stride in zip(counts, strides, strict=True):
        found = (np.arange(count, dtype=np.int64)[:, None] * stride + found[None, :]).ravel()
    return found


def matrix_job_cycles(
    folds: Folds,
    a: Numbers,
    b: Numbers,
    sums: Numbers,
    results: Numbers,
    banks: int,
    timing: StreamTiming,
) -> int:
    """Cycles of a job of the matrix engine, from its start to its last result, both included.

    Args:
        folds: What the array does.
        a: Addresses of the words of A in order of reading.
        b: The same of B, or of the weights.
        sums: The same of the sums to which results are added; empty if there are none.
        results: The same of the results.
        banks: Banks of the scratchpad.
        timing: Constants.
    """
    streams, state, ports = _streams([a, b, sums, results], banks)
    pipe = np.zeros(2 * folds.size - 1, dtype=np.int64)
    last = np.full(banks, 3, dtype=np.int64)
    return int(
        _matrix(
            streams,
            state,
            ports,
            last,
            pipe,
            folds.size,
            folds.folds,
            folds.length,
            folds.output_stationary,
            len(sums) > 0,
            timing.lead_cycles,
            timing.places,
        )
    )


def vector_job_cycles(
    work: Pass, a: Numbers, b: Numbers, results: Numbers, banks: int, timing: StreamTiming
) -> int:
    """Cycles of a job of the vector engine, from its start to its last result, both included.

    Args:
        work: What the unit does.
        a: Addresses of the words of A in order of reading.
        b: The same of B; empty of operations with one operand.
        results: The same of the results.
        banks: Banks of the scratchpad.
        timing: Constants.
    """
    streams, state, ports = _streams([a, b, results], banks)
    pipe = np.zeros(timing.pipeline_cycles, dtype=np.int64)
    last = np.full(banks, 2, dtype=np.int64)
    return int(
        _vector(
            streams,
            state,
            ports,
            last,
            pipe,
            work.words,
            work.of_rows,
            work.packed,
            len(b) > 0,
            timing.lead_cycles,
            timing.places,
        )
    )


def _streams(streams: list[Numbers], banks: int) -> tuple[Numbers, Numbers, Numbers]:
    """Banks of all words; where each stream is and ends among them; whom ports ask and get."""
    ends = np.cumsum([len(stream) for stream in streams])
    state = np.zeros((len(streams), 4), dtype=np.int64)
    state[1:, _ASKED] = ends[:-1]
    state[:, _END] = ends
    return np.concatenate(streams) % banks, state, np.full((2, len(streams)), _NOBODY)


@compiled
def _matrix(
    streams: Numbers,
    state: Numbers,
    ports: Numbers,
    last: Numbers,
    pipe: Numbers,
    size: int,
    folds: int,
    length: int,
    output_stationary: bool,
    adds: bool,
    lead_cycles: int,
    places: int,
) -> int:
    head = rows = word = step = drain = loading = loaded = remaining = 0
    now = lead_cycles - 2
    while True:
        for port in range(3):
            _ask(streams, state, ports, port, places)
        ready = rows > 0 and (not adds or state[2, _HELD] > 0)
        ports[0, 3] = streams[state[3, _ASKED]] if ready else _NOBODY
        _grant(ports, last)
        # The array moves unless a row of results finds no place.
        out = pipe[head] > 0
        moves = not out or rows < size
        west, north = state[0, _HELD] > 0, state[1, _HELD] > 0
        if output_stationary:
            ends = step + 1 == length
            push = moves and folds > 0 and west and north and not (ends and drain > 0)
            result = drain > 0 or (push and ends)
            west = north = push
            if push and ends:
                drain, step, folds = size - 1, 0, folds - 1
            else:
                drain -= int(moves and drain > 0)
                step += int(push)
        else:
            west = moves and west and (remaining > 0 or loaded > 0)
            swap = west and remaining == 0
            north = moves and folds > 0 and north and (loaded == 0 or swap)
            result = west
            if swap:
                remaining, loaded = length, 0
            remaining -= int(west)
            loading += int(north)
            if loading == size:
                loading, loaded, folds = 0, 1, folds - 1
        if moves:
            pipe[head] = int(result)
            head = (head + 1) % len(pipe)
            rows += int(out)
        written = ports[1, 3] > 0
        if written:
            word += 1
            if 2 * word == size:
                word, rows = 0, rows - 1
            state[3, _ASKED] += 1
            if state[3, _ASKED] == state[3, _END]:
                return now + 1
        _move(state, ports, 0, west)
        _move(state, ports, 1, north)
        _move(state, ports, 2, written and adds)
        now += 1


@compiled
def _vector(
    streams: Numbers,
    state: Numbers,
    ports: Numbers,
    last: Numbers,
    pipe: Numbers,
    words: int,
    of_rows: bool,
    packed: int,
    two_operands: bool,
    lead_cycles: int,
    places: int,
) -> int:
    head = word = part = 0
    now = lead_cycles - 2
    while True:
        _ask(streams, state, ports, 0, places)
        _ask(streams, state, ports, 1, places)
        out, complete = pipe[head] > 0, part + 1 == packed
        ports[0, 2] = streams[state[2, _ASKED]] if out and complete else _NOBODY
        _grant(ports, last)
        written = ports[1, 2] > 0
        moves = not out or not complete or written
        enters = moves and state[0, _HELD] > 0 and (not two_operands or state[1, _HELD] > 0)
        if moves:
            if out:
                part = 0 if complete else part + 1
            if enters:
                word = 0 if word + 1 == words else word + 1
            pipe[head] = int(enters and (not of_rows or word == 0))
            head = (head + 1) % len(pipe)
        if written:
            state[2, _ASKED] += 1
            if state[2, _ASKED] == state[2, _END]:
                return now + 1
        _move(state, ports, 0, enters)
        _move(state, ports, 1, enters and two_operands)
        now += 1


@compiled
def _ask(streams: Numbers, state: Numbers, ports: Numbers, port: int, places: int) -> None:
    """A reader asks for its next word if it has a place for it."""
    room = state[port, _HELD] + state[port, _COMING] < places
    more = state[port, _ASKED] < state[port, _END]
    ports[0, port] = streams[state[port, _ASKED]] if room and more else _NOBODY


@compiled
def _move(state: Numbers, ports: Numbers, port: int, taken: bool) -> None:
    """A reader's words at the end of a cycle; what it got comes at the end of the next one."""
    state[port, _HELD] += state[port, _COMING] - int(taken)
    state[port, _COMING] = ports[1, port]
    state[port, _ASKED] += ports[1, port]


@compiled
def _grant(ports: Numbers, last: Numbers) -> None:
    """Each bank serves, of those that ask it, the first behind the one that it served last."""
    count = ports.shape[1]
    for port in range(count):
        bank, first = ports[0, port], True
        behind = (port - last[bank] - 1) % count
        for other in range(count):
            if ports[0, other] == bank and (other - last[bank] - 1) % count < behind:
                first = False
        ports[1, port] = int(bank != _NOBODY and first)
    for port in range(count):
        if ports[1, port] > 0:
            last[ports[0, port]] = port


forget_stale(_matrix, _vector)
