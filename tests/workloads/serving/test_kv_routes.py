"""Keys and values over the links of a chip: who sends to whom, and how long they wait."""

import numpy as np
import pytest

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from workloads.kernels.vector.exchange import exchange_cycles, plan_hand_over
from workloads.machine.groups import Groups, Parallel, pools_on
from workloads.models import find_model
from workloads.serving.engine.kv_routes import KvRoutes, RoutedLinks, kv_routes
from workloads.serving.load.traces import PS_PER_S
from workloads.serving.price.group_price import GroupsPrice

CHIP, MODEL = load_chip("npusim-large"), find_model("qwen3-4b")
TIMING = noc_timing(CHIP)
_TOKENS = 1000
_BYTES = _TOKENS * MODEL.kv_bytes_per_token


def laid(prefill: Parallel, decode: Parallel, units: tuple[int, int]) -> tuple[Groups, KvRoutes]:
    groups = pools_on(CHIP, prefill, decode, units, "pp-first")
    return groups, kv_routes(MODEL, *groups.pipelines, TIMING, CHIP.clock_hz)


def cycles(ends_ps: int) -> float:
    return ends_ps / PS_PER_S * CHIP.clock_hz


def test_equal_stages_send_tile_to_tile() -> None:
    """Eight tiles of a row to those below: the time of a hand-over of as many bytes."""
    whole = Parallel(tensor=8)
    groups, routes = laid(whole, whole, (8, 8))
    (source,), (target,) = groups.pipelines
    price = GroupsPrice(MODEL, groups, whole)
    place = price.kernels._chip_place
    moves = tuple(zip(source.order(0), target.order(0), strict=True))
    part = 36 * _TOKENS, 2 * MODEL.head_dim  # each has one head
    wanted = exchange_cycles(plan_hand_over(place, moves, part), TIMING)
    arrival = RoutedLinks(routes).send(_BYTES, 0, (0, 0))
    assert cycles(arrival) == pytest.approx(wanted, rel=0.01)


def test_one_tile_sends_all_layers() -> None:
    """From a single tile to four: its interface carries everything."""
    _, routes = laid(Parallel(), Parallel(pipeline=4), (1, 4))
    route = routes.routes[0, 0]
    assert route.shares.max() == pytest.approx(1)
    links = RoutedLinks(routes)
    arrival = links.send(_BYTES, 0, (0, 0))
    assert cycles(arrival) == pytest.approx(_BYTES / TIMING.flit_bytes, rel=0.01)
    assert links.carried_bytes == _BYTES
    assert links.busy_ps == pytest.approx(arrival, rel=0.01)


def test_heads_that_several_tiles_have_are_sent_to_each() -> None:
    """16 tiles decode with 8 heads: twice the bytes come in, and go out of the tile."""
    _, once = laid(Parallel(), Parallel(tensor=8), (1, 8))
    _, twice = laid(Parallel(), Parallel(tensor=16), (1, 16))
    most = [routes.routes[0, 0].shares.max() for routes in (once, twice)]
    assert most == pytest.approx([1, 2])


def test_transfers_wait_for_each_other_on_links_that_they_share() -> None:
    """To the same tile one comes behind the other; to others they do not meet."""
    _, routes = laid(Parallel(replicas=2), Parallel(replicas=2), (2, 2))

    def both(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
        links = RoutedLinks(routes)
        return links.send(_BYTES, 0, first), links.send(_BYTES, 0, second)

    alone = RoutedLinks(routes).send(_BYTES, 0, (0, 0))
    apart, together = both((0, 0), (1, 1)), both((0, 0), (1, 0))
    assert together[1] == pytest.approx(2 * alone, rel=0.01)
    assert apart[0] == alone
    # Tiles 0 and 1 of a row send to 2 and 3: the link between 1 and 2 carries both.
    assert apart[1] == pytest.approx(2 * alone, rel=0.01)


def test_every_layer_and_head_comes_once() -> None:
    _, routes = laid(Parallel(tensor=4, pipeline=3), Parallel(tensor=2, pipeline=5), (12, 10))
    route = routes.routes[0, 0]
    assert len(np.unique(route.links)) == len(route.links) <= routes.links
    assert 1 <= route.byte_hops <= 14
