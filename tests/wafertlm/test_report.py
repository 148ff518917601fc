"""The page: complete, self-contained, the same bytes from the same results."""

import json
import re
import shlex
import shutil
import tracemalloc
from dataclasses import asdict
from html.parser import HTMLParser
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import click
import numpy as np
import pytest
from numpy.lib.format import write_array_header_1_0

from calibration.campaign import EXPERIMENTS
from calibration.routers.stored import CustomCalibration, calibration_file
from cosim.spec.mesh import load_spec
from tlm.calibrated import REPOSITORY, CalibrationResult, source_hashes, stored_result
from tlm.errors import InputError
from tlm.interconnect.calibration import rtl_timing
from tlm.sealed import sealed
from wafertlm.report.page import CALIBRATION_FOLDER, UNITS, write_report
from wafertlm.report.stored import MAP_ARRAYS

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


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with a kernel run and its map, and a serving run and its requests."""
    folder = tmp_path / "results"
    (folder / "wafer").mkdir(parents=True)
    (folder / "wafer" / "summa.json").write_text(json.dumps(kernel_run()))
    tiles = np.arange(24).reshape(4, 6)
    np.savez_compressed(
        folder / "wafer" / "summa.npz",
        finish_cycle=1000 + tiles,
        matrix_busy_cycles=tiles,
        wait_cycles=10 * tiles,
    )
    (folder / "chat.json").write_text(json.dumps(serve_run()))
    rows = "arrival_s,ttft_s,e2e_s,output_tokens,mean_tbt_ms\n0,1,1,1,\n1,2,4,3,1000\n2,1,2,2,900\n"
    (folder / "chat.csv").write_text(rows)
    return folder


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


class _Page(HTMLParser):
    """Collects the tags, what the page would load, and the texts it shows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(re.sub("<style>.*?</style>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        loading = ("src", "href", "xlink:href", "srcset", "data", "poster", "action")
        self.loads += [value or "" for name, value in attrs if name in loading]

    def handle_data(self, data: str) -> None:
        if words := data.split():
            self.texts.append(" ".join(words))


def shown_by(page: str) -> str:
    """Everything the page says, with single spaces."""
    return " ".join(_Page(page).texts)


def test_the_page_loads_nothing(results: Path) -> None:
    page = page_of(results)
    parsed = _Page(page)
    assert parsed.loads
    assert all(address.startswith(("#", "data:image/")) for address in parsed.loads)
    assert not {"script", "link", "iframe", "object", "base"} & parsed.tags
    assert not re.search(r"@import|url\((?![\"']?(#|data:))", page)


def test_equal_results_give_equal_bytes(results: Path) -> None:
    assert page_of(results) == page_of(results)


def test_the_page_shows_each_part_and_where_it_comes_from(results: Path) -> None:
    page = page_of(results)
    text = shown_by(page)
    assert page.count("<svg") == 2
    assert "not run yet" not in text
    for shown in (
        "How long does summa of 64,64,64 take in fp16 on 4x6 tiles of wse2? wafer/summa",
        "2 µs 43.2 % utilised",
        "lt 1.5 not checked",
        "c0ffee",
    ):
        assert shown in text
    assert "How does flat32 serve llama3-8b with scheduler chunked? chat" in text
    assert "1 234 tokens a second 1 s to the first token" in text
    assert "3 of 3 requests completed – not checked not checked" in text
    assert "chat time to first token s 1.25 1 2 3" in text


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
    # A panel a mesh; its title has two lines.
    for mesh, exact in (("4x4", f"{small - 2} of {small}"), ("8x8", f"{large - 2} of {large}")):
        assert f"<!-- {mesh} -->" in page
        assert f"<!-- {exact} exact -->" in page


def test_an_experiment_without_errors_says_so(tmp_path: Path) -> None:
    text = shown_by(page_of(tmp_path / "results"))
    assert "1 of 1 experiments are exact over 120 cases that no fit has seen." in text
    assert "Exact in every case: unicast. A case on RTL again, with a wave:" in text
    assert re.search(r"zero-load unicast latency 6 120 0 0 –", text)


def test_the_worst_case_is_replayed_by_a_command_that_exists(tmp_path: Path, wafertlm: Any) -> None:
    page = page_of(tmp_path / "results", unicast_alone(tmp_path, {2: -1.0, 7: 2.5}))
    (line,) = [text for text in _Page(page).texts if text.startswith("wafertlm replay")]
    assert line == "wafertlm replay unicast --case 7 --wave unicast.vcd"
    parsed(line)
    cases = json.loads(wafertlm("replay", "unicast", "--list", "--json").stdout)["cases"]
    assert cases[7] == f"7: {stored_result('unicast').check[7].case}"


def test_axes_say_what_an_experiment_counts(results: Path) -> None:
    calibrations = all_off(results.parent)
    page = page_of(results, calibrations)
    assert set(UNITS) <= {experiment.name for experiment in EXPERIMENTS}
    figures = re.findall(r"<h3>(\S+) .*?(<svg.*?</svg>)", page, re.DOTALL)
    assert sorted(name for name, _ in figures) == sorted(one.name for one in EXPERIMENTS)
    for name, figure in figures:
        unit = UNITS.get(name, "cycles")
        assert f"<!-- RTL ({unit}) -->" in figure
        assert f"<!-- model ({unit}) -->" in figure


def test_a_custom_mesh_is_shown_beside_the_projects(results: Path) -> None:
    spec_file = custom_mesh(results.parent)
    page = page_of(results, spec_file=spec_file)
    text = shown_by(page)
    assert page.count("<svg") == 2
    assert "Mesh mask-mesh against RTL" in text
    assert "Not represented: an arbiter that draws lots." in text
    custom = [t for t in _Page(page).texts if t.startswith("wafertlm replay") and "--rtl" in t]
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
    # A folder that is named has to be there, and one of runs without a mesh.
    shutil.rmtree(tmp_path / "results")
    for arguments in (("--rtl", spec_file, "--results", "result"), ()):
        ran = wafertlm("report", *arguments)
        assert (ran.status, "--results: no folder 'result" in ran.stderr) == (2, True)


def test_a_custom_mesh_must_be_calibrated(results: Path, wafertlm: Any) -> None:
    spec_file = Path(custom_mesh(results.parent))
    source = spec_file.parent / "mask_adder.sv"
    source.write_text(source.read_text() + "\n")
    ran = wafertlm("report", "--results", results, "--rtl", spec_file)
    assert ran.status == 2
    assert "calibration of 'mask-mesh' is stale: mask_adder.sv changed" in ran.stderr


def test_kernels_of_one_problem_are_compared_with_the_fastest(results: Path) -> None:
    other = kernel_run(cycles=1000, breakdown_cycles={"compute": 1000})
    other["options"] = other["options"] | {"kernel": "mesh-gemm"}
    (results / "mesh.json").write_text(json.dumps(other))
    elsewhere = kernel_run(cycles=10)
    elsewhere["options"] = elsewhere["options"] | {"shape": "8,8,8"}
    (results / "small.json").write_text(json.dumps(elsewhere))
    text = shown_by(page_of(results))
    rows = re.findall(r"does (\S+) of (\d+),\S+ take .*? utilised (\S+)", text)
    assert rows == [("summa", "8", "lt"), ("mesh-gemm", "64", "1.00"), ("summa", "64", "2.00")]


def test_missing_parts_name_commands_that_exist(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    texts = _Page(page_of(tmp_path, tmp_path / "none")).texts
    missing = [texts[i + 1] for i, text in enumerate(texts) if text == "not run yet:"]
    commands = [line.removeprefix("wafertlm ") for line in missing]
    assert [line.split()[0] for line in commands] == ["kernel", "serve", "calibrate"]
    for line in missing:
        parsed(line)


def test_the_page_begins_with_what_was_asked_and_found(results: Path) -> None:
    page = page_of(results)
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles == ["Asked and found", "Tiles", "Requests", "Models against RTL", "Every figure"]
    assert page.index("How long does summa") < page.index("<svg")


_OTHERS = (
    "check summa --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8",
    "dies --chip flat32-wafer --collective all-to-all --bytes 4096",
    "memory --device hbm3 --requests 100",
    "noc --mesh 4x4 --traffic uniform --rate 0.1 --cycles 500 --level perf",
)


@pytest.mark.parametrize("line", _OTHERS)
def test_every_figure_of_any_commands_result_is_shown(
    tmp_path: Path, wafertlm: Any, line: str
) -> None:
    (tmp_path / "results").mkdir()
    stored = json.loads(wafertlm(*line.split(), "--json").stdout)
    (tmp_path / "results" / "any.json").write_text(json.dumps(stored))
    text = shown_by(page_of(tmp_path / "results"))
    asked = text.index("any", text.index("Asked and found"))
    assert asked < text.index("not run yet")
    missing = {
        leaf
        for leaf in leaves({**stored, "provenance": None})
        if leaf not in (None, True, False) and str(leaf) not in text
    }
    assert not missing


def test_the_figures_of_kernels_and_serving_are_all_shown(results: Path) -> None:
    text = shown_by(page_of(results))
    for run in (kernel_run(), serve_run()):
        assert all(str(leaf) in text for leaf in leaves(run) if leaf is not None)


def test_a_stale_calibration_is_told_first(tmp_path: Path) -> None:
    calibrations = unicast_alone(tmp_path, {})
    assert "Stale" not in page_of(tmp_path / "results", calibrations)
    stored = json.loads((calibrations / "unicast.json").read_text())
    stored["sources"] = dict.fromkeys(stored["sources"], "0")
    (calibrations / "unicast.json").write_text(resealed(stored))
    text = shown_by(page_of(tmp_path / "results", calibrations))
    assert text.index("Stale calibration: unicast. Sources changed") < text.index("Asked")


def test_a_name_cannot_break_the_page(results: Path) -> None:
    run = kernel_run()
    run["options"] = run["options"] | {"kernel": "<script>alert(1)</script>"}
    (results / "bad.json").write_text(json.dumps(run))
    page = page_of(results)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", r"a\.json: not JSON"),
        ("a.json", json.dumps(kernel_run(cycles="many")), r"a\.json: cycles: .*integer"),
        ("a.json", json.dumps(serve_run(ttft_s=None)), r"a\.json: ttft_s: "),
        ("chat.csv", "arrival_s\n1\n", r"chat\.csv: needs numbers in the columns ttft_s"),
        ("wafer/summa.npz", "text", r"summa\.npz: needs the arrays finish_cycle"),
    ],
)
def test_a_result_that_cannot_be_used_is_named(
    results: Path, name: str, content: str, message: str
) -> None:
    (results / name).write_text(content)
    with pytest.raises(InputError, match=message):
        page_of(results)


def npz(shape: tuple[int, ...] = (4, 4), **more: Any) -> bytes:
    """A map of tiles, of which arrays may be others."""
    arrays = {name: np.ones(shape) for name in MAP_ARRAYS} | more
    np.savez_compressed(file := BytesIO(), **arrays)
    return file.getvalue()


def bomb() -> bytes:
    """Zeros that fill 400 MB from less than one."""
    with ZipFile(file := BytesIO(), "w", ZIP_DEFLATED) as arrays:
        for name in MAP_ARRAYS:
            head = BytesIO()
            write_array_header_1_0(
                head, {"descr": "<f8", "fortran_order": False, "shape": (7000, 7000)}
            )
            with arrays.open(f"{name}.npy", "w") as array:
                array.write(head.getvalue())
                for _ in range(400):
                    array.write(bytes(980_000))
    return file.getvalue()


def npy() -> bytes:
    np.save(file := BytesIO(), np.ones((4, 4)))
    return file.getvalue()


_TABLE = b"ttft_s,e2e_s,mean_tbt_ms\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chat.csv", _TABLE + b"\xff,1,1\n"),
        ("chat.csv", _TABLE + b"1" * 200_000 + b",1,1\n"),
        ("chat.csv", _TABLE + b"1,inf,1\n"),
        ("chat.csv", b"1" * (2 << 20)),
        ("wafer/summa.npz", b""),
        ("wafer/summa.npz", npy()),
        ("wafer/summa.npz", npz()[:300]),
        ("wafer/summa.npz", npz().replace(b"\x78", b"\x79").replace(b"PK\x03", b"PK\x04", 1)),
        ("wafer/summa.npz", npz((0, 0))),
        ("wafer/summa.npz", npz(wait_cycles=np.full((4, 4), np.inf))),
        ("wafer/summa.npz", npz(wait_cycles=np.full((4, 4), "x"))),
        ("wafer/summa.npz", bomb()),
        ("a.json", b"\xff"),
        ("a.json", b"[" * 100_000 + b"]" * 100_000),
        ("a.json", b"[" * 100 + b"]" * 100),
        ("a.json", b"9" * 5000),
        ("a.json", json.dumps(kernel_run(cycles=0)).encode()),
        ("a.json", json.dumps(kernel_run() | {"options": []}).encode()),
        ("a.json", json.dumps(kernel_run(command="other") | {"options": [1]}).encode()),
    ],
)
def test_a_damaged_result_is_named(results: Path, name: str, content: bytes) -> None:
    (results / name).write_bytes(content)
    tracemalloc.start()
    with pytest.raises(InputError, match=name):
        page_of(results)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 300 << 20


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


def test_other_files_are_no_business_of_the_report(results: Path) -> None:
    (results / "notes.json").write_text('["mine"]')
    (results / "lost.npz").write_text("not an array")
    calibrations = unicast_alone(results.parent, {})
    assert write_report(results, results / "page.html", calibrations)["kernels"] == 1


def test_the_command_reads_what_the_commands_store(wafertlm: Any, tmp_path: Path) -> None:
    kernel = "kernel summa --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8"
    serve = "serve --model llama3-8b --chip flat32 --scheduler chunked --workload sharegpt"
    made = tmp_path / "made"
    beside = ("--out", made / "k.json", "--map", made / "k.npz")
    assert wafertlm(*kernel.split(), *beside).status == 0
    beside = ("--out", made / "s.json", "--requests-csv", made / "s.csv")
    assert wafertlm(*serve.split(), "--rate", 4, "--requests", 10, *beside).status == 0
    ran = wafertlm("report", "--results", made, "--json")
    assert ran.status == 0
    result = json.loads(ran.stdout)
    assert (result["kernels"], result["servings"]) == (1, 1)
    assert Path(result["report"]) == made / "report.html"
    assert (made / "report.html").read_text().count("<svg") == 2 + sum(
        stored_result(one.name).max_abs_error_pct > 0 for one in EXPERIMENTS
    )
    listed = json.loads(wafertlm("report", "--results", made, "--list", "--json").stdout)
    assert listed["kernels"] == ["k"]
