"""Timelines in the Chrome trace format, which Perfetto (ui.perfetto.dev) opens.

A tile is a process, its engines are threads, and so is what it receives; an arrow leads from a
transfer's start to its arrival. Counters show the flits a cycle on the links that leave a tile, of
transfers that cross one that is shown. A cycle is shown as a microsecond.

Format: "Trace Event Format", Google, phases X, M, C, s and f.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tlm.errors import hold_least
from tlm.files import whole_file
from tlm.interconnect.packets import TileSet
from tlm.program.operations import Engine, Tile
from tlm.trace.recorder import EngineSpan, TransferSpan

_RECEIVE = len(Engine)  # beside the engines of a tile what it receives
_THREADS = (*(engine.name.lower() for engine in Engine), "receive")
_LINKS = ("north", "east", "south", "west")
MOST_SPANS = 200_000
_COUNTER_BINS = 500


class Timeline:
    """A recorder that keeps what concerns the tiles of a region, of every n-th operation.

    Attributes:
        region: Those tiles.
        dropped: Spans for which there was no room.
        dropped_transfers: Transfers for which there was none: arrows and counters lack them.
    """

    def __init__(
        self,
        region: TileSet,
        cols: int,
        *,
        every: int = 1,
        most_spans: int = MOST_SPANS,
        y_first: bool = False,
    ) -> None:
        """Begin.

        Args:
            region: Tiles that are shown.
            cols: Columns of the whole grid.
            every: Only operations whose number is a multiple of this are shown.
            most_spans: Room, and as much for transfers.
            y_first: Packets go along the column first.

        Raises:
            InputError: if ``every`` is below 1.
        """
        hold_least("--every", every, 1)
        self.region = region
        self._cols = cols
        self._every = every
        self._room = most_spans
        self._spans: list[EngineSpan] = []
        self._transfers: list[TransferSpan] = []
        self._y_first = y_first
        self.dropped = self.dropped_transfers = 0

    def operation(self, span: EngineSpan) -> None:
        """See `Recorder`."""
        if self._wanted(span.number, span.tile):
            if len(self._spans) < self._room:
                self._spans.append(span)
            else:
                self.dropped += 1

    def transfer(self, span: TransferSpan) -> None:
        """See `Recorder`."""
        number, label, source, target, *_ = span
        self.operation(
            EngineSpan(number, label, _RECEIVE, target, _received_from(span), span.arrival_cycle)
        )
        left = (tile for tile, _ in _links(source, target, self._y_first))
        if any(self._wanted(number, tile) for tile in (target, *left)):
            if len(self._transfers) < self._room:
                self._transfers.append(span)
            else:
                self.dropped_transfers += 1

    def write(self, path: Path) -> None:
        """Write a compressed trace (``.json.gz``); equal runs give equal bytes.

        Raises:
            InputError: naming the path, if it cannot be written.
        """
        events = [*self._names(), *self._slices(), *self._arrows(), *self._counters()]
        trace = {"traceEvents": events, "otherData": {"microsecond": "1 cycle"}}
        text = json.dumps(trace, separators=(",", ":")).encode()
        with whole_file(path) as scratch, scratch.open("wb") as file:
            file.write(gzip.compress(text, mtime=0))

    def _wanted(self, number: int, tile: Tile) -> bool:
        return number % self._every == 0 and tile in self.region

    def _process(self, tile: Tile) -> int:
        return tile[0] * self._cols + tile[1]

    def _names(self) -> Iterator[dict[str, Any]]:
        threads = sorted({(span.tile, span.engine) for span in self._spans})
        for tile in sorted({tile for tile, _ in threads}):
            yield _name("process_name", self._process(tile), 0, f"tile {tile[0]},{tile[1]}")
        for tile, thread in threads:
            yield _name("thread_name", self._process(tile), thread, _THREADS[thread])

    def _slices(self) -> Iterator[dict[str, Any]]:
        for span in sorted(self._spans, key=_order):
            yield {
                "ph": "X",
                "name": span.label or _THREADS[span.engine],
                "pid": self._process(span.tile),
                "tid": span.engine,
                "ts": span.start_cycle,
                "dur": span.end_cycle - span.start_cycle,
                "args": {"operation": span.number},
            }

    def _arrows(self) -> Iterator[dict[str, Any]]:
        """From the source's transfer to the target's receipt, where both are shown."""
        both = [
            each
            for each in self._transfers
            if self._wanted(each.number, each.source) and self._wanted(each.number, each.target)
        ]
        for number, each in enumerate(sorted(both, key=_way)):
            ends = (
                ("s", each.source, int(Engine.TRANSFER), each.start_cycle),
                ("f", each.target, _RECEIVE, _received_from(each)),
            )
            for phase, tile, thread, time in ends:
                yield {
                    "ph": phase,
                    "name": "transfer",
                    "cat": "transfer",
                    "id": number,
                    "pid": self._process(tile),
                    "tid": thread,
                    "ts": time,
                    **({"bp": "e"} if phase == "f" else {}),
                }

    def _counters(self) -> Iterator[dict[str, Any]]:
        """Flits a cycle on the links of the region's tiles, each transfer spread over its time."""
        if not self._transfers:
            return
        last = max(each.arrival_cycle for each in self._transfers)
        bin_cycles = -(-max(last, 1) // _COUNTER_BINS)
        sample = f", 1 of {self._every} operations" if self._every > 1 else ""
        loads: dict[tuple[Tile, int], dict[int, float]] = {}
        seen: set[tuple[object, ...]] = set()
        for each in sorted(self._transfers, key=_way):
            for tile, link in _links(each.source, each.target, self._y_first):
                # Branches of a multicast share their way: its flits cross it once.
                key = (each.number, each.source, tile, link, each.start_cycle)
                if key not in seen and self._wanted(each.number, tile):
                    seen.add(key)
                    _spread(loads.setdefault((tile, link), {}), each, bin_cycles)
        for (tile, link), bins in sorted(loads.items()):
            for at in sorted({*bins, *(number + 1 for number in bins)}):
                yield {
                    "ph": "C",
                    "name": f"link {_LINKS[link]}{sample}",
                    "pid": self._process(tile),
                    "ts": at * bin_cycles,
                    "args": {"flits a cycle": round(bins.get(at, 0.0) / bin_cycles, 4)},
                }


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _order(span: EngineSpan) -> tuple[object, ...]:
    return span.start_cycle, span.tile, span.engine, span.number, span.end_cycle


def _way(each: TransferSpan) -> tuple[object, ...]:
    return each.start_cycle, each.number, each.source, each.target


def _received_from(each: TransferSpan) -> int:
    """When its first flit is taken to come."""
    return max(each.start_cycle, each.arrival_cycle - each.flits)


def _links(source: Tile, target: Tile, y_first: bool) -> Iterator[tuple[Tile, int]]:
    """Tile and direction of the links of a way, along the row first or the column."""
    if y_first:
        for (col, row), link in _links(source[::-1], target[::-1], False):
            yield (row, col), 3 - link
        return
    row, (to_row, to_col) = source[0], target
    step = 1 if to_col > source[1] else -1
    for col in range(source[1], to_col, step):
        yield (row, col), 1 if step > 0 else 3
    step = 1 if to_row > row else -1
    for at in range(row, to_row, step):
        yield (at, to_col), 2 if step > 0 else 0


def _spread(bins: dict[int, float], each: TransferSpan, bin_cycles: int) -> None:
    """Add a transfer's flits to the bins that it lasts through."""
    start, end = each.start_cycle, max(each.arrival_cycle, each.start_cycle + 1)
    for at in range(start // bin_cycles, -(-end // bin_cycles)):
        part = min(end, (at + 1) * bin_cycles) - max(start, at * bin_cycles)
        bins[at] = bins.get(at, 0.0) + each.flits * part / (end - start)
