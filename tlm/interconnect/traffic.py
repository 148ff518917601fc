"""Synthetic traffic: who sends what to whom, the same packets at every level."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tlm.errors import InputError, choose, hold_least
from tlm.files import bounded_lines, open_to_read
from tlm.interconnect.ordering import check_reductions
from tlm.interconnect.packets import (
    REDUCTIONS,
    Deliveries,
    PacketKind,
    Packets,
    ReductionGoal,
    TileSet,
)

PATTERNS = ("uniform", "transpose", "neighbor", "tornado", "hotspot")
_HOTSPOT_SHARE = 0.2
_SATURATED_BELOW = 0.98
#: The highest rate is found to one part in so many.
RATE_STEPS = 256
_LATEST = 2**30 - 1
_MOST_FLITS = 2**20
_MOST_CHANCES = 2**31
_CHANCES_AT_A_TIME = 2**22


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bernoulli traffic on a mesh.

    Attributes:
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        pattern: One of `PATTERNS`.
        rate: Flits a node creates a cycle, in (0, 1].
        packet_flits: Flits of a packet.
        cycles: Cycles during which packets are created.
        seed: Equal seeds give equal packets.
        multicast_fraction: Share of packets that go to a random rectangle instead.
        multicast_flits: Flits of such a packet; at most the routers' buffer depth.
    """

    rows: int
    cols: int
    pattern: str
    rate: float
    packet_flits: int
    cycles: int
    seed: int
    multicast_fraction: float = 0.0
    multicast_flits: int = 1

    def __post_init__(self) -> None:
        choose("traffic", self.pattern, PATTERNS)
        if self.pattern == "transpose" and self.rows != self.cols:
            raise InputError(
                f"transpose traffic needs a square mesh, found {self.rows}x{self.cols}"
            )
        if self.rows * self.cols < 2:
            raise InputError("traffic needs a mesh of at least two nodes")
        if self.packet_flits > _MOST_FLITS:
            raise InputError(f"packet flits: found {self.packet_flits}; allowed: to {_MOST_FLITS}")
        for name, value, least in (
            ("packet flits", self.packet_flits, 1),
            ("multicast flits", self.multicast_flits, 1),
            ("cycles", self.cycles, 1),
            ("seed", self.seed, 0),
        ):
            hold_least(name, value, least)
        if not 0 < self.rate <= 1:
            raise InputError(f"rate {self.rate} is not in (0, 1] flits per node per cycle")
        if not 0 <= self.multicast_fraction <= 1:
            raise InputError(f"multicast fraction {self.multicast_fraction} is not in [0, 1]")
        if self.rows * self.cols * self.cycles > _MOST_CHANCES:
            raise InputError(
                f"{self.cycles} cycles on {self.rows}x{self.cols} nodes are "
                f"{self.rows * self.cols * self.cycles:.3g} node-cycles; "
                f"allowed: {_MOST_CHANCES:.3g}"
            )

    @property
    def warm_up_cycles(self) -> int:
        """Cycles whose packets do not count."""
        return self.cycles // 5

    def packets(self) -> Packets:
        """The packets, by cycle and then by node."""
        rng = np.random.default_rng(self.seed)
        nodes = self.rows * self.cols
        cycle, source = self._created(rng, nodes)
        destination = self._destinations(source, rng)
        speaks = destination != source
        cycle, source, destination = cycle[speaks], source[speaks], destination[speaks]
        one = np.ones(len(cycle), dtype=np.int64)
        row, col = destination // self.cols, destination % self.cols
        table = [cycle, source, one * self.packet_flits, one * PacketKind.UNICAST]
        table += [row, row, one, col, col, one, -one, np.arange(len(cycle))]
        columns = [np.array(column, dtype=np.int64) for column in table]
        if self.multicast_fraction > 0:
            self._spread(columns, rng)
        return Packets(*columns)

    def _created(
        self, rng: np.random.Generator, nodes: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cycle and source of each packet; drawn some cycles at a time, to bound the memory."""
        chance = self.rate / self.packet_flits
        at_a_time = max(1, _CHANCES_AT_A_TIME // nodes)
        parts = []
        for first in range(0, self.cycles, at_a_time):
            count = min(at_a_time, self.cycles - first)
            cycle, source = np.nonzero(rng.random((count, nodes)) < chance)
            parts.append((cycle + first, source))
        cycles, sources = zip(*parts, strict=True)
        return np.concatenate(cycles), np.concatenate(sources)

    def _destinations(
        self, source: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Destination node of each packet; its own source where it stays silent."""
        rows, cols, nodes = self.rows, self.cols, self.rows * self.cols
        row, col = source // cols, source % cols
        if self.pattern == "transpose":
            return col * cols + row
        if self.pattern == "neighbor":
            return row * cols + (col + 1) % cols
        if self.pattern == "tornado":
            return row * cols + (col + (cols + 1) // 2 - 1) % cols
        other = (source + rng.integers(1, nodes, len(source))) % nodes
        if self.pattern == "hotspot":
            spot = rows // 2 * cols + cols // 2
            hot = (rng.random(len(source)) < _HOTSPOT_SHARE) & (source != spot)
            other = np.where(hot, spot, other)
        return other

    def _spread(self, columns: list[NDArray[np.int64]], rng: np.random.Generator) -> None:
        """Turn a share of the packets into multicasts to random rectangles of two tiles or more."""
        chosen = rng.random(len(columns[0])) < self.multicast_fraction
        count = int(chosen.sum())
        row = np.sort(rng.integers(0, self.rows, (2, count)), axis=0)
        col = np.sort(rng.integers(0, self.cols, (2, count)), axis=0)
        wide = (row[0] < row[1]) | (col[0] < col[1])
        chosen[np.nonzero(chosen)[0][~wide]] = False
        columns[2][chosen] = self.multicast_flits
        columns[3][chosen] = PacketKind.MULTICAST
        columns[4][chosen], columns[5][chosen] = row[0][wide], row[1][wide]
        columns[7][chosen], columns[8][chosen] = col[0][wide], col[1][wide]


def read_packets(
    path: Path,
    rows: int,
    cols: int,
    bound_flits: int,
    *,
    y_first: bool = False,
    unit_choice: str = "complete",
) -> Packets:
    """Packets from a CSV file with the columns ``cycle,source,destinations,flits,kind``.

    ``source`` is ``row:col``; ``destinations`` is ``row:col`` or a half-open rectangle
    ``r0:r1 c0:c1``; ``kind`` is ``unicast`` or ``multicast``. An operand of a reduction has the
    kind ``sum``, ``maximum``, ``and``, ``select`` or ``collect``, and in the place of destinations
    the root and the rectangle of all tiles that bring an operand: ``row:col r0:r1 c0:c1``.

    Args:
        path: The file.
        rows: Rows of the mesh.
        cols: Columns of the mesh.
        bound_flits: Longest packet of a multicast or an operand.
        y_first: Whether packets go along the column first.
        unit_choice: Which reductions ask for a unit, one of `zero_load.UNIT_CHOICES`.

    Raises:
        InputError: naming the file, the line and the field; or the reductions that may block each
            other.
    """
    try:
        with io.TextIOWrapper(open_to_read(path), encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(bounded_lines(file))
            columns = [name for name in reader.fieldnames or () if name]
            lines = [(reader.line_num, line) for line in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    wanted = {"cycle", "source", "destinations", "flits", "kind"}
    if not wanted <= set(columns):
        found = ", ".join(columns) or "nothing"
        raise InputError(f"{path}: needs the columns {', '.join(sorted(wanted))}; found {found}")
    if not lines:
        raise InputError(f"{path}: found no packets below the columns' names; allowed: one or more")
    items = []
    for number, line in lines:
        try:
            if None in line or None in line.values():
                raise InputError(f"needs {len(columns)} fields, as the first line")
            items.append(_packet(line, rows, cols, bound_flits))
        except (ValueError, InputError) as error:
            raise InputError(f"{path}: line {number}: {error}") from error
    items.sort(key=lambda item: item[0])
    packets = Packets.of(items)
    try:
        check_reductions(packets, cols, y_first=y_first, unit_choice=unit_choice)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return packets


def _packet(
    line: dict[str, str], rows: int, cols: int, bound_flits: int
) -> tuple[int, int, TileSet | ReductionGoal, int]:
    row, col = parse_tile(line["source"], rows, cols, separator=":")
    kind = choose("kind", line["kind"], [each.name.lower() for each in PacketKind])
    parts = line["destinations"].split()
    reduces = PacketKind[kind.upper()] in REDUCTIONS
    if reduces:
        if len(parts) != 3:
            raise InputError(
                f"'{line['destinations']}' is no reduction; write ROW:COL r0:r1 c0:c1 (half-open)"
            )
        where = parse_rectangle(",".join(parts[1:]), rows, cols)
    elif len(parts) == 2:
        where = parse_rectangle(",".join(parts), rows, cols)
    else:
        where = TileSet.tile(*parse_tile(line["destinations"], rows, cols, separator=":"))
    cycle, flits = (_whole(name, line[name]) for name in ("cycle", "flits"))
    if not (0 <= cycle <= _LATEST and 1 <= flits <= _MOST_FLITS):
        raise InputError(
            f"cycle {cycle}, flits {flits}; allowed: cycles 0 to {_LATEST}, flits 1 to "
            f"{_MOST_FLITS}"
        )
    if kind == "unicast" and len(where) != 1:
        raise InputError(f"a unicast has one destination, found {len(where)}")
    if (len(where) > 1 or reduces) and flits > bound_flits:
        raise InputError(f"a {kind} packet has at most {bound_flits} flits, found {flits}")
    if not reduces:
        return cycle, row * cols + col, where, flits
    root_row, root_col = parse_tile(parts[0], rows, cols, separator=":")
    goal = ReductionGoal(where, root_row * cols + root_col, PacketKind[kind.upper()])
    return cycle, row * cols + col, goal, flits


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{name}: found '{text}'; allowed: a whole number") from None


def parse_tile(text: str, rows: int, cols: int, separator: str = ",") -> tuple[int, int]:
    """Row and column from ``R,C``.

    Raises:
        InputError: if it has another form or lies outside the mesh.
    """
    try:
        row, col = (int(part) for part in text.split(separator))
    except ValueError:
        raise InputError(f"'{text}' is no tile; write ROW{separator}COL") from None
    if not (0 <= row < rows and 0 <= col < cols):
        raise InputError(f"tile {text} lies outside the {rows}x{cols} mesh")
    return row, col


def parse_rectangle(text: str, rows: int, cols: int) -> TileSet:
    """Tiles from the half-open ``r0:r1,c0:c1``.

    Raises:
        InputError: if it has another form, is empty or lies outside the mesh.
    """
    try:
        (r0, r1), (c0, c1) = ((int(end) for end in part.split(":")) for part in text.split(","))
    except ValueError:
        raise InputError(f"'{text}' is no rectangle; write r0:r1,c0:c1 (half-open)") from None
    if not (0 <= r0 < r1 <= rows and 0 <= c0 < c1 <= cols):
        raise InputError(f"rectangle {text} is empty or lies outside the {rows}x{cols} mesh")
    return TileSet(range(r0, r1), range(c0, c1))


@dataclass(frozen=True, slots=True)
class TrafficFigures:
    """What the field reports of a traffic run; loads in flits per node per cycle."""

    offered: float
    accepted: float
    latency_cycles: dict[str, float]
    source_queue_cycles: float
    packets: int
    saturated: bool


def figures(
    packets: Packets, deliveries: Deliveries, nodes: int, warm_up: int, cycles: int
) -> TrafficFigures:
    """Figures over the packets created in the cycles ``warm_up`` to ``cycles``.

    An operand of a reduction arrives with the result.

    Raises:
        InputError: if there is no such packet.
    """
    counted = (packets.cycle >= warm_up) & (packets.cycle < cycles)
    if not counted.any():
        raise InputError("no packet was created after the warm-up; raise the rate or the cycles")
    last = deliveries.last_ejected()[packets.joint]
    latency = (last - deliveries.head_injected)[counted]
    span = nodes * (cycles - warm_up)
    offered = float(packets.flits[counted].sum() / span)
    arrived = (last >= warm_up) & (last < cycles)
    accepted = float(packets.flits[arrived].sum() / span)
    return TrafficFigures(
        offered=offered,
        accepted=accepted,
        latency_cycles={
            "mean": float(latency.mean()),
            "p50": float(np.percentile(latency, 50)),
            "p99": float(np.percentile(latency, 99)),
            "max": float(latency.max()),
        },
        source_queue_cycles=float((deliveries.head_injected - packets.cycle)[counted].mean()),
        packets=int(counted.sum()),
        saturated=accepted < _SATURATED_BELOW * offered,
    )


def highest_rate(is_saturated: Callable[[float], bool]) -> float:
    """The highest rate, in flits a node a cycle, that does not saturate: to 1/256; 1 if none does.

    Args:
        is_saturated: Whether traffic of a rate saturates; at least the lowest does not.
    """
    if not is_saturated(1.0):
        return 1.0
    low, high = 0, RATE_STEPS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_saturated(middle / RATE_STEPS) else (middle, high)
    return max(low, 1) / RATE_STEPS
