"""From operations of a program to steps of the loosely-timed engine (`tlm.engines.lt_table`)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt_plain import MOST_TAKEN
from tlm.engines.lt_spaced import FEW_TILES
from tlm.engines.lt_table import (
    BEGIN_SEND,
    COLUMN_MULTICAST,
    COLUMN_REDUCE,
    END_SEND,
    PLAIN_SEND,
    PLAIN_WORK,
    ROW_MULTICAST,
    ROW_REDUCE,
    SEND,
    SPACED_SEND,
    SPACED_WORK,
    WORK,
    Pools,
)
from tlm.engines.lt_tokens import Place
from tlm.engines.transfer_times import arrival_cycles, credit_cycles, hold_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.operations import Collective, Indices, Reduce, Send, Work, root_lines

Fields = dict[str, int]
TOKENS = ("takes", "slots", "gives", "arrivals")
Lines = Iterable[int] | Indices


@dataclass(frozen=True, slots=True)
class Tokens:
    """Where the tokens of an operation lie.

    Attributes:
        fields: Of `lt_table.STEP`.
        taken: Places that are taken from, here and at the targets.
        given: Places that are given to.
    """

    fields: Fields
    taken: list[Place]
    given: list[Place]

    @property
    def plain(self) -> bool:
        """Whether `tlm.engines.lt_plain` knows them."""
        queued = any(depth for _, depth in self.taken + self.given)
        most = max(self.fields["n_takes"], self.fields.get("n_slots", 0))
        return not queued and most <= MOST_TAKEN and not {*self.taken} & {*self.given}

    @property
    def single(self) -> bool:
        """Whether `tlm.engines.lt_spaced` does."""
        return all(self.fields.get("n_" + name, 0) <= 1 for name in TOKENS)


@dataclass(frozen=True, slots=True)
class Built:
    """An operation as steps.

    Attributes:
        steps: Fields of `lt_table.STEP`; those left out are 0.
        reach: Rows between a source and its target, at most.
        straight: Whether nothing moves along the rows.
        by_column: Whether a step spans all rows of a column.
        longest_cycles: More than the operation can add to any time.
    """

    steps: tuple[Fields, ...]
    reach: int
    straight: bool
    by_column: bool
    longest_cycles: int


class Builder:
    """Builds steps, and keeps what operations share."""

    def __init__(self, timing: NocTiming, pools: Pools, launch_cycles: int) -> None:
        self._timing = timing
        self._launch_cycles = launch_cycles
        self._pools = pools
        self._kept: dict[tuple[Any, ...], Any] = {}

    def forget(self) -> None:
        """Forget what lies in the pools."""
        self._kept.clear()

    def work(self, work: Work, tokens: Tokens, cycles: int, table: int, beside: int) -> Built:
        """Steps of work, of some cycles or of a table of them, beside another engine or -1."""
        step: Fields = {
            "kind": WORK,
            "engine": int(work.engine),
            **_rows(work.tiles.rows),
            **self._columns(work.tiles.cols),
            **tokens.fields,
            "cycles": 0 if table >= 0 else cycles,
            "table": table,
            "beside": beside,
        }
        if _spaced(step["first"], step["size"]):
            if tokens.single:
                step["kind"] = SPACED_WORK
        elif tokens.plain and beside < 0:
            step["kind"] = PLAIN_WORK
        return Built((step,), 0, straight=True, by_column=False, longest_cycles=cycles)

    def send(self, send: Send, tokens: Tokens) -> Built:
        """Steps of unicasts."""
        law, farthest, straight = self._keep(
            self._send_law, send.tiles.cols, send.to_cols.tobytes(), send.flits
        )
        lines, reach = self._keep(self._send_rows, send.tiles.rows, send.to_rows.tobytes())
        step = {
            **lines,
            **law,
            **tokens.fields,
            "kind": SEND,
            "table": -1,
            **self._length(send.flits),
        }
        steps: tuple[Fields, ...] = (step,)
        if _spaced(min(step["first"], step["to_first"]), step["size"]):
            if tokens.single and step["order"] < 0 and not reach:
                step["kind"] = SPACED_SEND
        elif tokens.plain:
            step["kind"] = PLAIN_SEND
        if reach and step["kind"] == SEND:
            steps = ({**step, "kind": BEGIN_SEND}, {**step, "kind": END_SEND})
        longest = _transfer_cycles(self._timing, farthest + reach, send.flits)
        return Built(steps, reach, straight, by_column=False, longest_cycles=longest)

    def _length(self, flits: int) -> Fields:
        return {"flits": flits, "launch": self._launch_cycles}

    def _credit_cycles(self, hops: int) -> int:
        """From the freeing of a slot to the first flit that a sender so far away has for it."""
        return credit_cycles(self._timing, hops) + self._launch_cycles

    def _send_rows(self, rows: range, targets: bytes) -> tuple[Fields, int]:
        to_rows = np.frombuffer(targets, dtype=np.int64)
        hops = np.abs(to_rows - np.array(rows))
        fields = {
            **_rows(rows),
            "to_rows": self._pools.put_indices(to_rows),
            "extra": self._pools.put_delays(hops * self._timing.hop_cycles),
        }
        return fields, int(hops.max())

    def _send_law(self, cols: range, targets: bytes, flits: int) -> tuple[Fields, int, bool]:
        to_cols = np.frombuffer(targets, dtype=np.int64)
        order = np.argsort(to_cols, kind="stable")
        hops = np.abs(to_cols - np.array(cols))[order]
        fields = {**self._columns(cols)}
        there = self._columns(to_cols[order])
        fields |= {"to_columns": there["columns"], "to_first": there["first"]}
        if (order == np.arange(len(order))).all():
            fields |= {"order": -1, "inverse": -1}
        else:
            inverse = np.argsort(order, kind="stable")
            fields["order"] = self._pools.put_order(order)
            fields["inverse"] = self._pools.put_order(inverse)
        fields |= self._delays(hops, lambda hop: arrival_cycles(self._timing, hop, flits))
        fields |= self._buffers(hops, flits)
        straight = bool((to_cols == np.array(cols)).all())
        return fields, int(hops.max()), straight

    def _buffers(self, hops: NDArray[np.int64], flits: int) -> Fields:
        """What holds a source whose transfer waits at its end: the buffers on the way are full.

        A place in a buffer is filled again ``return_cycles`` after it was left.
        """
        timing = self._timing
        depth = timing.fifo_depth + timing.output_depth
        needed = flits > depth * (1 + int(hops.min()))
        return {
            "buffers": self._pools.put_delays(hops + 1) if needed else -1,
            "packet": depth,
            "room": depth - timing.return_cycles,
            "per_hop": timing.hop_cycles,
        }

    def collective(self, collective: Collective, tokens: Fields) -> Built:
        """Steps of multicasts or reductions."""
        lines, places = root_lines(collective)
        segment, flits = collective.segment, collective.flits
        reduces = isinstance(collective, Reduce)
        make = self._reduce_law if reduces else self._multicast_law
        distinct = dict.fromkeys(places.tolist())
        laws = {r: self._keep(make, segment, r, flits) for r in distinct}
        longest = max(cycles for _, cycles in laws.values())
        law = laws[int(places[0])][0]
        step = {**law, **tokens, "table": -1, **self._length(flits)}
        if collective.along == "row":
            offsets = {root: (law["credit"], law["latency"]) for root, (law, _) in laws.items()}
            step |= {
                "kind": ROW_REDUCE if reduces else ROW_MULTICAST,
                "root": self._pools.put_indices(places),
                "law": self._pools.put_indices([offsets[root] for root in places.tolist()]),
                **_rows(lines),
                **self._columns(segment),
            }
            return Built((step,), 0, straight=False, by_column=False, longest_cycles=longest)
        step |= {"kind": COLUMN_REDUCE if reduces else COLUMN_MULTICAST, **_rows(segment)}
        steps: tuple[Fields, ...]
        if len(distinct) == 1:
            steps = ({**step, "root": int(places[0]), **self._columns(lines)},)
        else:
            steps = tuple(
                {**step, **laws[root][0], "root": root, **self._columns(range(line, line + 1))}
                for line, root in zip(lines, places.tolist(), strict=True)
            )
        return Built(steps, 0, straight=True, by_column=True, longest_cycles=longest)

    def _multicast_law(self, segment: range, root: int, flits: int) -> tuple[Fields, int]:
        forks = len(segment) > 1
        hops = np.abs(np.array(segment) - root)
        fields = self._delays(
            hops, lambda hop: arrival_cycles(self._timing, hop, flits, multicast=forks)
        )
        fields["hold"] = hold_cycles(self._timing, flits, multicast=forks)
        fields |= self._buffers(hops, flits)
        for name, hop in (("occupied", 1), ("own_occupied", 0)):
            arrival = arrival_cycles(self._timing, hop, flits, multicast=forks)
            fields[name] = arrival - arrival_cycles(self._timing, hop, 1) + 1
        return fields, _transfer_cycles(self._timing, int(hops.max()), flits)

    def _reduce_law(self, segment: range, root: int, flits: int) -> tuple[Fields, int]:
        timing = self._timing
        hops = np.abs(np.array(segment) - root)
        farthest = int(hops.max())
        per_hop = timing.hop_cycles + timing.reduce_cycles
        arrival = timing.reduction_cycles(farthest, flits) + 1
        interval = max(timing.reduce_interval_cycles, timing.link_interval_cycles)
        # The flit that leaves its place in the first buffer to the tail.
        packets, flit = divmod(flits - timing.fifo_depth - 1, timing.fifo_depth)
        packets = max(packets, -1)
        fields = {
            "credit": self._pools.put_delays([self._credit_cycles(hop) for hop in hops]),
            "latency": self._pools.put_delays([arrival - farthest * per_hop]),
            "per_hop": per_hop,
            "packet": timing.fifo_depth * interval,
            "ahead": packets,
            "hold": flit * interval + timing.hop_cycles + 2,
        }
        longest = arrival + credit_cycles(timing, farthest) + (packets + 2) * (per_hop + flits)
        return fields, longest

    def _delays(self, hops: NDArray[np.int64], arrival: Callable[[int], int]) -> Fields:
        """A credit's delay and a transfer's latency over each number of hops."""
        counts = range(int(hops.max()) + 1)
        laws = {
            "credit": [self._credit_cycles(hop) for hop in counts],
            "latency": [arrival(hop) for hop in counts],
        }
        return {name: self._pools.put_delays(np.array(law)[hops]) for name, law in laws.items()}

    def _columns(self, columns: Lines) -> Fields:
        if isinstance(columns, range):
            fields: Fields = self._keep(self._indexed, columns)
            return fields
        return self._indexed(columns)

    def _indexed(self, columns: Lines) -> Fields:
        indices = np.array(columns)
        first = int(indices[0]) if (np.diff(indices) == 1).all() else -1
        offset = self._pools.put_indices(indices)
        return {"columns": offset, "first": first, "size": len(indices)}

    def _keep(self, make: Callable[..., Any], *arguments: Any) -> Any:
        key = (make.__name__, *arguments)
        if key not in self._kept:
            self._kept[key] = make(*arguments)
        return self._kept[key]


def _spaced(first: int, size: int) -> bool:
    """Whether tiles of a row, from the ``first`` or not side by side, are done one by one."""
    return first < 0 or size <= FEW_TILES


def _rows(rows: range) -> Fields:
    return {"row_first": rows.start, "row_step": rows.step, "rows": len(rows)}


def _transfer_cycles(timing: NocTiming, hops: int, flits: int) -> int:
    """More than a transfer and its credit can add to any time."""
    arrival = arrival_cycles(timing, hops, flits, multicast=True)
    return arrival + credit_cycles(timing, hops) + flits
