"""From operations of a program to steps of the loosely-timed engine (`tlm.engines.lt.step`)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlm.engines.lt.collectives import COLLECTIVES
from tlm.engines.lt.laws import Fields, Laws, rows_of
from tlm.engines.lt.send import column_fields, row_fields
from tlm.engines.lt.step import Pools, StepKind, record
from tlm.engines.lt.tokens import Place, Places
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program.operations import Along, Collective, Engine, Send, Work

_FEW_TILES = 16

Named = tuple[tuple[str, tuple[Place, ...]], ...]
"""`Places` that can be a key."""
TOKENS = ("takes", "slots", "gives", "arrivals")
TAKEN = ("takes", "slots")
"""Fields of tokens that an operation takes; it gives those of the others."""


@dataclass(frozen=True, slots=True)
class Built:
    """An operation as steps.

    Attributes:
        steps: Numbers of each as `step.record` gives them.
        longest_cycles: More than the operation can add to any time.
        straight: Whether nothing moves along the rows.
        by_column: Whether a step spans all rows of a column.
        reach: Rows between a source and its target, at most.
    """

    steps: tuple[NDArray[np.int64], ...]
    longest_cycles: int
    straight: bool = False
    by_column: bool = False
    reach: int = 0


class Builder:
    """Builds steps, and keeps what operations share."""

    def __init__(self, timing: NocTiming, pools: Pools, launch_cycles: int) -> None:
        self._pools = pools
        self._laws = Laws(timing, pools, launch_cycles)

    def forget(self) -> None:
        """Forget what lies in the pools."""
        self._laws.forget()

    def work(self, work: Work, places: Places, cycles: int, table: int, beside: int) -> Built:
        """Steps of work, of some cycles or of a table of them, beside another engine or -1."""
        named = tuple(places.items())
        built: Built = self._laws.keep(
            self._work, work.engine, work.tiles, named, cycles, table, beside
        )
        return built

    def _work(
        self, engine: Engine, tiles: TileSet, named: Named, cycles: int, table: int, beside: int
    ) -> Built:
        step = {
            "kind": StepKind.WORK,
            "engine": int(engine),
            **rows_of(tiles.rows),
            **self._laws.columns(tiles.cols),
            **self._tokens(named),
            "cycles": 0 if table >= 0 else cycles,
            "table": table,
            "beside": beside,
        }
        step["few"] = int(_few(step["first"], step["size"], named))
        return Built((record(step),), cycles, straight=True)

    def transfer(self, transfer: Send | Collective, places: Places) -> Built:
        """Steps of a transfer between tiles."""
        flits, named = transfer.flits, tuple(places.items())
        built: Built
        if isinstance(transfer, Send):
            to = transfer.to_rows.tobytes(), transfer.to_cols.tobytes()
            built = self._laws.keep(self._send, transfer.tiles, *to, flits, named)
            return built
        lines, roots = transfer.root_lines
        form = (type(transfer), transfer.along, transfer.segment, lines, roots.tobytes())
        built = self._laws.keep(self._collective, *form, (flits, *transfer.own_cycles), named)
        return built

    def _send(
        self, tiles: TileSet, to_rows: bytes, to_cols: bytes, flits: int, named: Named
    ) -> Built:
        law, farthest, straight = self._laws.keep(
            column_fields, self._laws, tiles.cols, to_cols, flits
        )
        lines, reach = self._laws.keep(row_fields, self._laws, tiles.rows, to_rows)
        step = {**lines, **law, **self._transfer(flits, named)}
        tile_by_tile = _few(min(step["first"], step["to_first"]), step["size"], named)
        step["few"] = int(tile_by_tile and step["order"] < 0)
        kinds: tuple[StepKind, ...] = (StepKind.SEND,)
        if reach and not any_order(named):
            kinds = (StepKind.BEGIN_SEND, StepKind.END_SEND)
        steps = tuple(record({**step, "kind": kind}) for kind in kinds)
        longest = self._laws.longest_cycles(farthest + reach, flits)
        return Built(steps, longest, straight=straight, reach=reach)

    def _transfer(self, flits: int, named: Named) -> Fields:
        """Fields that all transfers have."""
        launch = self._laws.launch_cycles
        return {**self._tokens(named), "flits": flits, "launch": launch, "table": -1}

    def _tokens(self, named: Named) -> Fields:
        """Fields that say where the tokens of an operation lie."""
        return {field: self._pools.put_tokens(places) for field, places in named}

    def _collective(
        self,
        kind: type[Collective],
        along: Along,
        segment: range,
        lines: range,
        roots: bytes,
        lengths: tuple[int, ...],
        named: Named,
    ) -> Built:
        places = np.frombuffer(roots, dtype=np.int64)
        number, make = COLLECTIVES[kind]
        distinct = dict.fromkeys(places.tolist())
        laws = {r: self._laws.keep(make, self._laws, segment, r, *lengths) for r in distinct}
        longest = max(cycles for _, cycles in laws.values())
        law = laws[int(places[0])][0]
        step = {**law, **self._transfer(lengths[0], named), "collective": number}
        if along == "row":
            offsets = {root: (law["credit"], law["latency"]) for root, (law, _) in laws.items()}
            step |= {
                "kind": StepKind.ALONG_ROWS,
                "root": self._pools.put_indices(places),
                "law": self._pools.put_indices([offsets[root] for root in places.tolist()]),
                **rows_of(lines),
                **self._laws.columns(segment),
            }
            return Built((record(step),), longest)
        step |= {"kind": StepKind.ALONG_COLUMNS, **rows_of(segment)}
        alike = [(lines, int(places[0]))]
        if len(distinct) > 1:
            pairs = zip(lines, places.tolist(), strict=True)
            alike = [(range(line, line + 1), root) for line, root in pairs]
        steps = tuple(
            record({**step, **laws[root][0], "root": root, **self._laws.columns(columns)})
            for columns, root in alike
        )
        return Built(steps, longest, straight=True, by_column=True)


def _few(first: int, size: int, named: Named) -> bool:
    """Whether tiles of a row, from the ``first`` or not side by side, are done one by one.

    Vectors do not pay where they are few or spaced. Of tokens each place has at most one then.
    """
    return (first < 0 or size <= _FEW_TILES) and all(len(places) <= 1 for _, places in named)


def any_order(named: Named) -> bool:
    """Whether no place is both taken from and given to: a send's rows may go in any order."""
    taken = {place for field, places in named if field in TAKEN for place in places}
    return not any(taken & {*places} for field, places in named if field not in TAKEN)
