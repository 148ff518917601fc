"""Kernels on the dies of a wafer and the collectives between them, in turns or overlapped.

In turns, all dies run a kernel, wait for each other, and only then is data moved between dies,
for which again all wait. Overlapped, the work is cut into micro-batches: while the data of one are
on the links, the dies run the kernels of another. A die runs one kernel at a time, and the links
carry one collective at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tlm.errors import hold_least


@dataclass(frozen=True, slots=True)
class DiePhase:
    """A kernel on every die, and the collective that follows.

    Attributes:
        kernel_ticks: Of each die, or of each group of dies that differ.
        collective_ticks: Of the collective; 0 without one.
    """

    kernel_ticks: tuple[int, ...]
    collective_ticks: int


@dataclass(frozen=True, slots=True)
class WaferRun:
    """How long phases take: in all, and what of it the links and the dies are used."""

    ticks: int
    kernel_ticks: int
    collective_ticks: int


def in_turns(phases: Sequence[DiePhase]) -> WaferRun:
    """Barriers before and after every collective."""
    kernels = sum(max(phase.kernel_ticks) for phase in phases)
    collectives = sum(phase.collective_ticks for phase in phases)
    return WaferRun(kernels + collectives, kernels, collectives)


def overlapped(phases: Sequence[DiePhase], micro_batches: int) -> WaferRun:
    """Micro-batches take turns; ``phases`` are those of one of them.

    A micro-batch's collective starts when all dies have run its kernel and the links are free; its
    next kernel starts on a die when the collective has ended and the die is free.

    Raises:
        InputError: for less than one micro-batch.
    """
    hold_least("--micro-batches", micro_batches, 1)
    dies = [0] * max((len(phase.kernel_ticks) for phase in phases), default=1)
    links = 0
    ready = [0] * micro_batches
    for phase in phases:
        for batch in range(micro_batches):
            kernels = phase.kernel_ticks
            for die, ticks in enumerate(kernels if len(kernels) > 1 else kernels * len(dies)):
                dies[die] = max(dies[die], ready[batch]) + ticks
            finished = max(dies)
            if phase.collective_ticks:
                links = max(links, finished) + phase.collective_ticks
                finished = links
            ready[batch] = finished
    once = in_turns(phases)
    return WaferRun(
        max(ready), once.kernel_ticks * micro_batches, once.collective_ticks * micro_batches
    )
