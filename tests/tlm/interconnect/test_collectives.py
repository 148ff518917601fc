"""Collectives: messages, links, and their closed forms against the handshake model."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.interconnect.collectives import COLLECTIVES, CollectiveTraffic, group_tiles
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming

TIMING = NocTiming(1, 1, 4, 1, 8)
ROW = TileSet(range(1, 2), range(4))


@st.composite
def collectives(draw: st.DrawFn) -> CollectiveTraffic:
    rows, cols = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    root = draw(st.integers(0, rows - 1)), draw(st.integers(0, cols - 1))
    r0, r1 = sorted((draw(st.integers(0, rows - 1)), draw(st.integers(0, rows - 1))))
    c0, c1 = sorted((draw(st.integers(0, cols - 1)), draw(st.integers(0, cols - 1))))
    group = TileSet(range(r0, r1 + 1), range(c0, c1 + 1))
    if group.nodes(cols) == [root[0] * cols + root[1]]:
        group = TileSet(range(rows), range(cols))
    kind = draw(st.sampled_from(COLLECTIVES))
    return CollectiveTraffic(kind, rows, cols, root, group, draw(st.integers(1, 30)), 4)


def cycles_of(collective: CollectiveTraffic) -> int:
    """By the handshake model."""
    mesh = HandshakeMesh(collective.rows, collective.cols, TIMING)
    seen = mesh.simulate(collective.packets())
    return int(seen.tail_ejected.max() - seen.head_injected.min())


@settings(deadline=None)
@given(collectives())
def test_the_closed_form_is_exact_when_nothing_is_in_the_way(collective: CollectiveTraffic) -> None:
    assert collective.zero_load_cycles(TIMING) == cycles_of(collective)


@given(collectives())
def test_everyone_gets_everything_from_who_has_it(collective: CollectiveTraffic) -> None:
    """Who has a part of the group's data gives all of it away, or gets what is wanted."""
    root = collective.root[0] * collective.cols + collective.root[1]
    group = set(collective.group.nodes(collective.cols))
    inward = collective.kind == "reduce"
    # What a tile holds: contributions of tiles, or the root's data.
    holds = {node: {node} if inward else set() for node in group | {root}}
    holds[root] |= {root}
    before = {node: set(held) for node, held in holds.items()}
    flits: dict[tuple[int, int], int] = {}
    packets = collective.packets()
    for number in range(len(packets)):
        source = int(packets.source[number])
        targets = packets.tiles(number).nodes(collective.cols)
        if packets.reduces[number]:
            targets = [int(packets.root[number])]
        for node in targets:
            flits[source, node] = flits.get((source, node), 0) + int(packets.flits[number])
            holds[node] |= before[source]
    assert set(flits.values()) == {collective.flits}
    if inward:
        assert holds[root] == group | {root}
    else:
        assert all(held == {root} for held in holds.values())


@given(collectives(), st.booleans())
def test_flit_hops_count_the_links(collective: CollectiveTraffic, y_first: bool) -> None:
    collective, links = replace(collective, y_first=y_first), set()
    hops = 0
    for r, c in collective.group:
        (y0, x0), (y1, x1) = collective.root, (r, c)
        if collective.kind == "reduce":
            (y0, x0), (y1, x1) = (y1, x1), (y0, x0)
        row, col = (y1, x0) if y_first else (y0, x1)  # where the other one is crossed
        step = 1 if x1 > x0 else -1
        links |= {((row, x), (row, x + step)) for x in range(x0, x1, step)}
        step = 1 if y1 > y0 else -1
        links |= {((y, col), (y + step, col)) for y in range(y0, y1, step)}
        hops += abs(y1 - y0) + abs(x1 - x0)
    if collective.kind in ("multicast", "reduce"):
        hops = len(links)
    assert collective.flit_hops == hops * collective.flits


@pytest.mark.parametrize(
    ("kind", "messages", "cycles", "flit_hops"),
    [
        # From the second tile of a row of four, eight flits.
        ("unicast", 3, 2 * 8 + 1 + 1 + 7, (1 + 1 + 2) * 8),
        ("multicast", 1, 1 + 2 + 7 + 1, 3 * 8),
        ("reduce", 4, 2 * (1 + 2) + 7 + 2, 3 * 8),
    ],
)
def test_a_row(kind: str, messages: int, cycles: int, flit_hops: int) -> None:
    collective = CollectiveTraffic(kind, 4, 4, (1, 1), ROW, 8, 4)
    assert collective.messages == messages
    assert collective.zero_load_cycles(TIMING) == cycles
    assert collective.flit_hops == flit_hops


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("row", [8, 9, 10, 11]),
        ("column", [1, 5, 9]),
        ("all", list(range(12))),
        ("0:2,1:3", [1, 2, 5, 6]),
    ],
)
def test_groups(text: str, nodes: list[int]) -> None:
    assert group_tiles(text, (2, 1), rows=3, cols=4).nodes(4) == nodes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows", "'rows' is no rectangle; write r0:r1,c0:c1 (half-open)"),
        ("0:1", "'0:1' is no rectangle; write r0:r1,c0:c1 (half-open)"),
        ("0:4,0:1", "rectangle 0:4,0:1 is empty or lies outside the 3x4 mesh"),
        ("1:1,0:1", "rectangle 1:1,0:1 is empty or lies outside the 3x4 mesh"),
    ],
)
def test_other_groups_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        group_tiles(text, (2, 1), rows=3, cols=4)
    assert str(error.value) == message


def test_impossible_collectives_are_refused() -> None:
    with pytest.raises(InputError, match="unknown collective 'gossip'; known: multicast, red"):
        CollectiveTraffic("gossip", 4, 4, (0, 0), ROW, 1, 4)
    with pytest.raises(InputError, match="--flits: found 0; allowed: 1 to 1048576"):
        CollectiveTraffic("multicast", 4, 4, (0, 0), ROW, 0, 4)
    with pytest.raises(InputError, match="--group: holds no tile but the source"):
        CollectiveTraffic("unicast", 4, 4, (2, 2), TileSet.tile(2, 2), 1, 4)
