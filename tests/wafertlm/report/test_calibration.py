"""The report's calibrations: errors, what was tried, cases that run again, custom meshes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from calibration.campaign import EXPERIMENTS
from tests.wafertlm.report.pages import (
    Page,
    all_off,
    custom_mesh,
    page_of,
    parsed,
    resealed,
    shown_by,
    unicast_alone,
)
from tlm.calibrated import stored_result
from tlm.comparisons import ChipComparison, LevelComparison, TileComparison
from tlm.errors import InputError
from tlm.memory.dram.streams import StreamComparison
from tlm.sealed import sealed, unsealed
from tlm.tables import Table
from wafertlm.report.campaigns import UNITS
from wafertlm.report.page import CALIBRATION_FOLDER


def test_the_error_table_and_the_figures_are_of_the_stored_checks(tmp_path: Path) -> None:
    stored = json.loads((CALIBRATION_FOLDER / "unicast.json").read_text())
    small = sum(point["case"].startswith("4x4: ") for point in stored["check"])
    large, fits = len(stored["check"]) - small, len(stored["fit"])
    calibrations = unicast_alone(tmp_path, {2: -1.0, 7: 2.5, small: 1.0, small + 1: 1.0})
    page = page_of(tmp_path / "results", calibrations)
    mean = f"{4.5 / 120 + 1 / 120:.3g}"
    case = stored["check"][7]["case"]
    row = f"unicast {stored['subject']} {fits} {small + large} {mean} 2.5 {case}"
    text = shown_by(page)
    assert row in text
    assert "0 of 1 experiments are exact over 120 cases" in text
    assert "hop_cycles" in text
    assert "packets of more than 64 flits 0 0 – not tried" in text
    # A panel a mesh.
    for mesh, exact in (("4x4", f"{small - 2} of {small}"), ("8x8", f"{large - 2} of {large}")):
        assert f">{mesh}: {exact} exact</text>" in page


def test_an_experiment_without_errors_says_so(tmp_path: Path) -> None:
    text = shown_by(page_of(tmp_path / "results"))
    assert "1 of 1 experiments are exact over 120 cases that no fit has seen." in text
    assert "Exact in every case: unicast. A case on RTL again, with a wave:" in text
    assert re.search(r"zero-load unicast latency 6 120 0 0", text)


def test_the_worst_case_is_replayed_by_a_command_that_exists(tmp_path: Path, wafertlm: Any) -> None:
    page = page_of(tmp_path / "results", unicast_alone(tmp_path, {2: -1.0, 7: 2.5}))
    (line,) = [text for text in Page(page).texts if text.startswith("wafertlm replay")]
    assert line == "wafertlm replay unicast --case 7 --wave unicast.vcd"
    parsed(line)
    cases = json.loads(wafertlm("replay", "unicast", "--list", "--json").stdout)["cases"]
    assert cases[7] == f"7: {stored_result('unicast').check[7].case}"


def test_axes_say_what_an_experiment_counts(results: Path) -> None:
    calibrations = all_off(results.parent)
    page = page_of(results, calibrations)
    assert set(UNITS) <= {experiment.name for experiment in EXPERIMENTS}
    figures = re.findall(r"<h3>(\S+) <small>.*?(<svg.*?</svg>)", page, re.DOTALL)
    assert sorted(name for name, _ in figures) == sorted(one.name for one in EXPERIMENTS)
    for name, figure in figures:
        unit = UNITS.get(name, "cycles")
        assert f">RTL ({unit})</text>" in figure
        assert f">model ({unit})</text>" in figure


def test_a_custom_mesh_is_shown_beside_the_projects(results: Path) -> None:
    spec_file = custom_mesh(results.parent)
    page = page_of(results, spec_file=spec_file)
    text = shown_by(page)
    assert "Mesh mask-mesh against RTL" in text
    assert "Not represented: an arbiter that draws lots." in text
    custom = [t for t in Page(page).texts if t.startswith("wafertlm replay") and "--rtl" in t]
    assert custom == [f"wafertlm replay unicast --rtl '{spec_file}' --case 0 --wave unicast.vcd"]
    parsed(custom[0])


def test_a_custom_mesh_is_reported_without_any_stored_run(
    tmp_path: Path, wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec_file = custom_mesh(tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = wafertlm("report", "--rtl", spec_file)
    assert ran.status == 0
    assert "Mesh mask-mesh against RTL" in (tmp_path / "results" / "report.html").read_text()
    # A folder that is named has to be there.
    ran = wafertlm("report", "--rtl", spec_file, "--results", "result")
    assert (ran.status, "--results: no folder 'result'" in ran.stderr) == (2, True)


def test_calibrations_are_reported_where_nothing_is_stored(
    tmp_path: Path, wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = wafertlm("report")
    assert ran.status == 0
    assert "Models against RTL" in Path("results/report.html").read_text()


def test_a_custom_mesh_must_be_calibrated(results: Path, wafertlm: Any) -> None:
    spec_file = Path(custom_mesh(results.parent))
    source = spec_file.parent / "mask_adder.sv"
    source.write_text(source.read_text() + "\n")
    ran = wafertlm("report", "--results", results, "--rtl", spec_file)
    assert ran.status == 2
    assert "calibration of 'mask-mesh' is stale: mask_adder.sv changed" in ran.stderr


def test_a_stale_calibration_is_told_first(tmp_path: Path) -> None:
    calibrations = unicast_alone(tmp_path, {})
    assert "Stale" not in page_of(tmp_path / "results", calibrations)
    stored = json.loads((calibrations / "unicast.json").read_text())
    stored["sources"] = dict.fromkeys(stored["sources"], "0")
    (calibrations / "unicast.json").write_text(resealed(stored))
    text = shown_by(page_of(tmp_path / "results", calibrations))
    assert text.index("Stale calibration: unicast. Sources changed") < text.index(
        "Models against RTL"
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("levels", LevelComparison),
        ("tiles", TileComparison),
        ("chips", ChipComparison),
        ("streams", StreamComparison),
    ],
)
def test_each_stale_comparison_is_told(tmp_path: Path, name: str, kind: type[Table]) -> None:
    calibrations = unicast_alone(tmp_path, {})
    file = f"{name}.json"
    stored = unsealed((CALIBRATION_FOLDER.parent / file).read_text(), kind)
    changed = stored.model_copy(update={"sources": {"tlm/errors.py": "0"}})
    (calibrations.parent / file).write_text(sealed(changed))
    assert f"Stale calibration: {name}. Sources" in shown_by(page_of(tmp_path / "r", calibrations))


@pytest.mark.parametrize(
    ("change", "fault"),
    [({"check": []}, "check: found no case"), ({"rtl": 0}, "check.0.rtl: .*greater than 0")],
)
def test_a_calibration_that_says_nothing_is_named(
    tmp_path: Path, change: dict[str, Any], fault: str
) -> None:
    calibrations = unicast_alone(tmp_path, {})
    stored = json.loads((calibrations / "unicast.json").read_text())
    if "check" in change:
        text = resealed(stored | change)
    else:
        stored["check"][0] |= change
        text = json.dumps(stored)
    (calibrations / "unicast.json").write_text(text)
    with pytest.raises(InputError, match=f"unicast.json: {fault}"):
        page_of(tmp_path / "results", calibrations)
