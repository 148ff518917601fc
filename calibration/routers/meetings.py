"""Two reductions that meet in one router, and need its one unit together.

Their trees share no link. So what one does to the other shows whom the unit takes, and how long it
keeps it. One router alone sees both: in two they could wait for each other for ever.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from calibration.routers.scenes import Scene, Send, Size, span
from calibration.routers.subject import Subject
from tlm.interconnect.ordering import Link, tree_links
from tlm.interconnect.packets import ReductionGoal, TileSet

MEETING = "two reductions through one router"
_POOL = 240  # reductions of which pairs are made
_ROUNDS, _ROUND_CYCLES = 5, 30
# In a crowd: often, shortly after each other, and short. Results then fill what a unit holds.
_CROWDED_ROUNDS, _CROWDED_ROUND_CYCLES, _CROWDED_FLITS = 12, 8, 3
_LONGEST_FLITS, _LATEST_CYCLES = 20, 40
_UNICASTS, _LONGEST_UNICAST_FLITS = 40, 8


@dataclass(frozen=True, slots=True)
class Pair:
    """Two reductions of which operands meet in the same router; so many routers see both."""

    goals: tuple[ReductionGoal, ReductionGoal]
    routers: int

    def __str__(self) -> str:
        return " and ".join(
            f"rows {span(goal.operands.rows)} columns {span(goal.operands.cols)} to {goal.root}"
            for goal in self.goals
        )


def meeting_pairs(subject: Subject, size: Size, rng: np.random.Generator) -> list[Pair]:
    """Pairs of reductions that headers can name, in any order; none, if none was found."""
    pool = {subject.random_reduction(size, rng): None for _ in range(_POOL)}
    links = {goal: _links(subject, size, goal) for goal in pool}
    pairs = []
    for one, other in combinations(pool, 2):
        apart = one.root != other.root and not links[one] & links[other]
        if apart and _meetings(links[one]) & _meetings(links[other]):
            common = {end for _, end in links[one]} & {end for _, end in links[other]}
            pairs.append(Pair((one, other), len(common)))
    return [pairs[index] for index in rng.permutation(len(pairs))]


def meeting_scenes(
    subject: Subject, size: Size, rng: np.random.Generator, most: int
) -> list[Scene]:
    """Up to so many scenes; in every other one unicasts are in the results' way."""
    pairs = [each for each in meeting_pairs(subject, size, rng) if each.routers == 1]
    return [
        _scene(subject, size, pairs[number % len(pairs)], rng, number)
        for number in range(most if pairs else 0)
    ]


def _scene(
    subject: Subject, size: Size, pair: Pair, rng: np.random.Generator, number: int
) -> Scene:
    """Both, some times one after the other; an operand of one comes late."""
    crowded = number % 2 == 1
    rounds, cycles, most = _ROUNDS, _ROUND_CYCLES, _LONGEST_FLITS
    if crowded:
        rounds, cycles, most = _CROWDED_ROUNDS, _CROWDED_ROUND_CYCLES, _CROWDED_FLITS
    longest = min(subject.reduction_flits, most)
    sends: list[Send] = []
    cycle, sent = 0, dict[int, int]()
    for turn in range(rounds):
        waits = pair.goals[int(rng.integers(2))]
        nodes = waits.operands.nodes(size[1])
        late = nodes[int(rng.integers(len(nodes)))]
        by = int(rng.integers(_LATEST_CYCLES)) if turn % 2 else 0
        for goal in pair.goals:
            flits = int(rng.integers(1, longest + 1)) if turn else 1
            for node in goal.operands.nodes(size[1]):
                after = by if node == late and goal is waits else int(rng.integers(3))
                sent[node] = max(cycle + after, sent.get(node, 0))  # in one order at all tiles
                sends.append((sent[node], node, goal, flits))
        cycle += int(rng.integers(1, cycles))
    operands = len(sends)
    if crowded:
        sends += _unicasts(subject, size, pair, rng, max(send[0] for send in sends))
    label = (
        f"{size[0]}x{size[1]}: {number}, {rounds} times {pair}, which meet, "
        f"{len(sends) - operands} unicasts"
    )
    about = "in a crowd" if crowded else "operands late"
    return Scene(
        size,
        label,
        tuple(sorted(sends, key=lambda send: send[0])),
        situation=f"{MEETING}, {about}",
    )


def _unicasts(
    subject: Subject, size: Size, pair: Pair, rng: np.random.Generator, until: int
) -> list[Send]:
    """Unicasts to the roots that share links with results alone.

    None is ever behind an operand that waits: nothing can wait in a circle.
    """
    links = [_links(subject, size, goal) for goal in pair.goals]
    waiting = set[Link]().union(*links)
    waiting -= set[Link]().union(
        *(_results(each, goal.root) for each, goal in zip(links, pair.goals, strict=True))
    )
    ways = [
        (source, TileSet.tile(*divmod(goal.root, size[1])))
        for goal in pair.goals
        for source in set(range(size[0] * size[1])) - {goal.root}
        if not waiting
        & _links(subject, size, ReductionGoal(TileSet.tile(*divmod(source, size[1])), goal.root))
    ]
    longest = min(subject.packet_flits, _LONGEST_UNICAST_FLITS)
    return [
        (int(rng.integers(until + 1)), *way, int(rng.integers(1, longest + 1)))
        for way in (ways[i] for i in rng.integers(len(ways), size=_UNICASTS if ways else 0))
    ]


def _links(subject: Subject, size: Size, goal: ReductionGoal) -> set[Link]:
    return tree_links(goal.operands, goal.root, size[1], y_first=subject.timing.y_first)


def _meetings(links: set[Link]) -> set[int]:
    """Routers into which operands come by several inputs."""
    ends = [end for _, end in links]
    return {end for end in ends if ends.count(end) > 1}


def _results(links: set[Link], root: int) -> set[Link]:
    """Links to the root from the last router in which operands meet."""
    way, here = set[Link](), root
    while len(into := [link for link in links if link[1] == here]) == 1:
        way.add(into[0])
        here = into[0][0]
        if into[0] == (here, here):
            break
    return way
