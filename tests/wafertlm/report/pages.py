"""Pages from stored results, and what they show."""

import json
import re
import shlex
import shutil
from dataclasses import asdict
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from calibration.routers.stored import CustomCalibration, calibration_file
from cosim.spec.mesh import load_spec
from tlm.calibrated import REPOSITORY, CalibrationResult, source_hashes, stored_result
from tlm.interconnect.calibration import rtl_timing
from tlm.sealed import sealed
from wafertlm.report.page import CALIBRATION_FOLDER, write_report

_PROVENANCE = {
    "version": "0.1.0",
    "config_hash": "c0ffee",
    "rtl_hash": None,
    "calibration": None,
    "seed": 5,
}
_TIMES = {"mean": 1.25, "p50": 1.0, "p90": 2.0, "p99": 3.0}


def kernel_run(**changes: Any) -> dict[str, Any]:
    """A stored result of `wafertlm kernel`."""
    options = {"kernel": "summa", "chip": "wse2", "grid": "4x6", "shape": "64,64,64"}
    return {
        "command": "kernel",
        "options": {**options, "dtype": "fp16", "level": "lt"},
        "cycles": 2000,
        "seconds": 2e-6,
        "utilization": 0.4321,
        "breakdown_cycles": {"compute": 1500, "communication": 400, "memory": 0, "overhead": 100},
        "error": {"level_pct": 1.5, "profile_pct": None},
        "provenance": _PROVENANCE,
    } | changes


def serve_run(**changes: Any) -> dict[str, Any]:
    """A stored result of `wafertlm serve`."""
    return {
        "command": "serve",
        "options": {"model": "llama3-8b", "chip": "flat32", "scheduler": "chunked"},
        **dict.fromkeys(("ttft_s", "tbt_ms", "e2e_s", "queue_s"), _TIMES),
        "throughput_tok_s": 1234.5,
        "requests": 3,
        "completed": 3,
        "error": {"level_pct": None, "profile_pct": None},
        "provenance": _PROVENANCE,
    } | changes


def comparison_run(**changes: Any) -> dict[str, Any]:
    """A stored result of `wafertlm compare`."""
    change = {"variant": 1, "values": {"fifo-depth": "8"}, "from": 4.0, "to": 5.0}
    known = {"low_pct": 20.0, "high_pct": 31.0, "significant": True}
    unknown = dict.fromkeys(("low_pct", "high_pct", "significant"))
    return {
        "command": "compare",
        "options": {"command": "noc", "vary": [], "options": {"mesh": "8x8", "rate": 0.3}},
        "variants": [
            {"values": {"fifo-depth": depth}, "result": {"command": "noc"}} for depth in "48"
        ],
        "changes": [
            change | known | {"metric": "saturation", "change_pct": 25.0},
            change | unknown | {"metric": "latency_cycles.mean", "change_pct": -7.0},
        ],
        "gates": [
            {
                "rtl": "deep.toml",
                "router": {"cells": 12345, "longest_path_cells": 21, "toggles": None},
                "chip": {"cells": 790080},
            }
        ],
        "provenance": _PROVENANCE,
    } | changes


def exploration_run(**changes: Any) -> dict[str, Any]:
    """A stored result of `wafertlm explore`, of two objectives."""

    def trial(number: int, depth: int, ttft: float, cells: float) -> dict[str, Any]:
        objectives = {"ttft_s.mean": ttft, "gates.router.cells": cells}
        chosen = {"trial": number, "parameters": {"set:noc.buffer_flits": depth}}
        return chosen | {"options": {}, "objectives": objectives, "figures": objectives}

    rows = [trial(0, 2, 0.9, 5000.0), trial(1, 8, 0.4, 20000.0), trial(2, 4, 0.95, 9000.0)]
    goals = {"ttft_s.mean": "minimize", "gates.router.cells": "minimize"}
    return {
        "command": "explore",
        "options": {"command": "serve", "objectives": goals},
        "trials": 4,
        "failed": 1,
        "pareto": rows[:2],
        "rows": [row | {"state": "complete"} for row in rows],
        "provenance": _PROVENANCE,
    } | changes


def iteration_run() -> dict[str, Any]:
    """A stored result of `wafertlm iteration`."""
    kernel = {"kernel": "stream-gemm", "shape": "8,8,8", "level_pct": 2.0}
    return {
        "command": "iteration",
        "options": {"model": "m", "chip": "c", "prefill": ["512"], "decode": None, "level": "perf"},
        "kernels": [
            kernel
            | {"operator": "qkv", "count": 2, "cycles": 100, "breakdown_cycles": {"memory": 1}},
            kernel
            | {"operator": "up", "count": 8, "cycles": 100, "breakdown_cycles": {"compute": 1}},
        ],
        "cycles": 1000,
        "seconds": 1e-3,
        "seconds_low": 0.9e-3,
        "seconds_high": 1.2e-3,
        "error": {"level_pct": 2.0, "profile_pct": None},
        "provenance": _PROVENANCE,
    }


def study_run() -> dict[str, Any]:
    """A stored result of `wafertlm study`."""
    row = {"id": "T1/a", "paper": 2.0, "model": 2.2, "error_pct": 10.0, "fit": False, "unit": "ms"}
    predicted = {"rows": 1, "mean_abs_error_pct": 10.0, "max_abs_error_pct": 10.0}
    return {
        "command": "study",
        "options": {"name": "waferllm"},
        "rows": [row, row | {"id": "T1/b", "fit": True}, row | {"id": "T1/c", "paper": None}],
        "summary": {"predicted": predicted | {"worst_row": "T1/a"}},
        "provenance": _PROVENANCE,
    }


def page_of(folder: Path, calibrations: Path | None = None, spec_file: str | None = None) -> str:
    """The page's text; without calibrations it has one without errors."""
    out = folder / "out" / "page.html"
    write_report(folder, out, calibrations or unicast_alone(folder.parent, {}), spec_file)
    return out.read_text(encoding="utf-8")


def resealed(fields: dict[str, Any]) -> str:
    """A calibration of these fields, as if it had been measured so."""
    fields.pop("digest", None)
    return sealed(CalibrationResult.model_validate_json(json.dumps(fields)))


def unicast_alone(folder: Path, errors_pct: dict[int, float]) -> Path:
    """A folder of calibrations with one experiment, whose check points have these errors."""
    calibrations = folder / "calibration" / "results"
    calibrations.mkdir(parents=True, exist_ok=True)
    stored = json.loads((CALIBRATION_FOLDER / "unicast.json").read_text())
    for number, point in enumerate(stored["check"]):
        point["model"] = point["rtl"] * (1 + errors_pct.get(number, 0.0) / 100)
    sizes = [abs(error) for error in errors_pct.values()]
    stored["max_abs_error_pct"] = max(sizes, default=0.0)
    stored["mean_abs_error_pct"] = sum(sizes) / len(stored["check"])
    (calibrations / "unicast.json").write_text(resealed(stored))
    return calibrations


def all_off(folder: Path) -> Path:
    """All calibrations, the first check of each one per cent off."""
    calibrations = folder / "calibration" / "results"
    calibrations.mkdir(parents=True)
    for path in CALIBRATION_FOLDER.glob("*.json"):
        stored = json.loads(path.read_text())
        stored["check"][0]["model"] = 1.01 * stored["check"][0]["rtl"]
        stored["max_abs_error_pct"] = 1.0
        (calibrations / path.name).write_text(resealed(stored))
    return calibrations


def leaves(value: Any) -> list[Any]:
    """The figures of a result."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [leaf for one in inner for leaf in leaves(one)]
    return [value]


def custom_mesh(folder: Path) -> str:
    """A specification with a calibration beside it: figures of the project's unicasts."""
    spec_file = folder / "my mesh" / "mask_mesh.toml"
    shutil.copytree(REPOSITORY / "docs" / "custom_rtl" / "mask_mesh", spec_file.parent)
    spec = load_spec(spec_file)
    found = CustomCalibration(
        sources=source_hashes([spec.file, *spec.source_files()], spec.folder),
        tools={},
        network=asdict(rtl_timing()),
        packet_flits=64,
        multicast_flits=4,
        reduction_flits=4,
        not_represented=["an arbiter that draws lots"],
        results=[stored_result("unicast")],
    )
    calibration_file(spec).write_text(sealed(found))
    return str(spec_file)


def parsed(line: str) -> None:
    """Hold that a command line is one that there is; it does not run."""
    program, name, *arguments = shlex.split(line)
    command: click.Command = import_module(f"wafertlm.commands.{name}").command
    with command.make_context(name, arguments):
        assert program == "wafertlm"


class Page(HTMLParser):
    """Collects the tags, what the page would load, and the texts it shows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        loading = ("src", "href", "xlink:href", "srcset", "data", "poster", "action")
        self.loads += [value or "" for name, value in attrs if name in loading]

    def handle_data(self, data: str) -> None:
        if words := data.split():
            self.texts.append(" ".join(words))


def shown_by(page: str) -> str:
    """Everything the page says, with single spaces."""
    return " ".join(Page(page).texts)
