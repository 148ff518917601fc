"""Streams of requests to DRAM channels, and the figures of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlm.errors import InputError, check_range, choose
from tlm.memory.dram.channel import BurstRequests, ChannelRun
from tlm.memory.dram.device import Device
from tlm.memory.tables import Int64s

PATTERNS = ("sequential", "strided", "random", "mixed", "dma")
#: Writes of each hundred, where not given.
_WRITE_FRACTIONS = {"mixed": 0.5}
_MOST_REQUESTS = 10_000_000
_MOST_REQUESTERS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DramTraffic:
    """What requesters ask of the memory, which is one channel or several.

    Requester r of R has a region of its own, which begins at r times the R-th part of the memory,
    but for ``dma``, whose requesters share the memory. Addresses wrap at the end of the memory.
    With N the requester's own count from 0, a burst each:

    - sequential: the region's bursts in order.
    - strided: N times ``stride_bytes`` from the region's begin.
    - random: any burst of the memory, independent of each other.
    - mixed: sequential, reads and writes drawn at random.
    - dma: blocks of ``block_bytes``, burst by burst; the k-th block of requester r begins at
      r ``block_bytes`` + k ``stride_bytes``.

    A request is a write with probability ``write_fraction``, each drawn on its own.

    Attributes:
        pattern: One of PATTERNS.
        requests: Requests of all requesters together, shared out evenly.
        requesters: Requesters.
        block_bytes: Size of a block of ``dma``, whole bursts.
        stride_bytes: Whole bursts; None for the natural one: a row of all banks (``strided``: each
            request finds the same bank and the next row, unless the map hashes) or, for
            ``dma``, the blocks of all requesters, so that together they are a sequence.
        write_fraction: Share of writes; None for 0.5 in ``mixed`` and 0 elsewhere.
        seed: Seed of places and directions.
    """

    pattern: str
    requests: int
    requesters: int = 1
    block_bytes: int = 4096
    stride_bytes: int | None = None
    write_fraction: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        choose("pattern", self.pattern, PATTERNS)
        check_range("--requesters", self.requesters, 1, _MOST_REQUESTERS)
        check_range("--requests", self.requests, max(10, self.requesters), _MOST_REQUESTS)
        check_range("--write-fraction", self.write_fraction or 0, 0, 1)
        if self.seed < 0:
            raise InputError(f"--seed: found {self.seed}; allowed: 0 or more")

    def stream(self, device: Device, channels: int = 1) -> BurstRequests:
        """The requests, all offered as early as the requester's turn comes.

        Args:
            device: What a channel is.
            channels: Channels; addresses are of all of them together.

        Raises:
            InputError: for sizes that are not whole bursts or do not fit the device.
        """
        rng = np.random.default_rng(self.seed)
        each, more = divmod(self.requests, self.requesters)
        counts = [each + (requester < more) for requester in range(self.requesters)]
        who = np.repeat(np.arange(self.requesters), counts)
        number = np.concatenate([np.arange(count) for count in counts])
        size = channels * device.bursts
        burst = self._bursts(device, size, who, number, rng) % size
        fraction = self.write_fraction
        if fraction is None:
            fraction = _WRITE_FRACTIONS.get(self.pattern, 0.0)
        write = (rng.random(self.requests) < fraction).astype(np.int64)
        return BurstRequests(np.zeros(self.requests, dtype=np.int64), write, burst, counts)

    def _bursts(
        self, device: Device, size: int, who: Int64s, number: Int64s, rng: np.random.Generator
    ) -> Int64s:
        begin = who * (size // self.requesters)
        if self.pattern == "random":
            return rng.integers(0, size, self.requests)
        if self.pattern == "strided":
            row_bytes = device.banks * device.burst_bytes << device.column_bits
            return begin + number * self._stride(device, row_bytes)
        if self.pattern == "dma":
            block = device.in_bursts("--block-bytes", self.block_bytes)
            stride = self._stride(device, self.block_bytes * self.requesters)
            return who * block + number // block * stride + number % block
        return begin + number

    def _stride(self, device: Device, natural_bytes: int) -> int:
        given = self.stride_bytes
        return device.in_bursts("--stride-bytes", natural_bytes if given is None else given)


@dataclass(frozen=True, slots=True)
class DramFigures:
    """Figures of a run.

    Attributes:
        bandwidth_fraction: Bursts answered per time over the data buses' peak, from the time by
            which a tenth of all answers had come to that by which nine tenths had.
        read_latency_ns: Mean, median and 99th percentile of acceptance to last beat; None without
            reads.
        row_hit_fraction: Share of column commands to a row that had served one since its activate.
        refresh_fraction: Share of the channels' time from refreshes falling due to the end of their
            tRFC: rows are closed, then no bank can be used.
    """

    bandwidth_fraction: float
    read_latency_ns: dict[str, float] | None
    row_hit_fraction: float
    refresh_fraction: float


def figures(
    device: Device, runs: Sequence[tuple[BurstRequests, ChannelRun]], channels: int = 1
) -> DramFigures:
    """The figures of channels of a device, from what each that was used was asked and did."""
    ends = np.sort(np.concatenate([outcome.end_resp for _, outcome in runs]))
    first, last = len(ends) // 10, len(ends) * 9 // 10
    span = int(ends[last] - ends[first])
    reads = None
    latency = device.tick_ns * np.concatenate(
        [outcome.latency_ticks()[requests.write == 0] for requests, outcome in runs]
    )
    if len(latency):
        p50, p99 = np.percentile(latency, [50, 99])
        reads = {"mean": float(latency.mean()), "p50": float(p50), "p99": float(p99)}
    outcomes = [outcome for _, outcome in runs]
    return DramFigures(
        bandwidth_fraction=(last - first) * device.bl / max(span * channels, 1),
        read_latency_ns=reads,
        row_hit_fraction=_share([o.row_hits for o in outcomes], [o.columns for o in outcomes]),
        refresh_fraction=_share([o.refresh_ticks for o in outcomes], [o.ticks for o in outcomes]),
    )


def _share(parts: list[int], wholes: list[int]) -> float:
    return sum(parts) / max(sum(wholes), 1)
