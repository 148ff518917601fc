"""When the engines of a tile of a diagonal and its channel are free, for compiled code."""

from typing import NamedTuple

from tlm.compiled import Numbers, internal
from workloads.kernels.attention.flat_costs import Slices, Stored, Together


class Free(NamedTuple):
    """When the matrix, vector and transfer engines and the channel are free.

    The tile is of the last group that its channel serves; the first one is ``ahead`` of it.
    """

    matrix: int
    vector: int
    transfer: int
    channel: int
    ahead: int


@internal
def ask(
    at: Numbers[tuple[int, int]], into: int, slot: int, free: int, cost: Slices, ask: int,
    now: Free,
) -> Free:  # fmt: skip
    """Ask for a slice when its buffer is free; without memory it is there."""
    if ask == 0:
        at[into, slot] = 0
        return now
    start = max(now.transfer, free)
    served = serve(start, cost.served, cost.ahead, now)
    at[into, slot] = served + cost.asked
    return Free(now.matrix, now.vector, start + ask, served, max(now.ahead, cost.ahead))


@internal
def serve(asked: int, served: int, ahead: int, now: Free) -> int:
    """When a channel has served all that its tiles ask for, the last one at ``asked``."""
    return max(max(now.channel, asked - now.ahead) + served, asked + served - ahead)


@internal
def send(
    at: Numbers[tuple[int, int]], there: int, slot: int, come: int, free: int, cost: Slices,
    now: Free,
) -> Free:  # fmt: skip
    """Send a slice on that has come, when all tiles have room for it."""
    start = max(now.transfer, come, free)
    at[there, slot] = start + cost.there
    return Free(now.matrix, now.vector, start + cost.port, now.channel, now.ahead)


@internal
def meet(parts: int, rows: Together, now: Free) -> Free:
    """Parts of rows come together, and the result goes out: the vector engine waits for it."""
    if not rows.sends and rows.spread == 0:  # a tile has whole rows
        return Free(now.matrix, parts, now.transfer, now.channel, now.ahead)
    start = max(now.transfer, parts) if rows.sends else parts
    start = max(start + rows.gathered, now.transfer + rows.behind)
    return Free(now.matrix, start + rows.spread, start + rows.port, now.channel, now.ahead)


@internal
def store(made: int, cost: Stored, now: Free) -> Free:
    """Store a result that has been made."""
    sent = max(now.transfer, made) + cost.port
    served = serve(sent, cost.served, cost.ahead, now)
    return Free(now.matrix, now.vector, sent, served, max(now.ahead, cost.ahead))
