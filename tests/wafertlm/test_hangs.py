"""Programs that hang without protection end at every level, and name the packets in the circle."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from cosim.errors import HangError
from cosim.network.interconnect import RtlInterconnect
from cosim.network.model import LoopModel
from cosim.spec.project import MeshParameters, mesh_timing, project_spec
from tests.tlm.programs import program_of, tile
from tlm.engines.at import run_at
from tlm.interconnect.base import Interconnect
from tlm.interconnect.handshake import DeadlockError, HandshakeMesh
from tlm.interconnect.packets import Packets, ReductionGoal, TileSet
from tlm.program import Multicast, Operation, Program, Reduce, Send
from wafertlm.noc.networks import project_network

MESH = MeshParameters(2, 4, 4, cut_through=False)


def along(row: int, *sources: int, flits: int = 16, last: int = 4) -> list[Operation]:
    """Multicasts to a row, or to its first tiles, from some of its tiles at once."""
    return [Multicast(tile(col, row), "row", range(last), flits) for col in sources]


def down(*columns: int, flits: int = 16) -> list[Operation]:
    """Multicasts to columns, from both of their ends."""
    ends = [(col, row) for col in columns for row in range(2)]
    return [Multicast(tile(col, row), "column", range(2), flits) for col, row in ends]


def send(source: int, target: int, flits: int) -> Operation:
    """From a tile of the first row to another."""
    return Send(tile(source), np.array([0]), np.array([target]), flits)


PROGRAMS: dict[str, Sequence[Operation]] = {
    "from both ends of a row": along(0, 0, 3),
    "from both ends of the other row": along(1, 0, 3),
    "of both rows": [*along(0, 0, 3), *along(1, 0, 3)],
    "from within": along(0, 1, 2),
    "from all tiles of a row": along(0, 0, 1, 2, 3),
    "of different lengths": [*along(0, 0, flits=40), *along(0, 3, flits=9)],
    "to three tiles, from outside": along(0, 0, 3, last=3),
    "beside a long message": [send(1, 2, 30), *along(0, 0, 3)],
    "beside columns": [*down(0, 2), *along(0, 1, 3)],
    "beside a reduction": [
        *along(0, 0, 3),
        Reduce(tile(0, 1), "row", range(4), 4),
    ],
}


class Told(HandshakeMesh):
    """A mesh that keeps what it was told."""

    def __init__(self) -> None:
        super().__init__(MESH.rows, MESH.cols, mesh_timing(MESH))
        self.sent: list[tuple[int, int, TileSet | ReductionGoal, int]] = []

    def inject(self, cycle: int, source: int, goal: TileSet | ReductionGoal, flits: int) -> int:
        self.sent.append((cycle, source, goal, flits))
        return super().inject(cycle, source, goal, flits)


def run(program: Program, network: Interconnect) -> None:
    # Packets are not cut: they are longer than a buffer.
    run_at(program, replace(mesh_timing(MESH), fifo_depth=100), network)


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Program:
    return program_of(MESH.rows, MESH.cols, PROGRAMS[request.param])


def circle_of(hang: DeadlockError) -> str:
    """Its packets, of which there are several."""
    assert len(hang.cycle) > 1
    return " waits for ".join([*hang.cycle, "the first one"])


def test_the_model_names_the_circle(program: Program) -> None:
    with pytest.raises(DeadlockError) as hang:
        run(program, Told())
    assert circle_of(hang.value) in str(hang.value)


@pytest.mark.rtl
@pytest.mark.slow  # a build
def test_the_verilog_stands_still_and_the_circle_is_named(program: Program) -> None:
    mesh = Told()
    with pytest.raises(DeadlockError):
        run(program, mesh)
    packets = Packets.of(mesh.sent)
    with pytest.raises(DeadlockError) as modelled:
        HandshakeMesh(MESH.rows, MESH.cols, mesh_timing(MESH)).simulate(packets)
    with pytest.raises(HangError, match="2x4 mesh stands still since cycle ") as seen:
        project_network(MESH).simulate_rtl(packets, nullcontext)
    assert circle_of(modelled.value) in str(seen.value)


@pytest.mark.rtl
@pytest.mark.slow  # a build
def test_models_beside_verilog_end_with_the_circle(program: Program) -> None:
    model = LoopModel(project_spec(MESH), MESH.rows, MESH.cols)
    with (
        RtlInterconnect(model, timing=mesh_timing(MESH)) as mesh,
        pytest.raises(HangError, match="stands still since cycle .*; by its model ") as seen,
    ):
        run(program, mesh)
    assert " waits for " in str(seen.value) and str(seen.value).endswith("the first one")
