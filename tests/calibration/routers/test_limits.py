"""Limits that are found by trying say what more than that comes to; nothing is swallowed."""

from collections.abc import Callable
from typing import Any

import pytest

from calibration.experiment import LawContradictedError
from calibration.routers.experiment import bound
from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.subject import Subject
from cosim.errors import HangError, SimulationError, WrongDataError
from cosim.spec.mesh import load_spec
from tlm.calibrated import REPOSITORY, Parameter
from tlm.interconnect.packets import Packets

_DOCS = REPOSITORY / "docs" / "custom_rtl"
_ASSERTED = SimulationError("failed\n%Error: unit.sv:3: Assertion failed in top.u_unit: no room")


class _Kept:
    """What goes wrong, by its name."""

    room = True

    def __init__(self) -> None:
        self.runs: dict[str, Exception] = {}

    def run(self, label: str, size: object, packets: object, error: Exception, **_: object) -> None:
        self.runs[label] = error


def subject(name: str, fails: Callable[[Packets], Exception | None]) -> tuple[Subject, _Kept]:
    """A mesh of which some packets fail."""

    class Mesh(BlackBoxMesh):
        def simulate(self, packets: Packets, **_: Any) -> Any:
            if (error := fails(packets)) is not None:
                raise error

    kept = _Kept()
    made = Subject(load_spec(_DOCS / name), mesh_type=Mesh)
    made.found = {"multicast": {"loopback": Parameter.exact(1, "")}}
    made.findings = kept  # type: ignore[assignment]  # as far as it is asked
    return made, kept


@pytest.mark.parametrize(
    ("error", "more"),
    [
        (HangError("stands still"), "get stuck"),
        (WrongDataError("one is missing"), "come out wrong"),
        (_ASSERTED, "stop the simulation"),
    ],
)
def test_more_operands_or_flits_than_a_limit(error: Exception, more: str) -> None:
    mesh, kept = subject("mesh.toml", lambda packets: error if len(packets) > 2 else None)
    assert mesh.operand_limit == 2
    assert mesh.limited_by == {"operand_limit": more}
    mesh, _ = subject(
        "mask_mesh/mask_mesh.toml", lambda packets: error if packets.flits.max() > 5 else None
    )
    assert (mesh.multicast_flits, mesh.reduction_flits) == (5, 5)
    assert mesh.limited_by == {"multicast_flits": more, "reduction_flits": more}
    assert bound(5, None, more).unit == f"flits/packet, longer ones {more}"
    assert kept.runs == {}


def test_reductions_that_all_fail_are_a_finding_with_its_cause() -> None:
    mesh, kept = subject("mesh.toml", lambda packets: _ASSERTED)
    with pytest.raises(LawContradictedError, match=r"gets through: assertion: .*no room; are the"):
        _ = mesh.operand_limit
    assert kept.runs == {"a reduction of the fewest operands": _ASSERTED}


def test_a_mesh_in_which_nothing_moves_is_a_finding_before_anything_is_fitted() -> None:
    stuck = HangError("stands still since cycle 3")
    mesh, kept = subject("mesh.toml", lambda packets: stuck)
    mesh.try_neighbours()
    assert kept.runs == {"single flits between neighbours": stuck}
