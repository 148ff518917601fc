"""Streams are what their names say, and figures what their definitions say."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.memory.dram.channel import BurstRequests, ChannelRun
from tlm.memory.dram.devices import HBM2, HBM3
from tlm.memory.dram.traffic import PATTERNS, DramTraffic, figures


def bursts(**given: Any) -> list[int]:
    found: list[int] = DramTraffic(**given).stream(HBM3).burst.tolist()
    return found


def test_addresses_of_each_pattern() -> None:
    half = HBM3.bursts // 2
    sequential = bursts(pattern="sequential", requests=10, requesters=2)
    assert sequential == [*range(5), *range(half, half + 5)]
    assert bursts(pattern="mixed", requests=10, requesters=2) == sequential
    strided = bursts(pattern="strided", requests=10, requesters=2, stride_bytes=96)
    assert strided == [0, 3, 6, 9, 12, half, half + 3, half + 6, half + 9, half + 12]
    row = HBM3.banks << HBM3.column_bits
    assert bursts(pattern="strided", requests=10)[:3] == [0, row, 2 * row]
    blocks = bursts(pattern="dma", requests=12, requesters=2, block_bytes=64, stride_bytes=1024)
    assert blocks == [0, 1, 32, 33, 64, 65, 2, 3, 34, 35, 66, 67]
    together = bursts(pattern="dma", requests=12, requesters=3, block_bytes=64)
    assert sorted(together) == list(range(12))
    assert len(set(bursts(pattern="random", requests=1000))) > 990


@settings(max_examples=30, deadline=None)
@given(
    pattern=st.sampled_from(PATTERNS), requests=st.integers(40, 400),
    requesters=st.integers(1, 40), seed=st.integers(0, 99),
)  # fmt: skip
def test_streams_fit_the_device_and_come_again(
    pattern: str, requests: int, requesters: int, seed: int
) -> None:
    traffic = DramTraffic(pattern=pattern, requests=requests, requesters=requesters, seed=seed)
    stream, again = traffic.stream(HBM2), traffic.stream(HBM2)
    assert sum(stream.counts) == len(stream) == requests
    assert max(stream.counts) - min(stream.counts) <= 1
    assert (stream.burst >= 0).all() and (stream.burst < HBM2.bursts).all()
    assert (stream.burst == again.burst).all() and (stream.write == again.write).all()


def test_shares_of_writes() -> None:
    def share(**given: Any) -> float:
        stream = DramTraffic(requests=20_000, **given).stream(HBM3)
        return float(stream.write.mean())

    assert share(pattern="sequential") == 0
    assert share(pattern="mixed") == pytest.approx(0.5, abs=0.02)
    assert share(pattern="random", write_fraction=0.25) == pytest.approx(0.25, abs=0.02)
    assert share(pattern="dma", write_fraction=1.0) == 1


def test_figures_of_a_run_one_can_count() -> None:
    """A burst every 8 ticks: half of the peak, as a burst of HBM3 takes 4."""
    count = 100
    ends = 50 + 8 * np.arange(count)
    requests = BurstRequests(np.zeros(count), np.arange(count) % 2, np.zeros(count), (count,))
    outcome = ChannelRun(ends - 40, ends - 32, ends, ends, 1000, 80, 20, 250, np.zeros((0, 7), int))
    found = figures(HBM3, [(requests, outcome)])
    assert found.bandwidth_fraction == 0.5
    assert found.read_latency_ns == {"mean": 10.0, "p50": 10.0, "p99": 10.0}
    assert (found.row_hit_fraction, found.refresh_fraction) == (0.25, 0.25)
    writes = BurstRequests(np.zeros(count), np.ones(count), np.zeros(count), (count,))
    assert figures(HBM3, [(writes, outcome)]).read_latency_ns is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pattern": "zigzag"}, "unknown pattern 'zigzag'; known: dma, mixed"),
        ({"requests": 9}, "--requests: found 9; allowed: 10 to"),
        ({"requesters": 0}, "--requesters: found 0; allowed: 1 to 1024"),
        ({"write_fraction": 1.5}, "--write-fraction: found 1.5; allowed: 0 to 1"),
        ({"seed": -1}, "--seed: found -1"),
        (
            {"pattern": "dma", "block_bytes": 33},
            "--block-bytes: found 33; allowed: multiples of 32",
        ),
        ({"pattern": "strided", "stride_bytes": 0}, "--stride-bytes: found 0; allowed: multiples"),
    ],
)
def test_wrong_traffic_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DramTraffic(**{"pattern": "random", "requests": 100, **given}).stream(HBM3)
