"""Links of a chip over which keys and values go from tiles to tiles, and wait for each other.

What a request has left goes from the tiles of each of its layers and heads to those that decode
them, all at once, along rows first. A link carries what comes to it in turn; a transfer is over
when the last of its links has carried its part: the law of a hand-over
(`workloads.kernels.vector.exchange`) when links are not free from the start.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlm.interconnect.lines import hops
from tlm.interconnect.transfer_times import arrival_cycles
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.parts.routes import link_flits
from workloads.machine.groups import Pipeline
from workloads.machine.order import Tile
from workloads.models import Model
from workloads.serving.load.traces import PS_PER_S, within_time
from workloads.serving.price.die_plan import stretches_of


class Route(NamedTuple):
    """From a replica for prompts to one for decoding.

    Attributes:
        links: Numbers of the links that carry any, and of the tiles' interfaces.
        shares: What each carries, as parts of a request's keys and values: what several tiles
            that decode have is sent to each of them.
        latency_s: Of the longest way.
        byte_hops: Links that a byte goes over, on average.
    """

    links: NDArray[np.int64]
    shares: NDArray[np.float64]
    latency_s: float
    byte_hops: float


class KvRoutes(NamedTuple):
    """All ways between two pools.

    Attributes:
        routes: By the numbers of the replicas for prompts and for decoding.
        links: How many links and interfaces there are.
        link_bytes_per_s: Of each.
    """

    routes: dict[tuple[int, int], Route]
    links: int
    link_bytes_per_s: float


class RoutedLinks:
    """Carries keys and values over the links of a chip (`workloads.serving.engine.link.Carrier`).

    Attributes:
        carried_bytes: What they carried.
    """

    def __init__(self, routes: KvRoutes) -> None:
        self.carried_bytes = 0
        self._routes = routes
        self._free_ps = np.zeros(routes.links, dtype=np.int64)
        self._busy_ps = np.zeros(routes.links, dtype=np.int64)

    @property
    def busy_ps(self) -> int:
        """Time in which the busiest link carried anything."""
        return int(self._busy_ps.max())

    def send(self, size_bytes: int, now_ps: int, way: tuple[int, int]) -> int:
        """Start a transfer; returns when its last byte arrives.

        Raises:
            InputError: if that is past all simulated time.
        """
        links, shares, latency_s, _ = self._routes.routes[way]
        seconds = shares * (size_bytes / self._routes.link_bytes_per_s)
        takes = np.maximum(1, np.rint(seconds * PS_PER_S)).astype(np.int64)
        ends = np.maximum(self._free_ps[links], now_ps) + takes
        self._free_ps[links] = ends
        self._busy_ps[links] += takes
        self.carried_bytes += size_bytes
        return within_time(int(ends.max()) + round(latency_s * PS_PER_S))


def kv_routes(
    model: Model,
    prefill: Sequence[Pipeline],
    decode: Sequence[Pipeline],
    timing: NocTiming,
    clock_hz: float,
) -> KvRoutes:
    """Ways of keys and values between all replicas of two pools.

    Args:
        model: Whose.
        prefill: Who computes prompts.
        decode: Who decodes.
        timing: Of the network.
        clock_hz: Of the chip.
    """
    numbers: dict[object, int] = {}
    routes = {
        (first, second): _route(model, source, target, timing, clock_hz, numbers)
        for first, source in enumerate(prefill)
        for second, target in enumerate(decode)
    }
    rate = timing.flit_bytes * clock_hz / timing.link_interval_cycles
    return KvRoutes(routes, len(numbers), rate)


def _moves(model: Model, source: Pipeline, target: Pipeline) -> Counter[tuple[Tile, Tile]]:
    """Heads and layers that go from a tile to another one, of all."""
    kv_heads = _heads(model)
    stages = [
        [stage for stage, layers in enumerate(_stretches(model, each)) for _ in layers]
        for each in (source, target)
    ]
    found: Counter[tuple[Tile, Tile]] = Counter()
    for layer, (start, end) in enumerate(zip(*stages, strict=True)):
        if model.full_layers and not model.count(range(layer, layer + 1)).full:
            continue  # a window is a few tokens
        senders, takers = source.order(start), target.order(end)
        for head in range(kv_heads):
            having = _tiles_of(head, kv_heads, senders)
            for number, taker in enumerate(_tiles_of(head, kv_heads, takers)):
                found[having[number % len(having)], taker] += 1
    return found


def _heads(model: Model) -> int:
    """Heads of keys and values that tiles may have apart."""
    return 1 if model.latent_attention is not None else model.kv_heads


def _stretches(model: Model, pipeline: Pipeline) -> list[range]:
    return stretches_of(model.layers, len(pipeline.stages))


def _tiles_of(head: int, heads: int, tiles: Sequence[Tile]) -> Sequence[Tile]:
    """Tiles that have a head of keys: one, or several where there are more than heads."""
    if len(tiles) <= heads:
        first = head * len(tiles) // heads
        return tiles[first : first + 1]
    copies = len(tiles) // heads
    return tiles[head * copies : (head + 1) * copies]


def _route(
    model: Model,
    source: Pipeline,
    target: Pipeline,
    timing: NocTiming,
    clock_hz: float,
    numbers: dict[object, int],
) -> Route:
    """A way, whose links get the next numbers if they have none."""
    moves, loads = _moves(model, source, target), Counter[object]()
    for (sender, taker), parts in moves.items():
        loads["sends", sender] += parts
        loads["takes", taker] += parts
    loads.update(link_flits(((move,), parts) for move, parts in moves.items()))
    links = [numbers.setdefault(link, len(numbers)) for link in loads]
    copies = max(1, len(target.order(0)) // _heads(model))
    everything = sum(moves.values()) // copies
    far = max(hops(*move) for move in moves)
    latency_s = arrival_cycles(timing, far, 1) / clock_hz
    byte_hops = sum(hops(*move) * parts for move, parts in moves.items()) / everything
    shares = np.array([*loads.values()]) / everything
    return Route(np.array(links), shares, latency_s, byte_hops)
