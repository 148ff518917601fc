"""What off-chip memory costs a kernel of rows: of one plan, or of many candidates at once."""

from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from tlm.compute.base import ceil_div
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from tlm.offchip.times import load_law, store_law
from workloads.kernels.parts.channels import Sharing, sharing
from workloads.kernels.vector.recipe import Recipe, Step
from workloads.kernels.vector.rows_plan import RowsPlan, counts, flits, used

#: Tiles that share a row, rows of a block and its columns: numbers, or arrays of candidates.
Which = tuple[Any, Any, Any]


class Loads(NamedTuple):
    """Cycles of the operands that the busiest channel loads."""

    first: Any  # until those of the first step are at the tile that gets them last
    last: Any  # of these for which the channel loads that tile's last operand
    own: Any  # of these, for itself alone
    lag: Any  # from their being at the tile that gets them first
    later: Any  # for which the channel loads those of other steps after that
    behind: Any  # of these, until those of the second step are there, too
    asked: Any  # for which requests go through its router's port, or its node's
    again: Any  # from asking for those of a step to their arrival
    resumed: Any  # for which it loads those of the third step on, if these were asked for when the
    # first were at the tile that got them first


class Stores(NamedTuple):
    """Cycles of the results that it stores."""

    held: Any  # for which loads wait for all of them
    posted: Any  # for which they go through its router's port and are written
    last: Any  # of these, those of the end of a step, less what their ways set tiles apart
    own: Any  # that a tile sends in a step
    end: Any  # for which those of the end of a step are written
    answer: Any  # from the last result's turn at the port to the word that it is stored
    kept: Any  # from its being written to that word


def loads_of(problem: RowsPlan, edge: Edge, which: Which, timing: NocTiming) -> Loads:
    """Of a problem, whose own parts and block do not matter."""
    number, tiles = counts(problem, *which), _sharing(problem, edge, which)
    steps = number.rows * number.blocks * number.inner
    hop, operands = timing.hop_cycles, problem.recipe.operands
    begin: Any = 0
    ahead: Any = 0
    step: Any = 0
    later: Any = 0
    asked: Any = 0
    lag: Any = 0
    requests: Any = 0
    for place, part in enumerate(operands):
        law = load_law(timing, edge, flits(problem.place, part, *which[1:]))
        served, count = law.served_cycles, number.of(part)
        often = (count - 1) / np.maximum(steps - 1, 1)
        begin = begin + served
        lag = lag + served * tiles.sooner(len(operands) - place, hop)
        # Tiles ask for the operands of two steps at once. So those that are nearer to the channel
        # get some of their second step's before the last tile gets its first.
        step = step + served * often
        ahead = ahead + served * often * tiles.sooner(requests + 2, hop)
        requests = requests + often
        later = later + tiles.most * (count - 1) * served
        asked = asked + tiles.most * count * (law.sent_flits + law.asked_cycles)
    before = law.alone_cycles(0) - served
    apart = hop * (tiles.farthest - tiles.nearest)
    # Blocks of others that are asked for between the last two of the last tile.
    beside = np.minimum(tiles.most, 1 + (requests + 1) * tiles.most / np.maximum(apart, 1))
    lag = lag + ahead + apart
    again = step + before + law.way_cycles * tiles.farthest
    return Loads(
        first=tiles.most * begin + ahead + before + law.way_cycles * _way(tiles),
        last=served * beside,
        own=served,
        lag=lag,
        later=later - ahead,
        behind=tiles.most * step - ahead,
        asked=asked,
        again=again,
        resumed=again - 2 * apart - lag + (tiles.most * (steps - 2) - 1) * step,
    )


def stores_of(problem: RowsPlan, edge: Edge, which: Which, timing: NocTiming) -> Stores:
    """Of a problem, whose own parts and block do not matter."""
    number, tiles = counts(problem, *which), _sharing(problem, edge, which)
    steps = number.rows * number.blocks * number.inner
    held: Any = 0
    posted: Any = 0
    last: Any = 0
    own: Any = 0
    end: Any = 0
    recipe = problem.recipe
    for part, leaves in zip(recipe.results, leaving(recipe, problem.inner), strict=True):
        law = store_law(timing, edge, flits(problem.place, part, *which[1:]))
        # One after the other they come through the port, and are written.
        served = law.served_cycles
        sent = law.paced_cycles
        count = number.of(part)
        storing = ceil_div(tiles.most, which[0] if part.name == recipe.reduced else 1)
        held = held + storing * count * served
        posted = posted + storing * count * sent
        last = last + storing * sent * (leaves == 1)
        own = own + law.sent_flits * count / steps
        end = end + sent * (leaves == 1)
    answer = law.alone_cycles(0) - sent
    return Stores(
        held=held,
        posted=posted,
        last=last - law.way_cycles * (tiles.farthest - tiles.nearest) / 2,
        own=own,
        end=end,
        answer=answer + law.way_cycles * tiles.farthest,
        kept=law.back_cycles + law.way_cycles * tiles.farthest / 2,
    )


@lru_cache(64)
def leaving(recipe: Recipe, inner: int) -> tuple[float, ...]:
    """Part of a step's passes after which each result leaves; none leaves before the one ahead."""
    made = recipe.passes(Step(0, 0, 0, inner - 1, new_rows=False))
    users = [
        max(number for number, each in enumerate(made, 1) if part.name in each[1:4])
        for part in recipe.results
    ]
    return tuple(each / len(made) for each in accumulate(users, max))


def _sharing(problem: RowsPlan, edge: Edge, which: Which) -> Sharing:
    return sharing(edge, *used(problem, *which[:2]))


def _way(tiles: Sharing) -> Any:
    """Hops of a way from the farthest tile and back to the nearest, halved: rows go in turn."""
    return (tiles.farthest + tiles.nearest) / 2
