"""Packets through Verilog that runs in this process: events, faults that are seen, hangs, waves."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from calibration.routers.rtl_mesh import RtlMesh
from cosim.errors import HangError, SimulationError
from cosim.network.interconnect import RtlInterconnect
from cosim.network.model import LoopModel
from cosim.spec.mesh import Limits, load_spec
from cosim.spec.project import mesh_timing, project_spec
from tlm.calibrated import REPOSITORY
from tlm.errors import InputError
from tlm.interconnect.base import Event, EventKind, Interconnect
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import REDUCTIONS, ReductionGoal, TileSet

ChangedToy = Callable[..., LoopModel]
Item = tuple[int, int, TileSet | ReductionGoal, int]

pytestmark = pytest.mark.rtl

MESH = RtlMesh(4, 4, 4)
MODEL = LoopModel(project_spec(MESH), 4, 4)
ROW = TileSet(range(1), range(4))
FOREVER = 2**62


def tiles(rng: np.random.Generator) -> TileSet:
    """A rectangle of the mesh."""
    sides = [sorted(rng.integers(0, 4, 2).tolist()) for _ in range(2)]
    return TileSet(*(range(first, last + 1) for first, last in sides))


def mixed(seed: int, packets: int) -> list[Item]:
    """Bursts of unicasts and multicasts with idle time between, each before a row's reduction.

    The operands of a reduction come one after the other, hundreds of cycles apart.
    """
    rng = np.random.default_rng(seed)
    items: list[Item] = []
    cycle = 0
    while len(items) < packets:
        for _ in range(int(rng.integers(1, 40))):
            cycle += int(rng.integers(0, 3))
            source, flits = int(rng.integers(16)), int(rng.integers(1, 5))
            goal = (
                tiles(rng) if rng.random() < 0.4 else TileSet.tile(*rng.integers(0, 4, 2).tolist())
            )
            items.append((cycle, source, goal, flits if len(goal) > 1 else 3 * flits))
        cycle += int(rng.integers(100, 5000))
        row, flits = int(rng.integers(4)), int(rng.integers(1, 5))
        operands = TileSet(range(row, row + 1), range(4))
        goal = ReductionGoal(operands, int(rng.integers(16)), REDUCTIONS[int(rng.random() < 0.5)])
        for node in operands.nodes(4):
            items.append((cycle, node, goal, flits))
            cycle += int(rng.integers(0, 2500))
        cycle += int(rng.integers(0, 200))
    return items


def played(network: Interconnect, items: list[Item]) -> list[Event]:
    """All events of packets that are told to a network in their own time."""
    events: list[Event] = []

    def advance(until: int) -> None:
        while not network.idle and (seen := network.advance(until)):
            events.extend(seen)

    for cycle, source, goal, flits in items:
        advance(cycle)
        network.inject(cycle, source, goal, flits)
    advance(FOREVER)
    return events


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_events_are_those_of_the_model(seed: int) -> None:
    items = mixed(seed, 600)
    modelled = played(HandshakeMesh(4, 4, mesh_timing(MESH)), items)
    with RtlInterconnect(MODEL) as mesh:
        assert played(mesh, items) == modelled
        assert mesh.idle
    ejected = {event.packet for event in modelled if event.kind is EventKind.EJECTED}
    assert len(modelled) > 2 * len(items) and len(ejected) < len(items)


def test_time_without_packets_is_not_clocked() -> None:
    items: list[Item] = [(turn * 1_000_000, turn % 16, ROW, 4) for turn in range(100)]
    with RtlInterconnect(MODEL) as mesh:
        assert played(mesh, items)[-1].cycle > 99_000_000
        assert mesh.clocked_cycles < 100 * 100


def test_two_meshes_live_side_by_side() -> None:
    with RtlInterconnect(MODEL) as one, RtlInterconnect(MODEL) as other:
        one.inject(0, 0, ROW, 4)
        first = one.advance(FOREVER)
        with RtlInterconnect(MODEL) as late:
            assert played(late, mixed(4, 50))
        other.inject(0, 0, ROW, 4)
        assert other.advance(FOREVER) == first
        assert one.advance(FOREVER) == other.advance(FOREVER)


def test_operands_wait_for_others() -> None:
    goal = ReductionGoal(TileSet(range(1), range(2)), root=5)
    with RtlInterconnect(MODEL) as mesh:
        mesh.inject(0, 0, goal, 2)
        assert [event.kind for event in mesh.advance(FOREVER)] == [EventKind.INJECTED]
        assert mesh.advance(10**6) == [] and mesh.idle
        mesh.inject(10**6, 1, goal, 2)
        with pytest.raises(InputError, match="packet 3: found 3 flits; allowed: 4"):
            mesh.inject(10**6, 0, ReductionGoal(ROW, root=0), 4)
            mesh.inject(10**6, 1, ReductionGoal(ROW, root=0), 3)


def test_packets_that_cannot_be() -> None:
    with RtlInterconnect(MODEL) as mesh:
        with pytest.raises(InputError, match="found source 16"):
            mesh.inject(0, 16, ROW, 1)
        mesh.inject(500, 0, ROW, 1)
        mesh.advance(FOREVER)
        with pytest.raises(InputError, match="found cycle 500; allowed: 501 to"):
            mesh.inject(500, 0, ROW, 1)


def test_an_assertion_of_the_verilog_ends_the_run() -> None:
    message = r"stopped at .*input_port.sv:\d+: .*: multicast packet of 5 flits, buffers of 4"
    # A specification that does not say how long a multicast may be.
    model = LoopModel(MODEL.spec.model_copy(update={"limits": Limits()}), 4, 4)
    with RtlInterconnect(model) as mesh, pytest.raises(SimulationError, match=message):
        mesh.inject(7, 0, ROW, 5)
        while True:
            mesh.advance(FOREVER)


@pytest.mark.slow
def test_multicasts_that_wait_for_each_other_hang() -> None:
    mask_mesh = load_spec(REPOSITORY / "docs" / "custom_rtl" / "mask_mesh" / "mask_mesh.toml")
    with RtlInterconnect(LoopModel(mask_mesh, 4, 4)) as mesh, pytest.raises(HangError) as caught:
        for source in (0, 3):
            mesh.inject(0, source, ROW, 6)
        while True:
            mesh.advance(FOREVER)
    assert str(caught.value).startswith("mask-mesh 4x4 stands still since cycle ")
    assert str(caught.value).endswith(
        " deliveries are due: packet 0 at node 1, 0 at node 2, 0 at node 3, 1 at node 0, "
        "1 at node 1, ..."
    )


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (1, r"packet 0 ejected at node 3: flit 0 of 2 has payload 0x\w+, expected 0x\w+, "),
        (2, r"packet 0 is not due at node 2, where a flit with payload 0x\w+ was .* in cycle 4"),
        (3, "3x4 stands still since cycle 6; 1 deliveries are due: packet 0 at node 3"),
        (4, "packet 0 ejected at node 3: flit 0 of 2 .* last bit 1, cycle 4"),
    ],
)
def test_faults_are_seen(changed_toy: ChangedToy, fault: int, message: str) -> None:
    model = changed_toy(("value = 0", f"value = {fault}"))
    with (
        RtlInterconnect(model) as mesh,
        pytest.raises(HangError if fault == 3 else SimulationError, match=message),
    ):
        mesh.inject(4, 0, TileSet.tile(0, 3), 2)
        while True:
            mesh.advance(FOREVER)


def test_a_model_that_stops_says_why(changed_toy: ChangedToy) -> None:
    model = changed_toy(("bits = 64", "bits = 65"))
    with pytest.raises(
        SimulationError, match="stopped .*send_flit: found 864 bits; by the specification"
    ):
        RtlInterconnect(model)


def test_verilog_that_cannot_be_compiled(changed_toy: ChangedToy) -> None:
    model = changed_toy(('inject_valid = "send_valid"', 'inject_valid = "offer_valid"'))
    with pytest.raises(SimulationError, match="Pin not found: 'offer_valid'"):
        model.build()


def test_a_limit_of_the_specification(changed_toy: ChangedToy) -> None:
    model = changed_toy(('name = "toy"', 'name = "toy"\nlimits = { packet_flits = 2 }'))
    with (
        RtlInterconnect(model) as mesh,
        pytest.raises(InputError, match=r"toy.toml: limits.packet_flits: found .* 3 flits; .*: 2"),
    ):
        mesh.inject(0, 0, TileSet.tile(0, 1), 3)


@pytest.mark.slow
def test_a_wave_shows_the_inside(changed_toy: ChangedToy, tmp_path: Path) -> None:
    wave = tmp_path / "toy.vcd"
    with RtlInterconnect(changed_toy(waves=True), waves=wave) as mesh:
        mesh.inject(4, 0, TileSet.tile(0, 3), 2)
        while not mesh.idle:
            mesh.advance(FOREVER)
    text = wave.read_text()
    assert "owner_q" in text
    assert len(text.split("#")) > 40  # two steps a cycle, those of the reset included
    with pytest.raises(InputError, match="allowed: a file for the wave"):
        RtlInterconnect(changed_toy(waves=True), waves=tmp_path)


def test_a_closed_mesh_says_so() -> None:
    with RtlInterconnect(MODEL) as mesh:
        mesh.inject(0, 0, ROW, 1)
    mesh.close()
    closed = pytest.raises(SimulationError, match=r"4x4: the model is closed$")
    with closed:
        mesh.inject(0, 0, ROW, 1)
    with closed:
        mesh.advance(FOREVER)
