"""Flits: places of the fields, what they hold, and which sets a header can name."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from cosim.spec.data import OWN_LAW
from cosim.spec.flits import payload
from cosim.spec.header import FlitLayout, check_names
from cosim.spec.mesh import MeshSpec
from tlm.errors import InputError
from tlm.interconnect.packets import PacketKind, Packets, ReductionGoal, TileSet

Changed = Callable[..., MeshSpec]

DONT_CARE = (
    'bits = "cols"', 'bits = "col_index"',
    'bits = "rows"', 'bits = "row_index"',
    'multicast = "bitmask"', 'multicast = "dont-care"',
    'reduction = "bitmask"', 'reduction = "dont-care"',
)  # fmt: skip
SOURCES = (
    '[[flit]]\nfield = "last"',
    '[[flit]]\nfield = "source_col"\nbits = 4\n\n[[flit]]\nfield = "source_row"\nbits = 4\n\n'
    '[[flit]]\nfield = "last"',
    'reduction = "dont-care"',
    'reduction = "dont-care"\nreduction_around = "source"',
)


@pytest.fixture
def dont_care(changed_mesh: Changed) -> MeshSpec:
    spec: MeshSpec = changed_mesh(*zip(DONT_CARE[::2], DONT_CARE[1::2], strict=True))
    return spec


def whole(words: np.ndarray) -> int:
    """A flit as one number."""
    return sum(int(word) << 64 * place for place, word in enumerate(words))


def test_every_field_at_its_place(mesh_spec: MeshSpec) -> None:
    layout = FlitLayout(mesh_spec, 3, 5)
    # 64 payload, 3 column, 2 row, 5 and 3 masks, 3 length, 3 operation, 1 last.
    assert (layout.width, layout.payload_lsb, layout.last_bit) == (84, 0, 83)
    rows, cols = range(0, 3, 2), range(1, 5)
    packets = Packets.of(
        [
            (0, 7, TileSet.tile(2, 4), 9),
            (0, 7, TileSet(rows, cols), 1),
            (0, 1, ReductionGoal(TileSet(rows, cols), 14), 2),
            (0, 2, ReductionGoal(TileSet(rows, cols), 3, PacketKind.MAXIMUM), 1),
        ]
    )
    flits = [whole(words) for words in layout.encode(packets)]
    assert len(flits) == 13
    # last, operation, length, row mask, column mask, row, column
    mask = "101_11110"
    assert [f"{flit >> 64:020b}" for flit in flits[8:]] == [
        bits.replace("_", "")
        for bits in (
            "1_000_001_100_10000_10_100",  # a length of 9, truncated
            f"1_100_001_{mask}_00_001",
            f"0_010_010_{mask}_10_100",
            f"1_010_010_{mask}_10_100",
            f"1_011_001_{mask}_00_011",
        )
    ]
    assert flits[4] & (1 << 64) - 1 == int(payload(np.uint64(0), np.uint64(4)))
    assert flits[4] >> 83 == 0


def test_last_bits_and_payloads(mesh_spec: MeshSpec, toy_spec: MeshSpec) -> None:
    packets = Packets.of([(0, 3, TileSet.tile(0, 1), 3), (5, 0, TileSet.tile(2, 3), 2)])
    number, flit = np.array([0, 0, 0, 1, 1], np.uint64), np.array([0, 1, 2, 0, 1], np.uint64)
    for spec in (mesh_spec, toy_spec):
        layout = FlitLayout(spec, 3, 4)
        flits = [whole(words) for words in layout.encode(packets)]
        assert [one >> layout.last_bit & 1 for one in flits] == [0, 0, 1, 0, 1]
        data = [one >> layout.payload_lsb & (1 << 64) - 1 for one in flits]
        assert data == OWN_LAW.sent(packets, number, flit).tolist()


def test_dont_care_masks_and_own_places(changed_mesh: Changed) -> None:
    changes = (*DONT_CARE[:6], *SOURCES[:2], DONT_CARE[6], SOURCES[3])
    spec = changed_mesh(*zip(changes[::2], changes[1::2], strict=True))
    layout = FlitLayout(spec, 8, 8)
    everyone, apart = TileSet(range(8), range(8)), TileSet(range(1, 8, 4), range(2, 8, 4))
    packets = Packets.of([(0, 20, everyone, 1), (0, 10, ReductionGoal(apart, 63), 1)])
    # last, source row and column, operation, length, row and column mask, row, column
    assert [f"{whole(words) >> 64:027b}" for words in layout.encode(packets)] == [
        bits.replace("_", "")
        for bits in (
            "1_0010_0100_100_001_111_111_000_000",
            "1_0001_0010_010_001_100_100_111_111",
        )
    ]


def test_sets_that_dont_care_bits_can_name(dont_care: MeshSpec) -> None:
    layout = FlitLayout(dont_care, 16, 16)
    nameable = {
        tuple(place for place in range(16) if (place ^ number) & ~mask == 0)
        for number, mask in product(range(16), repeat=2)
    }
    sides = (range(first, 16, step)[:n] for first, step, n in product(range(16), repeat=3) if step)
    for side in (side for side in sides if side):
        assert layout.names(TileSet(side, range(16))) == (tuple(side) in nameable)
        assert layout.names(TileSet(range(2), side)) == (tuple(side) in nameable)


def test_what_a_header_can_name(mesh_spec: MeshSpec, dont_care: MeshSpec) -> None:
    three, pair = TileSet(range(3), range(1)), TileSet(range(2, 4), range(1))
    for spec, odd in ((mesh_spec, True), (dont_care, False)):
        layout = FlitLayout(spec, 4, 4)
        assert layout.names(TileSet.tile(3, 3)) and layout.names(pair)
        assert layout.names(three) == odd
        assert layout.names(ReductionGoal(pair, 8)) and layout.names(ReductionGoal(pair, 9)) == odd
        assert not layout.names(TileSet(range(4, 5), range(1)))
        assert not layout.names(ReductionGoal(pair, 16))


def test_packets_that_a_header_cannot_express(dont_care: MeshSpec, toy_spec: MeshSpec) -> None:
    fine = (0, 0, TileSet.tile(1, 1), 1)
    packets = Packets.of([fine, (0, 0, TileSet(range(3), range(1)), 1)])
    with pytest.raises(InputError) as caught:
        FlitLayout(dont_care, 4, 4).encode(packets)
    assert str(caught.value) == (
        "spec.toml: packet 1: found multicast to rows 0:3, columns 0:1; allowed with multicast = "
        '"dont-care": 1, 2, 4, 8, ... rows and columns that equal row and col but in the bits of a '
        "mask"
    )
    with pytest.raises(InputError, match="0:1; allowed: none, as .features. has no multicast"):
        FlitLayout(toy_spec, 3, 4).encode(packets)
    with pytest.raises(InputError, match="packet 0: found source 0, .* roots on the 3x4 mesh"):
        FlitLayout(toy_spec, 3, 4).encode(Packets.of([(0, 0, TileSet.tile(3, 1), 1)]))


def test_a_wide_constant(changed_mesh: Changed) -> None:
    most = 2**64 - 1
    spec = changed_mesh(
        (
            'field = "length"\nbits = "flit_count" ',
            f'field = "constant"\nvalue = {most}\nbits = 70 ',
        )
    )
    layout = FlitLayout(spec, 3, 5)
    assert layout.longest_flits is None
    (words,) = layout.encode(Packets.of([(0, 0, TileSet.tile(0, 0), 1)]))
    # 77 bits below: payload, row, column and masks; the last bit above.
    assert whole(words) >> 77 == most | 1 << 73


def test_a_length_that_does_not_fit(mesh_spec: MeshSpec) -> None:
    layout = FlitLayout(mesh_spec, 4, 4)
    assert layout.longest_flits == 7
    pair = TileSet(range(2), range(1))
    layout.encode(Packets.of([(0, 5, TileSet.tile(0, 1), 8), (0, 0, pair, 7)]))
    for goal in (pair, ReductionGoal(pair, 3)):
        packets = Packets.of([(0, 5, TileSet.tile(0, 1), 9), (0, 0, goal, 8)])
        with pytest.raises(InputError) as caught:
            layout.encode(packets)
        assert str(caught.value) == (
            "mesh.toml: packet 1: found 8 flits; allowed by the field length: 1 to 7"
        )


def test_names_on_meshes_that_cannot_be_built(dont_care: MeshSpec, toy_spec: MeshSpec) -> None:
    far = Packets.of([(0, 0, TileSet(range(64, 128), range(1)), 1)])
    check_names(dont_care, far, cols=256)
    odd = Packets.of([(0, 0, TileSet(range(65, 129), range(1)), 1)])
    for spec, packets in ((dont_care, odd), (toy_spec, far)):
        with pytest.raises(InputError, match=r"packet 0: found multicast to rows \d+:\d+, "):
            check_names(spec, packets, cols=256)


def test_headers_in_first_flits_alone(changed_mesh: Changed) -> None:
    change = ('multicast = "bitmask"', 'multicast = "bitmask"\nheader = "first-flit"')
    plain, first = (FlitLayout(changed_mesh(*changes), 3, 5) for changes in ((), (change,)))
    packets = Packets.of([(0, 7, TileSet.tile(2, 4), 3), (0, 1, TileSet(range(2), range(2)), 2)])
    every, some = plain.encode(packets), first.encode(packets)
    heads, others = [0, 3], [1, 2, 4]
    assert (some[heads] == every[heads]).all()
    # The payload's 64 bits are the low word; of what is above it the last bit alone stays.
    last = np.uint64(1 << (first.last_bit - 64))
    assert (some[others, 0] == every[others, 0]).all()
    assert (some[others, 1] == every[others, 1] & last).all()
    assert every[others, 1].any()
    assert (first.behind(every[0]) == some[0] * np.array([1, 0], dtype=np.uint64)).all()
    assert (plain.behind(every[0]) == every[0]).all()
