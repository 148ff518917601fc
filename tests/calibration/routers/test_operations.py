"""Meshes that combine otherwise than by sums, or in part; else they are as the mask mesh."""

from pathlib import Path

import pytest

from calibration.routers.custom import calibrate_custom
from cosim.network.deliveries import simulate
from cosim.network.interconnect import RtlInterconnect
from cosim.network.model import LoopModel
from cosim.spec.mesh import MeshSpec
from tests.calibration.routers.test_variants import _MASK, _MASK_FOUND
from tests.calibration.routers.variants import Change, holds, variant, with_moved
from tlm.interconnect.base import EventKind
from tlm.interconnect.packets import PacketKind, Packets, ReductionGoal, TileSet

pytestmark = pytest.mark.rtl

_ADDED = "sum.payload[e +: ElementWidth] + in_flit[i].payload[e +: ElementWidth];"
_SUM = """    sum.payload = '0;
    for (int e = 0; e < PayloadWidth; e += ElementWidth) begin
      for (int i = 0; i < Ports; i++) begin
        if (pair[i]) begin
          sum.payload[e +: ElementWidth] =
              sum.payload[e +: ElementWidth] + in_flit[i].payload[e +: ElementWidth];
        end
      end
    end
"""
_ALL_BUT_SUMS = "values = { unicast = 0, multicast = 1, and = 2 }"
_VALUES = "values = { unicast = 0, multicast = 1, sum = 2 }"

#: A barrier, of packets of any length.
_AND: list[Change] = [
    (
        "mask_adder.sv",
        _SUM,
        "    sum.payload = '1;\n"
        "    for (int i = 0; i < Ports; i++) if (pair[i]) sum.payload &= in_flit[i].payload;\n",
    ),
    ("spec.toml", _VALUES, _ALL_BUT_SUMS),
    ("spec.toml", "[limits]\n", "[limits]\npacket_flits = 200\n"),
]
#: Operation 2 passes the last input's operand on, 3 joins bits; above bit 31 are ones.
_NARROW: list[Change] = [
    (
        "mask_adder.sv",
        _SUM,
        "    if (sum.header.operation[0])\n"
        "      for (int i = 0; i < Ports; i++) if (pair[i]) sum.payload |= in_flit[i].payload;\n"
        "    sum.payload[PayloadWidth-1:32] = '1;\n",
    ),
    ("mask_pkg.sv", "if (header.operation != Sum) operands", "if (!header.operation[1]) operands"),
    ("spec.toml", _VALUES, "values = { unicast = 0, multicast = 1, select = 2, collect = 3 }"),
    ("spec.toml", "element_bits = 32", "reduced_bits = 32"),
]
#: What is told to be an AND is an OR.
_WRONG: list[Change] = [
    ("mask_adder.sv", _ADDED, _ADDED.replace("+ in_flit", "| in_flit")),
    ("spec.toml", _VALUES, _ALL_BUT_SUMS),
]
_ROW = TileSet(range(1), range(4))


def _mixed(*kinds: PacketKind) -> Packets:
    """Unicasts and reductions of a row, of each kind one after the other."""
    items: list[tuple[int, int, TileSet | ReductionGoal, int]] = []
    for turn in range(20):
        goal = ReductionGoal(_ROW, turn // 2 % 2, kinds[turn % len(kinds)])
        # Two operands meet in a router: these come along the row to its ends.
        pair = ReductionGoal(TileSet(range(1), range(2)), goal.root, goal.kind)
        items += [(20 * turn, node, pair, 1 + turn % 3) for node in (0, 1)]
        items.append((20 * turn, 5 + turn % 3, TileSet.tile(0, turn % 2), 2))
    return Packets.of(items)


def _holds_in_this_process(spec: MeshSpec, *kinds: PacketKind) -> None:
    """The loop of `noc --level rtl` and of kernels judges data alike."""
    packets, model = _mixed(*kinds), LoopModel(spec, 4, 4)
    listed = simulate(model, packets)
    with RtlInterconnect(model) as mesh:
        for number in range(len(packets)):
            where = packets.tiles(number)
            goal: TileSet | ReductionGoal = where
            if packets.reduces[number]:
                kind = PacketKind(int(packets.kind[number]))
                goal = ReductionGoal(where, int(packets.root[number]), kind)
            mesh.inject(
                int(packets.cycle[number]),
                int(packets.source[number]),
                goal,
                int(packets.flits[number]),
            )
        ejected = {}
        while not mesh.idle:
            for event in mesh.advance(10**6):
                if event.kind is EventKind.EJECTED:
                    ejected[event.packet] = event.cycle
    assert ejected == dict(zip(listed.packet.tolist(), listed.tail_ejected.tolist(), strict=True))


@pytest.mark.slow
def test_a_barrier_of_long_packets(tmp_path: Path) -> None:
    spec = variant(_MASK, tmp_path, _AND)
    longest = {"multicast_flits": 200, "reduction_flits": 200}
    holds(spec, with_moved(_MASK_FOUND, longest))
    _holds_in_this_process(spec, PacketKind.AND)
    simulate(
        LoopModel(spec, 4, 4), Packets.of([(0, 5, _ROW, 300), (0, 2, TileSet.tile(3, 3), 999)])
    )


@pytest.mark.slow
def test_operands_that_are_passed_on_or_joined_in_half_of_the_payload(tmp_path: Path) -> None:
    spec = variant(_MASK, tmp_path, _NARROW)
    holds(spec, _MASK_FOUND)
    _holds_in_this_process(spec, PacketKind.SELECT, PacketKind.COLLECT)


@pytest.mark.slow
def test_another_operation_than_the_specified_one_is_a_finding(tmp_path: Path) -> None:
    found = calibrate_custom(variant(_MASK, tmp_path, _WRONG), quick=True)
    wrong = [finding for finding in found.findings if finding.experiment == "reduction"]
    assert wrong and not found.identified
    assert all(finding.what.startswith("wrong data: ") for finding in wrong)
    assert {finding.experiment for finding in found.findings} == {"reduction"}
