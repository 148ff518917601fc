"""The site: its reference says what the code does, all pages are in it, and no link is lost."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from tests.conftest import Wafertlm
from wafertlm.cli import COMMANDS
from wafertlm.site import build
from wafertlm.site.fields import EVERY_RESULT, RESULTS
from wafertlm.site.reference import command_of, reference_pages, takes

_KERNEL = "--chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8 --level perf"
_RUNS = {
    "noc": (
        "--mesh 4x4 --traffic uniform --rate 0.1 --cycles 200 --level perf --saturation",
        "--mesh 4x4 --collective multicast --group row --source 1,0 --flits 16",
    ),
    "memory": ("--requests 50",),
    "kernel": (f"mesh-gemm {_KERNEL}",),
    "dies": ("--chip flat32-wafer --collective all-reduce --bytes 4096 --level perf",),
    "iteration": ("--model qwen3-1.7b --chip flat32 --decode 4@200",),
    "serve": (
        "--model qwen3-1.7b --chip h100x2 --scheduler chunked --workload sharegpt --rate 8 "
        "--requests 5",
    ),
    "compare": (f"kernel {_KERNEL} --vary kernel=cannon,summa",),
}


def _told(field: str, told: set[str]) -> bool:
    """Whether a field, or the table that it lies in, has its line."""
    return field in told or ("." in field and _told(field.rsplit(".", 1)[0], told))


def _fields(result: dict[str, Any], inside: str = "") -> list[str]:
    found = []
    for name, value in result.items():
        if isinstance(value, dict) and value and inside + name != "options":
            found += _fields(value, f"{inside}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            found += _fields(value[0], f"{inside}{name}[].")
        else:
            found.append(inside + name)
    return found


@pytest.mark.parametrize("command", _RUNS)
def test_fields_of_results_are_told_and_those_that_are_told_are_there(
    command: str, wafertlm: Wafertlm
) -> None:
    results = [
        json.loads(wafertlm(command, *run.split(), "--json").stdout) for run in _RUNS[command]
    ]
    found = {field for result in results for field in _fields(result)}
    told = {*EVERY_RESULT, *RESULTS[command]}
    assert [field for field in sorted(found) if not _told(field, told)] == []
    parts = {".".join(field.split(".")[:n]) for field in found for n in range(1, 5)}
    assert [field for field in told if field not in found | parts] == []


def test_every_command_and_option_is_in_the_reference() -> None:
    page = reference_pages()["commands.md"]
    for name in COMMANDS:
        assert f"\n## {name}\n" in page
        for option in command_of(name).params:
            if isinstance(option, click.Option):
                assert f"`{option.opts[0]}`" in page
    assert "`llama3-8b`" in page


def test_fields_of_files_are_told_with_their_bounds() -> None:
    pages = reference_pages()
    assert "| `hop_cycles` | whole number, > 0" in pages["chips.md"]
    assert '| `channel` | `"none"`, `"output"`, `"receiver"` | `"none"` |' in pages["chips.md"]
    assert "| `layers` | whole number" in pages["models.md"]
    assert "| `payload_parameter` | text |  |" in pages["routers.md"]
    assert takes({"type": "array", "items": {"type": "number", "minimum": 2}}) == (
        "list of number, >= 2"
    )


def test_every_page_has_its_place() -> None:
    known = [*build.pages(), "docs/new.md"]
    placed = [page for some in build.navigation(known).values() for page in some]
    assert sorted([*placed, "README.md"]) == sorted(known)
    missing = {page for some in build.ORDER.values() for page in some} - {*known}
    assert {page for page in missing if not page.startswith("docs/reference/")} <= {
        "docs/explore.md"
    }


@pytest.mark.slow
def test_a_link_that_leads_nowhere_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("_SITE", "_SOURCE", "_CONFIG"):
        monkeypatch.setattr(build, name, tmp_path / name)
    build.main()
    index = Path(capsys.readouterr().out.strip())
    assert index == tmp_path / "_SITE" / "index.html"
    for page in ("docs/reference/commands.html", "docs/compare.html"):
        assert (index.parent / page).is_file()
    pages = reference_pages() | {"commands.md": "# Commands\n\n[lost](lost.md)\n"}
    monkeypatch.setattr(build, "reference_pages", lambda: pages)
    with pytest.raises(SystemExit, match="1"):
        build.main()
    assert "lost.md" in capsys.readouterr().err
