"""The scratchpad in Verilog: its data, and every grant in the cycle that the model gives it."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.simulator import Simulation, build
from tests.verilog_lint import lint
from tlm.calibrated import REPOSITORY
from tlm.memory.sram.banks import Accesses, SramBanks, SramTiming

pytestmark = pytest.mark.rtl

Int64s = NDArray[np.int64]

BENCH = "tests.rtl.benches.scratchpad_bench"
_RTL = REPOSITORY / "rtl"
SOURCES = (
    _RTL / "noc" / "rr_arbiter.sv",
    _RTL / "tile" / "sram_bank.sv",
    _RTL / "tile" / "scratchpad.sv",
)
#: Ports and banks of the scratchpads of rtl/bench/scratchpads_bench.sv, in its order.
SHAPES = [(ports, banks) for ports in range(1, 9) for banks in (2, 4, 8, 16)]
WIDTH_BYTES = 2


@pytest.fixture(scope="module")
def scratchpads() -> Simulation:
    """One model of scratchpads of 1 to 8 ports and 2 to 16 banks."""
    return build("scratchpads_bench", [*SOURCES, _RTL / "bench" / "scratchpads_bench.sv"], {})


def random_stream(ports: int, banks: int, seed: int) -> Int64s:
    """Requests (cycle, port, write, address), in the order of their cycles.

    Times without a request alternate with bursts; half of the bursts go to a few words of one bank.
    """
    generator = np.random.default_rng([seed, ports, banks])
    requests = 150 * ports
    burst = np.sort(generator.integers(0, 20, requests))
    cycle = np.sort(burst * 40 + generator.integers(0, 25, requests))
    port = generator.integers(0, ports, requests)
    write = generator.integers(0, 2, requests)
    one_bank = burst % banks + banks * generator.integers(0, 4, requests)
    address = np.where(burst % 2 == 1, one_bank, generator.integers(0, 32, requests))
    return np.stack([cycle, port, write, address], axis=1)


def modelled(stream: Int64s, ports: int, banks: int) -> list[int]:
    """The cycle after each request's service, by the model."""
    cycle, port, write, address = stream.T
    width = np.full(len(stream), WIDTH_BYTES)
    accesses = Accesses(cycle, port, address * WIDTH_BYTES, width, write == 1)
    timing = SramTiming(banks=banks, bank_width_bytes=WIDTH_BYTES)
    done: list[int] = SramBanks(timing, ports).simulate(accesses).tolist()
    return done


def outcome_of(scratchpads: Simulation, streams: list[Int64s]) -> Any:
    return scratchpads.run(BENCH, [stream.tolist() for stream in streams], seed=1)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_random_requests_are_served_in_the_cycles_of_the_model(
    scratchpads: Simulation, seed: int
) -> None:
    # The bench compares the data with a plain memory's.
    streams = [random_stream(*shape, seed) for shape in SHAPES]
    outcome = outcome_of(scratchpads, streams)
    for shape, stream, done in zip(SHAPES, streams, outcome["done"], strict=True):
        assert done == modelled(stream, *shape), f"{shape[0]} ports, {shape[1]} banks"
    assert outcome["compared"] > 3000
    assert outcome["waits"] > 10_000


def test_a_bank_serves_a_word_a_cycle_and_ports_take_turns(scratchpads: Simulation) -> None:
    # Every port asks four times for words of bank 0, from cycle 0 on.
    streams = [
        np.array([(0, p, 1, banks * p) for _ in range(4) for p in range(ports)])
        for ports, banks in SHAPES
    ]
    for stream, done in zip(streams, outcome_of(scratchpads, streams)["done"], strict=True):
        assert done == list(range(1, len(stream) + 1))


def test_ports_at_banks_of_their_own_never_wait(scratchpads: Simulation) -> None:
    # As many ports as there are banks go through all words, one bank apart.
    streams = [
        np.array([(0, p, 1, p + k) for k in range(100) for p in range(min(ports, banks))])
        for ports, banks in SHAPES
    ]
    outcome = outcome_of(scratchpads, streams)
    assert outcome["waits"] == 0
    for (ports, banks), done in zip(SHAPES, outcome["done"], strict=True):
        assert done == [k + 1 for k in range(100) for _ in range(min(ports, banks))]


@pytest.mark.parametrize(("ports", "banks", "depth"), [(1, 2, 2), (5, 16, 768), (32, 64, 2)])
def test_sources_are_lint_clean(ports: int, banks: int, depth: int) -> None:
    outcome = lint("scratchpad", SOURCES, Ports=ports, Banks=banks, Depth=depth)
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("Ports", 33, "Ports is 33, must be 1 to 32"),
        ("Banks", 1, "Banks is 1, must be a power of two, 2 to 256"),
        ("Banks", 12, "Banks is 12, must be a power of two, 2 to 256"),
        ("Depth", 1, "Depth is 1, must be at least 2"),
        ("Width", 0, "Width is 0, must be at least 1"),
    ],
)
def test_illegal_parameters_do_not_elaborate(name: str, value: int, rule: str) -> None:
    outcome = lint("scratchpad", SOURCES, **{name: value})
    assert outcome.returncode != 0
    assert f"scratchpad: {rule}" in outcome.stderr
