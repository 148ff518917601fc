"""Collectives: messages, links, and their closed forms against the handshake model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.interconnect.collectives import COLLECTIVES, Collective, group_tiles
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming

TIMING = NocTiming(1, 1, 4, 1, 8)
ROW = TileSet(range(1, 2), range(4))


@st.composite
def collectives(draw: st.DrawFn) -> Collective:
    rows, cols = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    root = draw(st.integers(0, rows - 1)), draw(st.integers(0, cols - 1))
    r0, r1 = sorted((draw(st.integers(0, rows - 1)), draw(st.integers(0, rows - 1))))
    c0, c1 = sorted((draw(st.integers(0, cols - 1)), draw(st.integers(0, cols - 1))))
    group = TileSet(range(r0, r1 + 1), range(c0, c1 + 1))
    if group.nodes(cols) == [root[0] * cols + root[1]]:
        group = TileSet(range(rows), range(cols))
    kind = draw(st.sampled_from(COLLECTIVES))
    return Collective(kind, rows, cols, root, group, draw(st.integers(1, 30)), 4)


@settings(deadline=None)
@given(collectives())
def test_the_closed_form_is_exact_when_nothing_is_in_the_way(collective: Collective) -> None:
    mesh = HandshakeMesh(collective.rows, collective.cols, TIMING)
    seen = mesh.simulate(collective.packets())
    cycles = int(seen.tail_ejected.max() - seen.head_injected.min())
    assert cycles == collective.zero_load_cycles(TIMING)


@settings(deadline=None)
@given(collectives())
def test_everyone_in_the_group_gets_everything(collective: Collective) -> None:
    packets = collective.packets()
    root = collective.root[0] * collective.cols + collective.root[1]
    received: dict[int, int] = {}
    for number in range(len(packets)):
        assert packets.source[number] == root
        for node in packets.tiles(number).nodes(collective.cols):
            received[node] = received.get(node, 0) + int(packets.flits[number])
    received[root] = collective.flits
    group = set(collective.group.nodes(collective.cols))
    assert received == dict.fromkeys(group | {root}, collective.flits)


@given(collectives())
def test_flit_hops_count_the_links_of_the_tree(collective: Collective) -> None:
    row, col = collective.root
    links = set()
    hops = 0
    for r, c in collective.group_tiles():
        step = 1 if c > col else -1
        links |= {((row, x), (row, x + step)) for x in range(col, c, step)}
        step = 1 if r > row else -1
        links |= {((y, c), (y + step, c)) for y in range(row, r, step)}
        hops += abs(r - row) + abs(c - col)
    expected = len(links) if collective.kind == "multicast" else hops
    assert collective.flit_hops == expected * collective.flits


@pytest.mark.parametrize(
    ("kind", "messages", "cycles", "flit_hops"),
    [
        # From the second tile of a row of four, eight flits.
        ("unicast", 3, 2 * 8 + 1 + 1 + 7, (1 + 1 + 2) * 8),
        ("seq-multicast", 3, 2 * 8 + 1 + 2 + 7, (1 + 1 + 2) * 8),
        ("multicast", 1, 1 + 2 + 7 + 1, 3 * 8),
    ],
)
def test_a_row(kind: str, messages: int, cycles: int, flit_hops: int) -> None:
    collective = Collective(kind, 4, 4, (1, 1), ROW, 8, 4)
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
    with pytest.raises(InputError, match="unknown collective 'gossip'; known: multicast, seq-"):
        Collective("gossip", 4, 4, (0, 0), ROW, 1, 4)
    with pytest.raises(InputError, match="--flits: found 0; allowed: 1 to 1048576"):
        Collective("multicast", 4, 4, (0, 0), ROW, 0, 4)
    with pytest.raises(InputError, match="--group: holds no tile but the source"):
        Collective("unicast", 4, 4, (2, 2), TileSet.tile(2, 2), 1, 4)
