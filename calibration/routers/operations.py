"""Reductions other than the one whose cycles are measured: what they do with data, on RTL."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibration.routers.scenes import Scene, Send, span
from calibration.routers.subject import Subject
from tlm.interconnect.packets import PacketKind

_SCENES, _LONGEST_FLITS = 6, 8
_IN_WORDS = {
    "sum": "sums",
    "maximum": "maxima",
    "and": "ands",
    "select": "selections",
    "collect": "collections",
}


def untimed(subject: Subject) -> Sequence[str]:
    """What is not tried of the others: their cycles."""
    timed, *others = (_IN_WORDS[name] for name in subject.spec.reductions())
    return (f"cycles of {', '.join(others)}: {timed} alone are timed",) if others else ()


def check_data(subject: Subject, seed: int) -> None:
    """Hold that the others combine data as specified; what goes wrong is a finding.

    Raises:
        HangError, SimulationError: if findings are not kept.
    """
    for name in subject.spec.reductions()[1:]:
        subject.measure(_scenes(subject, PacketKind[name.upper()], seed))


def _scenes(subject: Subject, kind: PacketKind, seed: int) -> list[Scene]:
    """Random reductions, one after the other."""
    rng, size = np.random.default_rng(seed), subject.fit
    longest = min(subject.reduction_flits, _LONGEST_FLITS)
    scenes = []
    for number in range(_SCENES):
        goal = replace(subject.random_reduction(size, rng), kind=kind)
        flits = int(rng.integers(1, longest + 1))
        sends: list[Send] = [(0, node, goal, flits) for node in goal.operands.nodes(size[1])]
        label = (
            f"{size[0]}x{size[1]}: {kind.name.lower()} {number}, {flits} flits from rows "
            f"{span(goal.operands.rows)}, columns {span(goal.operands.cols)} to {goal.root}"
        )
        scenes.append(Scene(size, label, tuple(sends), whole=True))
    return scenes
