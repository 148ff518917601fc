"""The folder tree is the architecture: who may import whom, and what the documents point at."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "tlm": set(),
    "workloads": {"tlm"},
    "cosim": {"tlm"},
    "calibration": {"tlm", "cosim", "workloads"},
    "verification": {"tlm", "cosim", "calibration"},
    "wafertlm": {"tlm", "workloads", "cosim", "calibration"},
}
#: What of the product measures: the campaign, the part of it that the demo repeats, and the replay
#: of a measured case. What runs for a user otherwise never goes through an experiment or a bench.
MEASURES = {
    "wafertlm.api.calibration_run",
    "wafertlm.commands.calibrate",
    "wafertlm.compare.routers",
    "wafertlm.demo",
    "wafertlm.finding",
    "wafertlm.replay",
    "wafertlm.watched",
}
#: What else reads stored results, and all that it imports for that.
READS_STORED = {
    "wafertlm.commands.doctor": {"calibration.campaign", "calibration.store"},
    "wafertlm.custom": {"calibration.routers.stored"},
    "wafertlm.report.page": {"calibration"},
    "wafertlm.report.stored": {"calibration.routers.stored"},
}


def files_of(package: str) -> dict[str, Path]:
    """Files of a package by their dotted names."""
    found = {}
    for path in (ROOT / package).rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


FILES = {name: path for package in ALLOWED for name, path in files_of(package).items()}


def imported(path: Path) -> set[str]:
    """Dotted names of what a file imports, also inside functions and for type checks alone."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: a relative import"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in FILES else node.module for name in inner}
    return names


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_point_one_way(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        for name in imported(path):
            top = name.split(".")[0]
            if top in ALLOWED and top != package:
                assert top in ALLOWED[package], f"{path} imports {name}"
                if (package, top) == ("calibration", "workloads"):
                    kernels = name.startswith(("workloads.kernels", "workloads.machine"))
                    parts = name.startswith("workloads.kernels.parts.")
                    levels = path.parent.name == "levels"
                    assert kernels and (parts or levels), f"{path} imports {name}"


def test_the_product_measures_and_reads_what_was_measured_and_no_more() -> None:
    found = {}
    for name, path in files_of("wafertlm").items():
        modules = {each for each in imported(path) if each.split(".")[0] == "calibration"}
        if modules and name not in MEASURES:
            found[name] = modules
    assert found == READS_STORED


def test_no_two_classes_of_the_models_have_one_name() -> None:
    files = defaultdict(list)
    for path in (ROOT / "tlm").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(path.relative_to(ROOT).as_posix())
    assert not {name: where for name, where in files.items() if len(where) > 1}


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """Names of which each leads to the next, and the last to the first; empty if there are none."""
    # What leads nowhere is in no circle; from anything else there is always a way on.
    while leaves := {name for name, goals in arrows.items() if not goals & arrows.keys()}:
        arrows = {name: goals for name, goals in arrows.items() if name not in leaves}
    way = sorted(arrows)[:1]
    while way and (name := min(arrows[way[-1]] & arrows.keys())) not in way:
        way.append(name)
    return way[way.index(name) :] if way else []


@pytest.mark.parametrize("package", ALLOWED)
def test_no_file_imports_itself_by_way_of_others(package: str) -> None:
    names = files_of(package).keys()
    assert circle({name: imported(FILES[name]) & names for name in names}) == []


@pytest.mark.parametrize("house", ["tlm", "workloads", "workloads.kernels", "workloads.serving"])
def test_no_folder_imports_itself_by_way_of_others(house: str) -> None:
    """Folders of a house; files that lie in none of them are not among them."""
    top, depth = house.split(".")[0], len(house.split("."))

    def room(name: str) -> str | None:
        folder = ROOT.joinpath(*name.split(".")[: depth + 1])
        return folder.name if name.startswith(f"{house}.") and folder.is_dir() else None

    arrows: dict[str, set[str]] = defaultdict(set)
    for name, path in files_of(top).items():
        here = room(name)
        if here is not None:
            arrows[here] |= {goal for each in imported(path) if (goal := room(each))} - {here}
    assert len(arrows) > 2
    assert circle(arrows) == []


def test_circles_are_found() -> None:
    assert circle({"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": set()}) == ["b", "c"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize(
    "document",
    [
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.md", "docs/**/*.md", "rtl/**/*.md")
        for path in ROOT.glob(pattern)
    ],
)
def test_links_point_at_files(document: str) -> None:
    path = ROOT / document
    text = path.read_text()
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert [target for target in targets if not (path.parent / target).exists()] == []
    named = re.findall(r"`((?:tlm|cosim|calibration|workloads|wafertlm|tests|rtl)/[\w/.]+)`", text)
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []
