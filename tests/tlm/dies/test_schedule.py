"""Kernels and collectives in turns and overlapped: timelines written down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.dies.schedule import DiePhase, in_turns, overlapped
from tlm.errors import InputError

phases = st.lists(
    st.builds(DiePhase, st.tuples(st.integers(1, 50), st.integers(1, 50)), st.integers(0, 60)),
    min_size=1,
    max_size=6,
)


def test_in_turns_the_slowest_die_counts_and_then_the_links() -> None:
    run = in_turns([DiePhase((10, 30), 5), DiePhase((20,), 7)])
    assert (run.ticks, run.kernel_ticks, run.collective_ticks) == (62, 50, 12)


def test_two_micro_batches_hide_the_shorter_side() -> None:
    """Kernels at 0, 10, 20, 30, collectives of 6 at 10, 20, 30, 40: all hidden but the last."""
    assert overlapped([DiePhase((10,), 6), DiePhase((10,), 6)], 2).ticks == 46
    # Links the bottleneck: kernels at 0 and 6, collectives at 6, 16, 26, 36.
    assert overlapped([DiePhase((6,), 10), DiePhase((6,), 10)], 2).ticks == 46


def test_dies_that_differ_wait_for_each_other_only_at_collectives() -> None:
    """Die 0: 0-10, 10-20; die 1: 0-30, 30-60; the first collective at 30."""
    assert overlapped([DiePhase((10, 30), 5)], 2).ticks == 65


@given(phases)
def test_one_micro_batch_overlaps_nothing(given_phases: list[DiePhase]) -> None:
    assert overlapped(given_phases, 1).ticks == in_turns(given_phases).ticks


@given(phases, st.integers(1, 4))
def test_overlap_is_between_the_busier_side_and_no_overlap(
    given_phases: list[DiePhase], micro_batches: int
) -> None:
    run = overlapped(given_phases, micro_batches)
    busiest = max(
        sum(phase.collective_ticks for phase in given_phases),
        *(sum(phase.kernel_ticks[die] for phase in given_phases) for die in (0, 1)),
    )
    assert busiest * micro_batches <= run.ticks <= run.kernel_ticks + run.collective_ticks


def test_no_micro_batch_is_refused() -> None:
    with pytest.raises(InputError, match="--micro-batches: found 0; allowed: 1 or more"):
        overlapped([DiePhase((1,), 1)], 0)
