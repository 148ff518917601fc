"""The example of locked channels, docs/custom_rtl/locked_mesh: its laws, its locks, its traffic."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibration.routers.mesh import BlackBoxMesh
from cosim.spec.mesh import load_spec
from tests.specifications import LOCKED_TIMING
from tests.verilog_lint import lint
from tlm.calibrated import REPOSITORY
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.lines import hops
from tlm.interconnect.packets import Deliveries, Int64s, Packets, TileSet
from tlm.interconnect.zero_load import NocTiming

pytestmark = pytest.mark.rtl

SPEC = load_spec(REPOSITORY / "docs" / "custom_rtl" / "locked_mesh" / "locked_mesh.toml")
#: Further apart than any message takes that is alone.
APART_CYCLES = 200

Item = tuple[int, int, TileSet, int]


def mesh(rows: int, cols: int, **parameters: int) -> BlackBoxMesh:
    """The mesh with other parameters."""
    rtl = SPEC.rtl.model_copy(update={"parameters": parameters})
    return BlackBoxMesh(SPEC.model_copy(update={"rtl": rtl}), rows, cols)


BY_OUTPUT, BY_RECEIVER = mesh(3, 4), mesh(3, 4, ByReceiver=1)
BOTH = pytest.mark.parametrize("network", [BY_OUTPUT, BY_RECEIVER], ids=["output", "receiver"])


def run(network: BlackBoxMesh, *items: Item) -> Deliveries:
    return network.simulate(Packets.of(items))


def along_row(cycle: int, source: int, to: int, flits: int) -> Item:
    """A message in row 0."""
    return cycle, source, TileSet.tile(0, to), flits


def cycles(deliveries: Deliveries) -> Int64s:
    """From the first flit in to the last one out."""
    return deliveries.tail_ejected - deliveries.head_injected


def lone_messages_take(network: BlackBoxMesh, router_cycles: int, set_up_cycles: int) -> None:
    """Hold the law of a message that is alone: three ways, one with all flits."""
    rng = np.random.default_rng(3)
    items: list[Item] = []
    far = []
    for turn in range(40):
        source, to = rng.choice(network.rows * network.cols, 2, replace=False).tolist()
        place = divmod(to, network.cols)
        flits = int(rng.integers(1, 9))
        items.append((turn * APART_CYCLES, source, TileSet.tile(*place), flits))
        far.append(hops(divmod(source, network.cols), place))
    ways = 3 * router_cycles * (1 + np.array(far))
    flits_behind = np.array([item[3] - 1 for item in items])
    assert cycles(run(network, *items)).tolist() == (set_up_cycles + ways + flits_behind).tolist()


def test_verilog_has_no_warning() -> None:
    other = {"ByReceiver": 1, "ExtraStages": 2, "LinkInterval": 3, "Arbiter": 1, "DataCycles": 4}
    for values in ({}, other):
        outcome = lint(SPEC.rtl.top, SPEC.source_files(), **values)
        assert outcome.returncode == 0, outcome.stderr


@BOTH
def test_a_message_goes_three_ways(network: BlackBoxMesh) -> None:
    lone_messages_take(network, router_cycles=2, set_up_cycles=1 + 2 + 1)


@pytest.mark.slow
def test_cycles_of_hops_and_interfaces() -> None:
    network = mesh(3, 4, ExtraStages=1, RequestCycles=2, AcknowledgeCycles=5, DataCycles=3)
    lone_messages_take(network, router_cycles=3, set_up_cycles=2 + 5 + 3)


def test_messages_to_one_receiver_share_only_what_is_locked_for_it() -> None:
    pair = [along_row(0, source, 1, 8) for source in (0, 2)]
    first, second = sorted(run(BY_OUTPUT, *pair).head_ejected.tolist())
    assert second == first + 8
    first, second = sorted(run(BY_RECEIVER, *pair).head_ejected.tolist())
    assert second == first + 1


@BOTH
@pytest.mark.parametrize(
    ("source", "to"),
    [
        pytest.param(1, 2, id="request"),
        pytest.param(2, 1, id="acknowledge"),
        pytest.param(3, 2, id="acknowledge-at-the-next-router"),
        pytest.param(1, 0, id="acknowledge-behind-the-data"),
    ],
)
def test_what_meets_a_locked_output_waits(network: BlackBoxMesh, source: int, to: int) -> None:
    deliveries = run(network, along_row(0, 0, 3, 100), along_row(60, source, to, 1))
    assert deliveries.head_ejected[1] > deliveries.tail_injected[0]


@BOTH
def test_what_meets_none_does_not_wait(network: BlackBoxMesh) -> None:
    beside = (60, 5, TileSet.tile(1, 2), 1)
    alone = cycles(run(network, beside))[0]
    assert cycles(run(network, along_row(0, 0, 3, 100), beside))[1] == alone


@BOTH
def test_traffic_arrives_whole(network: BlackBoxMesh) -> None:
    rng = np.random.default_rng(4)
    items: list[Item] = []
    for turn in range(1000):
        source, to = rng.choice(12, 2, replace=False).tolist()
        items.append((turn, source, TileSet.tile(*divmod(to, 4)), int(rng.integers(1, 17))))
    deliveries = run(network, *items)
    assert deliveries.tail_ejected.max() > 2 * items[-1][0]  # more than it can carry


#: Fields of the timing, and the parameters that make them so.
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "fixed-priority": ({"arbiter": "fixed"}, {"Arbiter": 1}),
    "three-cycle-router": (
        {"hop_cycles": 3, "ejection_cycles": 3, "fifo_depth": 4, "return_cycles": 2},
        {"ExtraStages": 1},
    ),
    "places-of-one": ({"fifo_depth": 1, "output_depth": 1}, {"InDepth": 1, "OutDepth": 1}),
    "deep-buffers": ({"fifo_depth": 8, "output_depth": 4}, {"InDepth": 8, "OutDepth": 4}),
    "throttled-links": ({"link_interval_cycles": 2}, {"LinkInterval": 2}),
    "slow-interfaces": (
        {"request_cycles": 3, "acknowledge_cycles": 7, "data_cycles": 4},
        {"RequestCycles": 3, "AcknowledgeCycles": 7, "DataCycles": 4},
    ),
}


def equal_to_the_cycle(network: BlackBoxMesh, timing: NocTiming) -> None:
    """Hold that Verilog and model agree on every head and tail, from light load to far too much."""
    nodes = network.rows * network.cols
    for seed, (gap_cycles, longest) in enumerate([(8, 12), (1, 6), (0.2, 3), (0, 1)]):
        rng = np.random.default_rng(seed)
        items: list[Item] = []
        for turn in range(400):
            source, to = rng.integers(0, nodes, 2).tolist()
            where = TileSet.tile(*divmod(to, network.cols))
            cycle = int(turn * gap_cycles)
            items.append((cycle, source, where, int(rng.integers(1, longest + 1))))
        packets = Packets.of(items)
        verilog = network.simulate(packets)
        model = HandshakeMesh(network.rows, network.cols, timing).simulate(packets)
        for field in Deliveries.__slots__:
            assert getattr(verilog, field).tolist() == getattr(model, field).tolist(), field


@pytest.mark.parametrize("channel", ["output", "receiver"])
def test_the_model_is_equal_to_the_cycle(channel: str) -> None:
    network = {"output": BY_OUTPUT, "receiver": BY_RECEIVER}[channel]
    equal_to_the_cycle(network, replace(LOCKED_TIMING, channel=channel))


@pytest.mark.slow
@pytest.mark.parametrize("channel", ["output", "receiver"])
@pytest.mark.parametrize("name", VARIANTS)
def test_so_it_is_of_variants(name: str, channel: str) -> None:
    fields, parameters = VARIANTS[name]
    by_receiver = int(channel == "receiver")
    network = mesh(3, 4, ByReceiver=by_receiver, **parameters)
    equal_to_the_cycle(network, replace(LOCKED_TIMING, channel=channel, **fields))
