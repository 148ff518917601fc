"""Tiles pass parts of a matrix on to each other: a change of layout in a group, or a hand-over.

Each tile sends its messages one after the other, straight to their takers, and takes one a round.

- **Exchange**: a group changes from one layout of a matrix to another. In round r each of L tiles
  sends the r-th next one, in the order of a ring, the part that it is to have (A. Grama et al.,
  "Introduction to Parallel Computing", 2003, section 4.5: all-to-all personalised communication).
- **Hand-over**: tiles of one group pass what they have to those of another, all at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.interconnect.lines import hops
from tlm.interconnect.transfer_times import arrival_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Buffer, Operation, Program, Send
from workloads.kernels.parts.pieces import Pieces
from workloads.kernels.parts.routes import link_flits, sends_of
from workloads.kernels.parts.shared_links import MessageLinks, follows
from workloads.machine.moved import Moved
from workloads.machine.order import Moves, Order
from workloads.machine.place import Place

#: More tiles are no group that anybody shares a layer among, and take long to plan.
_MOST_TILES = 256


class Round(NamedTuple):
    """Messages of the same length that go at the same time.

    Attributes:
        moves: From whom to whom.
        part: Rows and columns of what each carries.
    """

    moves: Moves
    part: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """Messages among tiles of a place, round by round.

    Attributes:
        place: The tiles, or a rectangle around them.
        rounds: In the order in which each tile sends.
    """

    place: Place
    rounds: tuple[Round, ...]

    def flits(self, part: tuple[int, int]) -> int:
        """Flits of a message."""
        return self.place.flits(*part, self.place.sum_bits)

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves."""
        flits = sum(len(each.moves) * self.flits(each.part) for each in self.rounds)
        return Moved(delivered=flits * self.place.timing.flit_bytes)

    @property
    def balance(self) -> float:
        """There is no work: a cycle over the flits that a tile sends."""
        return 1 / sum(self.flits(each.part) for each in self.rounds)

    @property
    def pieces(self) -> Pieces:
        """Tiles exchange parts."""
        rows, columns = self.rounds[0].part
        size = {"rows": rows, "columns": columns}
        return Pieces((1, len(self.rounds) + 1), size, {"rows": 1, "columns": len(self.rounds)})

    #: There is no work.
    tile_macs = tile_matrix_cycles = tile_vector_cycles = 0


def plan_exchange(
    place: Place, order: Order, part: tuple[int, int], members: int, stride: int = 1
) -> ExchangePlan:
    """Groups of ``members`` tiles, each ``stride`` further in the order, exchange parts.

    Args:
        place: A rectangle around all of them.
        order: The tiles, whose number is a multiple of ``members * stride``.
        part: Rows and columns of what a tile has for each other one.
        members: Tiles of a group.
        stride: Steps of the order from a tile to the next one of its group.

    Raises:
        InputError: for a size below 1, or a number of tiles that is none of groups.
    """
    _check_part(part)
    run = members * stride
    if members < 2 or len(order) % run or len(order) > _MOST_TILES:
        raise InputError(
            f"exchange: found {len(order)} tiles; allowed: 2 to {_MOST_TILES} in groups of "
            f"{members}"
        )
    rounds = []
    for step in range(1, members):
        takers = [
            number // run * run + (number % run + step * stride) % run
            for number in range(len(order))
        ]
        moves = tuple((order[number], order[taker]) for number, taker in enumerate(takers))
        rounds.append(Round(moves, part))
    return ExchangePlan(place, tuple(rounds))


def plan_hand_over(place: Place, moves: Moves, part: tuple[int, int]) -> ExchangePlan:
    """Each tile passes a part on to another.

    Raises:
        InputError: for a size below 1.
    """
    _check_part(part)
    return ExchangePlan(place, (Round(moves, part),))


def plan_rows_to_columns(shape: tuple[int, int], place: Place) -> ExchangePlan:
    """A matrix (M, N) whose rows are cut over the tiles in order gets its columns cut instead.

    Raises:
        InputError: as `plan_exchange`.
    """
    order = place.order
    part = ceil_div(shape[0], len(order)), ceil_div(shape[1], len(order))
    return plan_exchange(place, order, part, len(order))


def plan_halves(shape: tuple[int, int], place: Place) -> ExchangePlan:
    """The first half of the tiles, which have equal rows of a matrix (M, N), hand it over.

    Raises:
        InputError: for a size below 1, or a single tile.
    """
    order, half = place.order, place.rows * place.cols // 2
    if not half:
        raise InputError(f"grid {place.rows}x{place.cols}: this kernel needs two tiles or more")
    moves = tuple(zip(order[:half], order[half : 2 * half], strict=True))
    return plan_hand_over(place, moves, (ceil_div(shape[0], half), shape[1]))


def _check_part(part: tuple[int, int]) -> None:
    if min(part) < 1:
        raise InputError(f"--shape: found parts of {part[0]}x{part[1]}; allowed: 1 or more")


def exchange(plan: ExchangePlan) -> Program:
    """Program of the messages, from ``out.ROUND`` of a tile to ``in.ROUND`` of its taker."""
    buffers: dict[str, Buffer] = {}
    for number, each in enumerate(plan.rounds):
        buffer = Buffer(*each.part, plan.place.sum_bits)
        buffers |= {f"out.{number}": buffer, f"in.{number}": buffer}
    rows, cols = plan.place.rows, plan.place.cols
    return Program(rows, cols, {}, lambda: _operations(plan), buffers)


def _operations(plan: ExchangePlan) -> Iterator[Operation]:
    for number, each in enumerate(plan.rounds):
        for tiles, to_rows, to_cols in sends_of(each.moves):
            yield Send(
                tiles,
                to_rows,
                to_cols,
                plan.flits(each.part),
                source=f"out.{number}",
                target=f"in.{number}",
                label="parts",
            )


def exchange_cycles(plan: ExchangePlan, timing: NocTiming) -> int:
    """Cycles until all parts have come.

    All that a message waits for are links and ports that others have, and those before it.
    """
    if not follows(timing):
        return _unfollowed_cycles(plan, timing)
    ends = [np.array(each.moves).reshape(-1, 4) for each in plan.rounds]
    flits = [plan.flits(each.part) for each in plan.rounds]
    links = MessageLinks(plan.place.rows, plan.place.cols, timing)
    launch = timing.launch_cycles
    _, come = links.carry(np.concatenate(ends), np.repeat(flits, [*map(len, ends)]), launch, launch)
    return int(come.max())


def _unfollowed_cycles(plan: ExchangePlan, timing: NocTiming) -> int:
    """One message after the other, or the busiest link."""
    ends, first = 0, 0
    sent: list[tuple[Moves, int]] = []
    for each in plan.rounds:
        flits = plan.flits(each.part)
        far = max(hops(*move) for move in each.moves)
        ends = max(ends, first + arrival_cycles(timing, far, flits))
        first += flits
        sent.append((each.moves, flits))
    busiest = max(link_flits(sent).values(), default=0)
    return int(max(ends, busiest * timing.link_interval_cycles + arrival_cycles(timing, 1, 1) - 1))
