"""Lists of packets through Verilog in this process: every cycle as the bench of cocotb sees it."""

from collections.abc import Callable

import numpy as np
import pytest

from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.rtl_mesh import FIT_MESH, RtlMesh
from cosim.errors import HangError, SimulationError
from cosim.network.deliveries import simulate
from cosim.network.model import LoopModel
from cosim.spec.mesh import MeshSpec
from cosim.spec.project import MeshParameters, mesh_timing, project_spec
from tlm.interconnect.collectives import COLLECTIVES, CollectiveTraffic, group_tiles
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets, ReductionGoal, TileSet
from tlm.interconnect.traffic import Traffic
from verification.scenes import FAMILIES, Scene

ChangedToy = Callable[..., LoopModel]

pytestmark = pytest.mark.rtl

ROW = TileSet(range(1), range(4))
FEW = Packets.of(
    [
        (0, 0, TileSet.tile(0, 3), 2),
        (0, 5, TileSet.tile(2, 1), 3),
        (9, 5, TileSet.tile(2, 1), 1),
        (9, 11, TileSet.tile(2, 3), 1),
    ]
)


def model_of(mesh: MeshParameters) -> LoopModel:
    return LoopModel(project_spec(mesh), mesh.rows, mesh.cols)


def assert_equal(seen: Deliveries, wanted: Deliveries) -> None:
    for name in Deliveries.__slots__:
        np.testing.assert_array_equal(getattr(seen, name), getattr(wanted, name), err_msg=name)


def assert_as_on_the_bench(mesh: RtlMesh, packets: Packets) -> None:
    seen = simulate(model_of(mesh), packets, loopback=mesh.loopback)
    assert_equal(seen, mesh.simulate(packets))


@pytest.mark.parametrize(("number", "family"), [*enumerate(FAMILIES)])
def test_mixes_take_the_cycles_of_the_bench(number: int, family: str) -> None:
    rate = (0.02, 0.08, 0.5)[number % 3]
    packets = Scene(FIT_MESH, 1500, rate, family, seed=9300 + number).draw()
    assert {*packets.kind.tolist()} == {0, 1, 2, 3}
    assert_as_on_the_bench(FIT_MESH, packets)


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_traffic_with_multicasts_takes_the_cycles_of_the_bench(rate: float) -> None:
    traffic = Traffic(4, 4, "uniform", rate, 6, 800, seed=2, multicast_fraction=0.2)
    assert_as_on_the_bench(FIT_MESH, traffic.packets())


@pytest.mark.slow
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_collectives_take_the_cycles_of_the_bench(collective: str) -> None:
    group = group_tiles("all", (1, 0), 4, 4)
    traffic = CollectiveTraffic(collective, 4, 4, (1, 0), group, flits=22, bound_flits=4)
    assert_as_on_the_bench(FIT_MESH, traffic.packets())


@pytest.mark.slow  # two builds each
@pytest.mark.parametrize(
    "mesh",
    [
        RtlMesh(3, 4, 4, multicast=False),
        RtlMesh(3, 4, 3, reduction=False, stages=2, loopback=False),
        RtlMesh(4, 3, 4, multicast=False, reduction=False),
        RtlMesh(3, 5, 8, output_depth=2, y_first=True, reduce_stages=2),
    ],
    ids=["no-multicast", "no-reduction", "neither", "other"],
)
def test_other_forms_take_the_cycles_of_the_bench(mesh: RtlMesh) -> None:
    fraction, rng = 0.2 * mesh.multicast, np.random.default_rng(4)
    unicasts = Traffic(
        mesh.rows, mesh.cols, "uniform", 0.4, mesh.fifo_depth, 800, 3, fraction
    ).packets()
    assert_as_on_the_bench(mesh, unicasts)
    if mesh.reduction:
        places = rng.permutation(mesh.cols * mesh.rows)[: mesh.rows].tolist()
        goals = [
            ReductionGoal(TileSet(range(row, row + 1), range(mesh.cols)), root)
            for row, root in enumerate(places)
        ]
        sums = [(0, node, goal, 3) for goal in goals for node in goal.operands.nodes(mesh.cols)]
        assert_as_on_the_bench(mesh, Packets.of(sums))


@pytest.mark.slow  # two builds
def test_a_mesh_hangs_in_the_cycle_of_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAFERTLM_EXPECT_FAILURES", "1")
    mesh, passed = RtlMesh(1, 4, 4, cut_through=False), 0
    for offset in range(20):
        packets = Packets.of([(0, 0, ROW, 16), (3 * offset, 3, ROW, 16)])
        try:
            wanted = mesh.simulate(packets)
        except HangError as hang:
            with pytest.raises(HangError, match=f"{str(hang).removeprefix('1x4 mesh')}: "):
                simulate(model_of(mesh), packets)
        else:
            passed += 1
            assert_equal(simulate(model_of(mesh), packets), wanted)
    assert 0 < passed < 20


def test_a_custom_mesh_takes_the_cycles_of_the_bench(toy_spec: MeshSpec) -> None:
    assert_equal(
        simulate(LoopModel(toy_spec, 3, 4), FEW), BlackBoxMesh(toy_spec, 3, 4).simulate(FEW)
    )


def test_operands_may_come_late() -> None:
    # What waits behind the first operand is no hang: the second one is due long after.
    pair = ReductionGoal(TileSet(range(1), range(2)), root=3)
    sends = [(0, 0, pair, 4)] * 4 + [(3000, 1, pair, 4)] * 4
    packets = Packets.of([*sends, (0, 0, TileSet.tile(3, 3), 20)])
    seen = simulate(model_of(FIT_MESH), packets)
    assert_equal(seen, HandshakeMesh(4, 4, mesh_timing(FIT_MESH)).simulate(packets))
    assert seen.head_ejected.min() > 3000


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (1, r"packet 0 ejected at node 3: flit 0 of 2 has payload 0x\w+, expected 0x\w+, "),
        (2, r"packet 0 is not due at node 2, where a flit with payload 0x\w+ was .* in cycle 0"),
        (3, "3x4 stands still since cycle 11: 7 of 7 flits injected, 0 of 7 ejected$"),
        (4, "packet 0 ejected at node 3: flit 0 of 2 .* last bit 1, cycle 0"),
    ],
)
def test_faults_are_seen(changed_toy: ChangedToy, fault: int, message: str) -> None:
    model = changed_toy(("value = 0", f"value = {fault}"))
    with pytest.raises(HangError if fault == 3 else SimulationError, match=message):
        simulate(model, FEW)
