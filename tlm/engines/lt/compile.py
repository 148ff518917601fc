"""From operations of a program to steps of the loosely-timed engine (`tlm.engines.lt.step`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.laws import Fields, Laws, rows_of, shared_hops
from tlm.engines.lt.plain import MOST_TAKEN
from tlm.engines.lt.spaced import FEW_TILES
from tlm.engines.lt.step import (
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
    record,
)
from tlm.engines.lt.tokens import Place
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import (
    Along,
    Collective,
    Engine,
    Reduce,
    Send,
    Work,
    root_lines,
)

Places = tuple[tuple[str, tuple[Place, ...]], ...]
"""Where the units lie that an operation takes and gives, by field."""
TOKENS = ("takes", "slots", "gives", "arrivals")
TAKEN = ("takes", "slots")
"""Fields of tokens that an operation takes; it gives those of the others."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Where the tokens of an operation lie.

    Attributes:
        fields: Of `step.STEP`.
        taken: Places that are taken from, here and at the targets.
        given: Places that are given to.
    """

    fields: Fields
    taken: list[Place]
    given: list[Place]

    @property
    def plain(self) -> bool:
        """Whether `tlm.engines.lt.plain` knows them."""
        deepest = max((depth for _, depth in self.taken + self.given), default=0)
        most = max(self.fields["n_takes"], self.fields.get("n_slots", 0))
        if deepest > 1 or most > MOST_TAKEN or {*self.taken} & {*self.given}:
            return False
        # Of a queue named twice the second unit is missing, or one too many.
        queues = [place for place in self.taken + self.given if place[1]]
        return len({*queues}) == len(queues)

    @property
    def single(self) -> bool:
        """Whether `tlm.engines.lt.spaced` does."""
        return all(self.fields.get("n_" + name, 0) <= 1 for name in TOKENS)


@dataclass(frozen=True, slots=True)
class Built:
    """An operation as steps.

    Attributes:
        steps: Numbers of each as `step.record` gives them.
        reach: Rows between a source and its target, at most.
        straight: Whether nothing moves along the rows.
        by_column: Whether a step spans all rows of a column.
        longest_cycles: More than the operation can add to any time.
        shared_hops: `lt_laws.shared_hops` of a send.
    """

    steps: tuple[NDArray[np.int64], ...]
    reach: int
    straight: bool
    by_column: bool
    longest_cycles: int
    shared_hops: int = 0


class Builder:
    """Builds steps, and keeps what operations share."""

    def __init__(self, timing: NocTiming, pools: Pools, launch_cycles: int) -> None:
        self._pools = pools
        self._laws = Laws(timing, pools, launch_cycles)

    def forget(self) -> None:
        """Forget what lies in the pools."""
        self._laws.forget()

    def work(
        self,
        work: Work,
        places: Mapping[str, Sequence[Place]],
        cycles: int,
        table: int,
        beside: int,
    ) -> Built:
        """Steps of work, of some cycles or of a table of them, beside another engine or -1."""
        named = _named(places)
        built: Built = self._laws.keep(
            self._work, work.engine, work.tiles, named, cycles, table, beside
        )
        return built

    def _work(
        self, engine: Engine, tiles: TileSet, named: Places, cycles: int, table: int, beside: int
    ) -> Built:
        tokens = self._tokens(named)
        step: Fields = {
            "kind": WORK,
            "engine": int(engine),
            **rows_of(tiles.rows),
            **self._laws.columns(tiles.cols),
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
        return _built((step,), 0, straight=True, by_column=False, longest=cycles)

    def send(self, send: Send, places: Mapping[str, Sequence[Place]]) -> Built:
        """Steps of unicasts."""
        to = send.to_rows.tobytes(), send.to_cols.tobytes()
        built: Built = self._laws.keep(self._send, send.tiles, *to, send.flits, _named(places))
        return built

    def _send(
        self, tiles: TileSet, to_rows: bytes, to_cols: bytes, flits: int, named: Places
    ) -> Built:
        tokens = self._tokens(named)
        law, farthest, straight = self._laws.keep(self._laws.send, tiles.cols, to_cols, flits)
        lines, reach = self._laws.keep(self._laws.send_rows, tiles.rows, to_rows)
        step = {
            **lines,
            **law,
            **tokens.fields,
            "kind": SEND,
            "table": -1,
            **self._laws.length(flits),
        }
        steps: tuple[Fields, ...] = (step,)
        if _spaced(min(step["first"], step["to_first"]), step["size"]):
            if tokens.single and step["order"] < 0 and not reach:
                step["kind"] = SPACED_SEND
        elif tokens.plain:
            step["kind"] = PLAIN_SEND
        if reach and step["kind"] == SEND:
            steps = ({**step, "kind": BEGIN_SEND}, {**step, "kind": END_SEND})
        longest = self._laws.longest_cycles(farthest + reach, flits)
        built = _built(steps, reach, straight=straight, by_column=False, longest=longest)
        return replace(built, shared_hops=shared_hops(tiles, to_rows, to_cols))

    def _tokens(self, named: Places) -> Tokens:
        fields: Fields = {}
        for field, places in named:
            fields[field], fields["n_" + field] = self._pools.put_places(places), len(places)
        taken = [place for field, places in named if field in TAKEN for place in places]
        given = [place for field, places in named if field not in TAKEN for place in places]
        fields["queued"] = int(any(depth for _, depth in taken + given))
        return Tokens(fields, taken, given)

    def collective(self, collective: Collective, places: Mapping[str, Sequence[Place]]) -> Built:
        """Steps of multicasts or reductions."""
        lines, roots = root_lines(collective)
        form = (isinstance(collective, Reduce), collective.along, collective.segment)
        built: Built = self._laws.keep(
            self._collective, *form, lines, roots.tobytes(), collective.flits, _named(places)
        )
        return built

    def _collective(
        self,
        reduces: bool,
        along: Along,
        segment: range,
        lines: range,
        roots: bytes,
        flits: int,
        named: Places,
    ) -> Built:
        places, tokens = np.frombuffer(roots, dtype=np.int64), self._tokens(named).fields
        make = self._laws.reduce if reduces else self._laws.multicast
        distinct = dict.fromkeys(places.tolist())
        laws = {r: self._laws.keep(make, segment, r, flits) for r in distinct}
        longest = max(cycles for _, cycles in laws.values())
        law = laws[int(places[0])][0]
        step = {**law, **tokens, "table": -1, **self._laws.length(flits)}
        if along == "row":
            offsets = {root: (law["credit"], law["latency"]) for root, (law, _) in laws.items()}
            step |= {
                "kind": ROW_REDUCE if reduces else ROW_MULTICAST,
                "root": self._pools.put_indices(places),
                "law": self._pools.put_indices([offsets[root] for root in places.tolist()]),
                **rows_of(lines),
                **self._laws.columns(segment),
            }
            return _built((step,), 0, straight=False, by_column=False, longest=longest)
        step |= {"kind": COLUMN_REDUCE if reduces else COLUMN_MULTICAST, **rows_of(segment)}
        steps: tuple[Fields, ...]
        if len(distinct) == 1:
            steps = ({**step, "root": int(places[0]), **self._laws.columns(lines)},)
        else:
            steps = tuple(
                {**step, **laws[root][0], "root": root, **self._laws.columns(range(line, line + 1))}
                for line, root in zip(lines, places.tolist(), strict=True)
            )
        return _built(steps, 0, straight=True, by_column=True, longest=longest)


def _named(places: Mapping[str, Sequence[Place]]) -> Places:
    return tuple((field, tuple(named)) for field, named in places.items())


def _built(
    steps: tuple[Fields, ...], reach: int, *, straight: bool, by_column: bool, longest: int
) -> Built:
    return Built(tuple(map(record, steps)), reach, straight, by_column, longest)


def _spaced(first: int, size: int) -> bool:
    """Whether tiles of a row, from the ``first`` or not side by side, are done one by one."""
    return first < 0 or size <= FEW_TILES
