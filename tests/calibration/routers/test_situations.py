"""What experiments say that they tried, and did not, on meshes with and without locked channels."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from calibration.routers.buffering import Buffering
from calibration.routers.listed import experiments
from calibration.routers.locking import LockedBuffering
from calibration.routers.subject import Subject
from cosim.spec.mesh import MeshSpec
from tlm.interconnect.zero_load import UNIT_CHOICES


def locked(spec: MeshSpec) -> Subject:
    """A mesh that has shown locked channels."""
    subject = Subject(spec)
    vars(subject).update(channel="output", set_up_cycles=3, loopback=True, flits_mix=False)
    return subject


def situations(subject: Subject, name: str) -> set[str]:
    """What the fit and check cases of an experiment are about."""
    (experiment,) = (each for each in experiments(subject) if each.name == name)
    cases: Sequence[Any] = [*experiment.fit_cases(), *experiment.check_cases(quick=False)]
    return {experiment.situation(case) for case in cases}


def test_cases_on_locked_channels_are_about_messages(toy_spec: MeshSpec) -> None:
    subject = locked(toy_spec)
    assert situations(subject, "buffering") == {
        "a message that fills its way to a blocked tile",
        "two messages that fill a way to a blocked tile",
    }
    assert situations(subject, "unicast") == {
        "a message alone",
        "the tail of a message on its way",
        "two messages that cross",
    }
    assert situations(subject, "contention") == {
        "messages of all inputs at one output",
        "a crowd of messages to one tile",
        "bursts of messages from anywhere to anywhere",
        "a rush of messages to two tiles",
    }


@pytest.mark.parametrize("forks", [False, True])
def test_only_what_a_mesh_could_carry_was_not_tried(
    forks: bool, toy_spec: MeshSpec, mesh_spec: MeshSpec
) -> None:
    told = Buffering(Subject(mesh_spec if forks else toy_spec)).untried
    assert ("a multicast to a blocked tile" in told) == forks
    assert "packets of several flits against a blocked tile" in told


def test_messages_of_several_flits_are_tried_on_locked_channels(toy_spec: MeshSpec) -> None:
    assert LockedBuffering(locked(toy_spec)).untried == (
        "messages of one flit against a blocked tile",
        "requests to a blocked tile",
    )


@pytest.mark.parametrize("choice", UNIT_CHOICES)
def test_crowds_of_reductions_go_only_where_units_take_complete_ones(
    choice: str, mesh_spec: MeshSpec
) -> None:
    subject = Subject(mesh_spec)
    subject.unknown = replace(subject.unknown, cut_through=True, unit_choice=choice)
    vars(subject)["operand_limit"] = 5
    assert subject.crosses_reductions == (choice == "complete")
