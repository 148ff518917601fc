"""Figure 9 of WaferLLM by other readings of its text: the document's table, and that none has all.

A reading that changes a prompt's layer is fitted again to the published rows.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.documents import text_of
from tlm.interconnect.transfer_times import credit_cycles
from tlm.interconnect.zero_load import NocTiming
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.gemm import closed_form, kernels, summa_closed_form
from workloads.kernels.gemm.plan import GemmPlan, Moves, Shape, plan_gemm, received
from workloads.kernels.gemm.summa_closed_form import Times
from workloads.machine.place import Place
from workloads.studies.waferllm import cases, fit
from workloads.studies.waferllm.facts import GEMM_SIDES, GEMM_SIZES, GEMMS

Patch = pytest.MonkeyPatch
Figures = dict[str, float]


def fitted(patch: Patch, *held: str) -> Figures:
    """Figure 9 with the figures of a fit beside fields that are held, and the fit's table 2."""
    timed = fit.timed
    patch.setattr(fit, "timed", lambda case, changes=(): timed(case, (*changes, *held)))
    patch.setattr(fit, "_freed", lambda *_: [])  # a rate that is held has no slope
    found = fit.fit()
    fields = zip(fit.FREE, found.parameters, strict=True)
    changes = tuple(figure.setting(parameter.value) for figure, parameter in fields)
    worst = max(abs(row.error_pct) for row in found.rows if row.id.startswith("T2"))
    return ratios((*changes, *held)) | {"table 2": worst}


def cycles(
    kernel: str, size: int, side: int, changes: tuple[str, ...] = (), *, skewed: bool = False
) -> int:
    """Of a square product."""
    name, choices = GEMMS[kernel]
    place = cases._place(side, changes)
    choices = replace(choices, skewed=True) if skewed and kernel != "SUMMA" else choices
    plan = KERNELS[name].planned((size, size, size), place, choices)
    return KERNELS[name].closed_form(plan, place.timing)


def ratios(changes: tuple[str, ...] = (), *, skewed: bool = False, relayed: float = 0.0) -> Figures:
    """Figure 9; ``relayed``: cycles that come to a step of SUMMA, over the side of the grid."""

    def mesh(size: int, side: int) -> float:
        return cycles("MeshGEMM", size, side, changes, skewed=skewed)

    def over(kernel: str, size: int, side: int) -> float:
        other = cycles(kernel, size, side, changes, skewed=skewed)
        return (other + side * relayed * side * (kernel == "SUMMA")) / mesh(size, side)

    return {
        "Cannon, 8K on 360": over("Cannon", 8192, 360),
        "SUMMA, 8K on 360": over("SUMMA", 8192, 360),
        "SUMMA, 8K on 720": over("SUMMA", 8192, 720),
        "SUMMA, 2K on 720": over("SUMMA", 2048, 720),
        "rise": mesh(2048, 720) / mesh(2048, 360),
    }


def lock_steps(patch: Patch, share: float) -> Figures:
    """A lock step of the alignment has a share of the fixed cycles of a step."""

    def plan(shape: Shape, place: Place, moves: Moves = received) -> GemmPlan:
        found = plan_gemm(shape, place, moves)
        hidden = (1 - share) * place.software.step_cycles
        return replace(found, align_cycles=found.align_cycles - round(hidden))

    patch.setattr(kernels, "plan_gemm", plan)
    return fitted(patch)


def without_credits(patch: Patch) -> None:
    """A source need not hear from afar of a buffer that is free."""

    def beside(timing: NocTiming, _: int) -> int:
        return credit_cycles(timing, 0)

    def begin(self: Any, number: int, ends: Times) -> Times:
        if number == self._plan.panels:
            return np.full(len(ends), np.inf)
        known = max(0.0, float(ends.max()) + credit_cycles(self._timing, 0))
        return np.full(len(ends), known + self._timing.launch_cycles)

    patch.setattr(closed_form, "credit_cycles", beside)
    patch.setattr(summa_closed_form, "credit_cycles", beside)
    patch.setattr(summa_closed_form._Panels, "_a_begin", begin)


def relayed() -> Figures:
    """Of 32 paths two matrices have eight in each of two directions; a panel goes 3/4 of a line."""
    return ratios(relayed=16 * 0.75 / 8)


READINGS: dict[str, Callable[[Patch], Figures]] = {
    "the model": lambda _: ratios(),
    "of a moved element half a cycle is hidden": lambda patch: fitted(
        patch, "software.element_cycles=0.5"
    ),
    "an element is a message, as moves have 16 bits": lambda patch: fitted(
        patch, "noc.flit_bytes=2"
    ),
    "a lock step has half of the fixed cycles": lambda patch: lock_steps(patch, 0.5),
    "a lock step has none of them": lambda patch: lock_steps(patch, 0.0),
    "A is skewed beforehand": lambda _: ratios(skewed=True),
    "SUMMA's panels are relayed at every eighth core": lambda _: relayed(),
    "no credits go back to a source": lambda patch: without_credits(patch) or ratios(),
}
POINTS = list(product(GEMM_SIZES.values(), GEMM_SIDES))
#: Within which figures lie if the targets are met, and table 2's errors.
WANTED = {
    "Cannon, 8K on 360": (1.0, np.inf),
    "SUMMA, 8K on 360": (1.0, np.inf),
    "SUMMA, 8K on 720": (1.1, 1.4),
    "SUMMA, 2K on 720": (1.4, np.inf),
    "rise": (0.85, 1.15),
    "table 2": (0.0, 7.0),
}


@pytest.fixture(autouse=True)
def _own_plans() -> Iterator[None]:
    """Plans by one reading are not those of another."""
    for kept in (cases._place, cases._grid):
        kept.cache_clear()
    yield
    for kept in (cases._place, cases._grid):
        kept.cache_clear()


def test_the_document_has_every_reading() -> None:
    assert list(shown()) == list(READINGS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "the model")) for name in READINGS],
)
def test_no_reading_meets_all_targets(name: str, monkeypatch: Patch) -> None:
    found = READINGS[name](monkeypatch)
    assert shown()[name] == [
        *(f"{found[each]:.2f}" for each in list(WANTED)[:-1]),
        f"{found['table 2']:.1f} %" if "table 2" in found else "as above",
    ]
    assert any(not WANTED[each][0] < value <= WANTED[each][1] for each, value in found.items())


@pytest.mark.slow
def test_without_credits_summa_is_first_at_three_points(monkeypatch: Patch) -> None:
    assert [point for point in POINTS if cycles("SUMMA", *point) < cycles("MeshGEMM", *point)] == [
        (8192, 360)
    ]
    without_credits(monkeypatch)
    assert [point for point in POINTS if cycles("SUMMA", *point) < cycles("MeshGEMM", *point)] == [
        (4096, 360),
        (8192, 360),
        (8192, 540),
    ]


def test_figures_of_the_text() -> None:
    text = text_of("waferllm.md")
    mesh, summa = (cycles(kernel, 8192, 360) for kernel in ("MeshGEMM", "SUMMA"))
    step = KERNELS["mesh-gemm"].planned((8192, 8192, 8192), cases._place(360)).step_cycles
    skewed = [cycles("MeshGEMM", 2048, side, skewed=True) / 1000 for side in GEMM_SIDES]
    assert (
        f"SUMMA takes {summa / 1e6:.2f} million cycles, MeshGEMM and Cannon {mesh / 1e6:.2f}"
        in text
    )
    assert f"A product of {step:,} cycles" in text
    assert f"take {-(-(mesh - summa) // 360)} cycles a step more" in text
    assert "takes {:.0f}, {:.0f} and {:.0f} thousand cycles".format(*skewed) in text


def shown() -> dict[str, list[str]]:
    """The document's table, by readings."""
    _, table = text_of("waferllm.md").split("| reading |")
    rows = re.findall(r"^\| (.+) \|$", table.split("\n\n")[0], re.MULTILINE)
    cells = [row.split(" | ") for row in rows if "---" not in row]
    return {name: figures for name, *figures in cells}
