"""Modelled tiles beside the Verilated mesh: what happens when is what happens beside its model."""

from functools import partial
from itertools import count

import numpy as np
import pytest

from calibration.routers.rtl_mesh import RtlMesh
from cosim.errors import HangError
from cosim.network.model import LoopModel
from cosim.network.tiled import TiledRtlInterconnect
from cosim.spec.project import mesh_timing, project_spec
from tlm.errors import InputError
from tlm.interconnect.base import Event, EventKind
from tlm.interconnect.packets import ReductionGoal, TileSet
from tlm.tiles.banked import Rows
from tlm.tiles.interconnect import TiledInterconnect
from tlm.tiles.jobs import VectorJob
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.timing import FREE, StreamTiming, TileTiming

pytestmark = pytest.mark.rtl

MESH = RtlMesh(4, 4, 4)
MODEL = LoopModel(project_spec(MESH), 4, 4)
TILE = TileTiming(
    array_size=8, banks=4, streams=StreamTiming(lead_cycles=3, places=4, pipeline_cycles=3),
    queues=FREE,
)  # fmt: skip
ALL = TileSet(range(4), range(4))
FOREVER = 2**62


class Play:
    """Tiles that compute and send as soon as they may, what a generator of numbers says."""

    def __init__(self, mesh: TiledInterconnect, seed: int) -> None:
        self.events: list[Event] = []
        self._mesh = mesh
        self._numbers = np.random.default_rng(seed)

    def run(self, turns: int) -> list[Event]:
        """Several rounds, each when the one before has ended, some long after."""
        now = 0
        for _ in range(turns):
            for node in self._numbers.permutation(16)[: self._numbers.integers(1, 16)].tolist():
                self._mesh.begin(now, node, self._job())
            if self._numbers.random() < 0.5:
                root, words = int(self._numbers.integers(16)), self._words(4)
                for node in range(16):
                    self._send(now, node, ReductionGoal(ALL, root), words)
            else:
                for node in self._numbers.permutation(16)[:9].tolist():
                    self._send(now, node, *self._message())
            while not self._mesh.idle:
                self.events += self._mesh.advance(FOREVER)
            now = self.events[-1].cycle + 1 + int(self._numbers.choice([0, 1, 40, 3000]))
        return self.events

    def _job(self) -> VectorJob:
        words, to = self._words(200), int(self._numbers.integers(8))
        return VectorJob("scale", words, 1, 0, words, to, words, words)

    def _message(self) -> tuple[TileSet, int]:
        if self._numbers.random() < 0.4:
            return TileSet(range(4), range(int(self._numbers.integers(1, 4)))), self._words(4)
        return TileSet.tile(*self._numbers.integers(4, size=2).tolist()), self._words(60)

    def _words(self, most: int) -> int:
        return int(self._numbers.integers(1, most + 1))

    def _send(self, cycle: int, node: int, goal: TileSet | ReductionGoal, words: int) -> None:
        source, target = (int(place) for place in self._numbers.integers(8, size=2))
        self._mesh.begin_reading(cycle, node, Rows(source, 1, words, 0), Rows(target, 1, words, 0))
        self._mesh.inject(cycle, node, goal, words)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_happens_is_what_happens_beside_the_model(seed: int) -> None:
    modelled = Play(TiledMesh(4, 4, mesh_timing(MESH), TILE), seed).run(30)
    with TiledRtlInterconnect(MODEL, TILE) as mesh:
        assert Play(mesh, seed).run(30) == modelled
        assert mesh.idle
        # Rounds lie far apart, and jobs outlast what they send: time in which the mesh rests.
        assert mesh.clocked_cycles < modelled[-1].cycle / 2
    assert {event.kind for event in modelled} == set(EventKind) - {
        EventKind.MATRIX,
        EventKind.TAKEN,
    }


def played_with_an_edge(mesh: TiledInterconnect, seed: int) -> list[object]:
    """Tiles and nodes below them send to each other; these take what a generator lets them."""
    numbers = np.random.default_rng(seed)
    seen: list[object] = []
    reading: set[int] = set()
    for cycle in range(1500):
        if cycle % 40 == 0 and cycle < 1000:
            for node in set(numbers.permutation(16)[:8].tolist()) - reading:
                words = Rows(int(numbers.integers(8)), 1, int(numbers.integers(1, 9)), 0)
                below = node >= 12 and numbers.random() < 0.5
                row = int(numbers.integers(3)) if below else 3
                if node >= 12:
                    mesh.begin_answer(cycle, node, words)
                else:
                    loads = row == 3 and numbers.random() < 0.5
                    mesh.begin_reading(cycle, node, words, None if loads else words)
                    reading.add(node)
                mesh.inject(cycle, node, TileSet.tile(row, int(numbers.integers(4))), words.words)
        for node in range(12, 16):
            if cycle >= 1000 or numbers.random() < 0.1:
                mesh.let_take(node, int(numbers.integers(5)) + (cycle >= 1000))
            mesh.let_load(node, cycle >= 1000 or bool(numbers.random() < 0.5))
            seen.append(mesh.sends_last(node))
        happened = mesh.advance(cycle + 1)
        reading -= {event.node for event in happened if event.kind is EventKind.READ}
        seen += happened
    assert mesh.idle
    return seen


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nodes_without_tiles_hold_flits_back_as_beside_the_model(seed: int) -> None:
    modelled = played_with_an_edge(TiledMesh(3, 4, mesh_timing(MESH), TILE, edge_rows=1), seed)
    with TiledRtlInterconnect(MODEL, TILE, edge_rows=1) as mesh:
        assert played_with_an_edge(mesh, seed) == modelled
    kinds = {event.kind for event in modelled if isinstance(event, Event)}
    assert {EventKind.TAKEN, EventKind.EJECTED} <= kinds
    assert {True, False} <= {said for said in modelled if isinstance(said, bool)}


def test_banks_slow_flits_down() -> None:
    """A transfer by itself, and beside passes at its bank, which serves three in turn."""
    column = Rows(0, 80, 1, TILE.banks)
    ends = []
    for busy in (False, True):
        with TiledRtlInterconnect(MODEL, TILE) as mesh:
            for node in (0, 3) if busy else ():
                mesh.begin(0, node, VectorJob("scale", 1, 200, 0, TILE.banks, 0, TILE.banks, 1))
            mesh.begin_reading(0, 0, column, column)
            packet = mesh.inject(0, 0, TileSet.tile(0, 3), 80)
            seen = iter(partial(mesh.advance, FOREVER), [])
            events = [event for events in seen for event in events]
            assert mesh.idle
            ends.append(next(e.cycle for e in events if e.packet == packet and e.node == 3))
    # The first flit leaves in cycle 3, and comes out three links and a router later.
    assert ends[0] == 3 + 4 + 79
    assert ends[1] >= 3 * 80


def test_transfers_that_wait_for_each_other_for_ever_are_told() -> None:
    both = TileSet(range(1), range(2))
    with TiledRtlInterconnect(MODEL, TILE) as mesh:
        for cycle, roots in ((0, (0, 1)), (20, (1, 0))):
            for node, root in enumerate(roots):
                mesh.begin_reading(cycle, node, Rows(0, 1, 4, 0), Rows(0, 1, 4, 0))
                mesh.inject(cycle, node, ReductionGoal(both, root), 4)
            while mesh.advance(20):
                pass
        with pytest.raises(HangError, match="rtl-mesh 4x4 stands still since cycle .* are due"):
            for _ in count():
                mesh.advance(FOREVER)


def test_words_asked_for_at_once_are_refused() -> None:
    early = TileTiming(8, 4, StreamTiming(2, 4, 3), FREE)
    with pytest.raises(InputError, match="^lead_cycles: found 2; allowed in step with a mesh: 3"):
        TiledRtlInterconnect(MODEL, early)


def test_rows_without_tiles_that_are_all_there_are_refused() -> None:
    with pytest.raises(InputError, match="^edge_rows: found 4, below 0 of tiles; allowed: 0 or mo"):
        TiledRtlInterconnect(MODEL, TILE, edge_rows=4)
