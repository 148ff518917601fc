"""Scenes of which some fail: which ones, after how many runs, and what the others give."""

import math
from collections.abc import Sequence

import pytest

from calibration.experiment import NothingMeasuredError
from calibration.routers.isolate import play_apart
from calibration.routers.scenes import Scene, closest, play_model
from calibration.solve import solve_exactly
from cosim.errors import HangError, SimulationError
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets, TileSet

SIZE = (3, 4)
TIMING = rtl_timing()


def scene(number: int) -> Scene:
    """One packet of so many flits."""
    return Scene(SIZE, f"scene {number}", ((0, 0, TileSet.tile(0, 3), number + 1),))


class Told:
    def __init__(self, most: int = 8) -> None:
        self.most = most
        self.seen: list[tuple[int, str, str]] = []
        self.left: list[int] = []

    @property
    def room(self) -> bool:
        return len(self.seen) < self.most

    def failed(self, before: Sequence[Scene], scene: Scene, error: Exception) -> None:
        self.seen.append((len(before), scene.label, str(error)))

    def left_out(self, count: int) -> None:
        self.left.append(count)


class Mesh:
    """The model, but for packets of some lengths, with which it stands still."""

    def __init__(self, *bad_flits: int) -> None:
        self.bad, self.runs = bad_flits, 0

    def simulate(self, size: tuple[int, int], packets: Packets) -> Deliveries:
        self.runs += 1
        bad = [flits for flits in packets.flits.tolist() if flits in self.bad]
        if bad:
            raise HangError(f"{bad[0]} flits")
        return HandshakeMesh(*size, TIMING, reductions=False).simulate(packets)


def test_scenes_that_fail_are_told_and_the_others_have_their_figures() -> None:
    scenes, told, mesh = [scene(i) for i in range(40)], Told(), Mesh(8, 31)
    figures = play_apart(scenes, mesh.simulate, (HangError,), told)
    assert told.seen == [(7, "scene 7", "8 flits"), (29, "scene 30", "31 flits")]
    assert [i for i, figure in enumerate(figures) if math.isnan(figure)] == [7, 30]
    others = [each for i, each in enumerate(scenes) if i not in (7, 30)]
    assert [f for f in figures if not math.isnan(f)] == play_model(others, TIMING)
    assert mesh.runs <= 3 + 2 * math.ceil(math.log2(40))
    assert told.left == []


def test_where_too_many_fail_those_before_are_played_and_the_rest_left_out() -> None:
    scenes, told = [scene(i) for i in range(12)], Told(most=2)
    figures = play_apart(scenes, Mesh(4, 6, 9).simulate, (HangError,), told)
    assert [label for _, label, _ in told.seen] == ["scene 3", "scene 5"]
    there = [i for i, figure in enumerate(figures) if not math.isnan(figure)]
    assert there == [0, 1, 2, 4]
    assert told.left == [6]


def test_what_is_no_failure_of_a_scene_is_raised() -> None:
    with pytest.raises(HangError):
        play_apart([scene(0)], Mesh(1).simulate, (SimulationError,), Told())


def test_a_form_is_chosen_by_the_scenes_that_have_figures() -> None:
    scenes = [scene(i) for i in range(3)]
    values = play_model([scenes[0], scenes[2]], TIMING)
    assert closest([TIMING], scenes, [values[0], math.nan, values[1]]) == ([TIMING], 0.0)
    with pytest.raises(NothingMeasuredError, match="no figure of 'scene 0' and what follows it"):
        closest([TIMING], scenes, [math.nan] * 3)


def test_a_law_is_solved_by_the_rows_that_have_figures() -> None:
    rows = [[1, 1], [1, 2], [1, 3]]
    assert solve_exactly(rows, [5.0, math.nan, 9.0]) == [3, 2]
    for values in ([5.0, math.nan, math.nan], [math.nan] * 3):
        with pytest.raises(NothingMeasuredError, match="too few figures are left"):
            solve_exactly(rows, values)
