"""The network interface of a memory channel in Verilog: words are kept, requests answered once."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.block import RtlBlock, block_model
from cosim.errors import SimulationError
from cosim.verilog import EDGE_FILES, NOC_SOURCES
from tests.verilog_lint import lint

pytestmark = pytest.mark.rtl

_ROWS, _COLS = 5, 4
#: Above the payload of 96 bits: column, row, masks, length, features, and whether it is the last.
_COL, _ROW, _LAST = 96, 98, 96 + 2 + 3 + 9 + 3 + 3
_PATIENCE_CYCLES = 1000  # a refresh takes some hundred
_WORDS = 16 * 128 << 5  # of the channel
_MODEL = block_model(
    (*NOC_SOURCES, *EDGE_FILES),
    {"Rows": _ROWS, "Cols": _COLS, "FifoDepth": 4, "RowWidth": 5, "Slots": 4},
)


@dataclass(frozen=True)
class Came:
    """A flit for a tile."""

    cycle: int
    row: int
    col: int
    last: bool
    tokens: tuple[int, ...]
    target: int
    word: int


def data(address: int, word: int, *, last: bool) -> int:
    """A flit of a block that is written."""
    high = address >> 16
    tag = (high >> 6) << 24 | (high & 63) << 16 | address & 0xFFFF
    return word | tag << 64 | last << _LAST


def request(
    address: int,
    words: int,
    tile: tuple[int, int],
    target: int,
    tokens: tuple[int, ...],
    *,
    load: bool,
) -> int:
    """A flit that asks for words, or for the word that all before is kept."""
    word = address | tile[0] << 28 | tile[1] << 32 | words << 36 | load << 52
    first, second = (*tokens, 32 if not tokens else 0, 0)[:2]
    tag = (len(tokens) > 0) << 30 | first << 24 | (len(tokens) > 1) << 22 | second << 16 | target
    return word | tag << 64 | 1 << _LAST


class Port:
    """A memory_port, what is fed to it and what it says."""

    def __init__(self, block: RtlBlock) -> None:
        self._block = block
        self.cycle = 0

    def run(self, flits: list[int], *, stalls: float = 0.0, seed: int = 0) -> list[Came]:
        """Feed flits, and take answers until nothing is under way; some are refused at random."""
        block, rng = self._block, np.random.default_rng(seed)
        waiting, came, quiet, shown = deque(flits), [], 0, None
        moved = self.cycle
        while waiting or quiet < 3:
            block.put("eject_valid_i", bool(waiting))
            block.put("eject_flit_i", waiting[0] if waiting else 0)
            ready = bool(rng.random() >= stalls)
            block.put("inject_ready_i", ready)
            block.settle()
            offered = block.get("inject_flit_o") if block.get("inject_valid_o") else None
            assert shown is None or offered == shown, "an offer was changed"
            shown = None if ready else offered
            if offered is not None and ready:
                came.append(self._read(offered))
            taken = waiting and block.get("eject_ready_o")
            if taken or (offered is not None and ready):
                moved = self.cycle
            quiet = 0 if block.get("busy_o") or waiting else quiet + 1
            block.clock()
            self.cycle += 1
            if taken:
                waiting.popleft()
            assert self.cycle - moved < _PATIENCE_CYCLES, "nothing moves"
        return came

    def _read(self, flit: int) -> Came:
        tag = flit >> 64 & (1 << 32) - 1
        tokens = tuple(
            tag >> place & 63
            for place, valid in ((24, tag >> 30 & 1), (16, tag >> 22 & 1))
            if valid
        )
        assert flit >> _ROW + 3 & (1 << _LAST - _ROW - 3) - 1 == 0, "it is a unicast"
        row, col, last = flit >> _ROW & 7, flit >> _COL & 3, bool(flit >> _LAST & 1)
        return Came(self.cycle, row, col, last, tokens, tag & 0xFFFF, flit & (1 << 64) - 1)


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    with RtlBlock(_MODEL) as block:
        yield Port(block)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("Slots", 3, "Slots is 3, must be a power of two"),
        ("Rows", 17, "Rows and Cols are 17 and 2, must be at most 16"),
        ("AddressWidth", 26, "AddressWidth is 26, must be at most 25"),
    ],
)
def test_illegal_parameters_do_not_elaborate(name: str, value: int, rule: str) -> None:
    outcome = lint("memory_node", (*NOC_SOURCES, *EDGE_FILES), **{name: value})
    assert outcome.returncode != 0
    assert f"memory_node: {rule}" in outcome.stderr


def test_a_block_is_kept_and_comes_back(port: Port) -> None:
    words = np.random.default_rng(1).integers(0, 2**63, 10, dtype=np.uint64).tolist()
    kept = [data(64 + n, word, last=n == 9) for n, word in enumerate(words)]
    told = port.run([*kept, request(64, 10, (3, 2), 500, (7,), load=False)])
    assert [(one.row, one.col, one.tokens, one.target) for one in told] == [(3, 2, (7,), 500)]
    came = port.run([request(64, 10, (2, 1), 100, (5, 6), load=True)])
    assert {one.target: one.word for one in came} == {100 + n: w for n, w in enumerate(words)}
    assert [one.tokens for one in came] == [()] * 9 + [(5, 6)]
    assert {(one.row, one.col) for one in came} == {(2, 1)}
    assert sum(one.last for one in came) == 3  # packets of a burst: 4, 4 and 2 words


def test_the_first_word_comes_when_the_law_says(port: Port) -> None:
    port.run([request(0, 4, (0, 0), 0, (1,), load=True)])
    start = port.cycle
    came = port.run([request(4, 8, (0, 0), 0, (1,), load=True)])
    # The open row's burst: in the node one cycle, in the channel 17, handed on after another.
    assert [one.cycle - start for one in came][:4] == [19, 20, 21, 22]


def test_a_request_without_tokens(port: Port) -> None:
    came = port.run([request(128, 3, (1, 3), 40, (), load=True)])
    assert [(one.target, one.tokens, one.last) for one in came] == [
        (40, (), False),
        (41, (), False),
        (42, (), True),
    ]


def test_the_longest_request(port: Port) -> None:
    most, tail = 65_535, [7, 8, 9, 10, 11, 12, 13, 14]
    first = _WORDS - len(tail)
    kept = [data(first + n, word, last=n == 7) for n, word in enumerate(tail)]
    port.run([*kept, request(first, len(tail), (0, 0), 0, (1,), load=False)])
    came = port.run([request(0, most, (3, 3), 0, (9,), load=True)])
    assert sorted(one.target for one in came) == list(range(most))
    found = {one.target: one.word for one in came}
    assert [found[first + n] for n in range(len(tail) - 1)] == tail[:-1]
    assert [one.tokens for one in came] == [()] * (most - 1) + [(9,)]


@pytest.mark.parametrize(
    ("flits", "rule"),
    [
        ([request(64, 0, (0, 0), 0, (1,), load=True)], "a request for no words"),
        (
            [request(66, 4, (0, 0), 0, (1,), load=True)],
            "a request at word 66, must be a burst's first",
        ),
        (
            [request(_WORDS - 8, 9, (0, 0), 0, (1,), load=False)],
            f"a request for 9 words at {_WORDS - 8}, the channel has {_WORDS}",
        ),
        (
            [request(64, 4, (4, 0), 0, (1,), load=True)],
            "a request of tile (4, 0), which is not there",
        ),
        (
            [request(64, 4, (0, 4), 0, (1,), load=True)],
            "a request of tile (0, 4), which is not there",
        ),
        (
            [data(65, 1, last=True)],
            "word 1 of burst 16 came, must be word 0 of a burst",
        ),
        (
            [data(64, 1, last=False), data(69, 1, last=True)],
            "word 1 of burst 17 came, must be of burst 16",
        ),
        ([data(_WORDS, 1, last=True)], f"a word for {_WORDS}, the channel has {_WORDS}"),
    ],
)
def test_what_no_tile_may_send_stops_the_simulation(flits: list[int], rule: str) -> None:
    with RtlBlock(_MODEL) as block, pytest.raises(SimulationError) as stopped:
        Port(block).run(flits)
    assert f"memory_node: {rule}" in str(stopped.value)


@settings(deadline=None, max_examples=30)
@given(
    asked=st.lists(
        st.tuples(st.booleans(), st.integers(0, 39), st.integers(1, 30), st.integers(0, 15)),
        min_size=1,
        max_size=25,
    ),
    stalls=st.sampled_from([0.0, 0.3, 0.9]),
    seed=st.integers(0, 2**20),
)
def test_any_loads_and_stores(
    port: Port, asked: list[tuple[bool, int, int, int]], stalls: float, seed: int
) -> None:
    """Against a list of words: a load has what was written before it came, and its tokens last."""
    rng = np.random.default_rng(seed)
    memory = {address: 0 for address in range(32 * 40 + 32)}
    everything = [data(address, 0, last=False) for address in memory]
    port.run(everything)
    flits: list[int] = []
    wanted: dict[tuple[int, int], tuple[int, dict[int, int]]] = {}
    for number, (loads, block, words, tile) in enumerate(asked):
        place, address = divmod(tile, _COLS), 32 * block
        target = number * 64
        if loads:
            block_words = {target + n: memory[address + n] for n in range(words)}
            flits.append(request(address, words, place, target, (number,), load=True))
        else:
            for n in range(words):
                memory[address + n] = int(rng.integers(0, 2**63))
                flits.append(data(address + n, memory[address + n], last=n == words - 1))
            block_words = {target: -1}
            flits.append(request(address, words, place, target, (number,), load=False))
        wanted[number, tile] = target, block_words
    came = port.run(flits, stalls=stalls, seed=seed)
    for (number, tile), (target, block_words) in wanted.items():
        own = [one for one in came if target <= one.target < target + 64]
        assert {one.row * _COLS + one.col for one in own} == {tile}
        assert [one.tokens for one in own] == [()] * (len(own) - 1) + [(number,)]
        found = {one.target: one.word for one in own}
        assert len(found) == len(own) == len(block_words)
        if -1 not in block_words.values():
            assert found == block_words
    assert len(came) == sum(len(words) for _, words in wanted.values())
