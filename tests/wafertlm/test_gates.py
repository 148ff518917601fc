"""``wafertlm gates``: the gates of one router, with parameters of its Verilog as one likes."""

import json
from pathlib import Path

import pytest

from cosim.spec.mesh import MeshSpec
from cosim.synthesis.mesh import MeshGates, RouterGates
from cosim.synthesis.switching import MeshToggles
from tests.conftest import Wafertlm
from verification.gates import StoredGates
from wafertlm import gates

_ROUTER = RouterGates(cells=100, nand2=150, flip_flops=20, longest_path_cells=12, area_um2=80.5)


@pytest.mark.slow
def test_a_variant_is_counted_as_in_the_stored_table(wafertlm: Wafertlm) -> None:
    stored = StoredGates.load().costs["both, 2 flits a buffer"]
    ran = wafertlm("gates", "mesh", "--set", "FifoDepth=2", "--json")
    found = json.loads(ran.stdout)
    assert (found["router"]["nand2"], found["router"]["flip_flops"]) == (
        stored.nand2,
        stored.flip_flops,
    )
    assert found["options"] == {
        "router": "mesh", "set": ["FifoDepth=2"], "mesh": "4x4", "payload_bits": 64,
        "toggles": False, "liberty": None,
    }  # fmt: skip


def test_what_is_asked_is_counted(
    wafertlm: Wafertlm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def counted(
        spec: MeshSpec, rows: int, cols: int, payload_bits: int, liberty: Path | None
    ) -> MeshGates:
        asked.append((spec.rtl.parameters["FifoDepth"], spec.limits.multicast_flits))
        asked.append((rows, cols, payload_bits, liberty))
        return MeshGates(
            router=_ROUTER, payload_bits=payload_bits, synthesised_bits=(64,), rows=4, cols=4
        )

    toggled = MeshToggles(control=10, payload_bit=1, operations=("unicast",))
    monkeypatch.setattr(gates, "mesh_gates", counted)
    monkeypatch.setattr(gates, "mesh_toggles", lambda spec: toggled)
    (library := tmp_path / "cells.lib").write_text("library(x) { cell (y) {} }")
    line = ("gates", "mesh", "--set", "FifoDepth=8", "--mesh", "2x8", "--payload-bits", 100)
    ran = wafertlm(*line, "--toggles", "--liberty", library)
    assert asked == [(8, 8), (2, 8, 100, library)]
    assert "mesh, FifoDepth=8, payloads of 100 bits" in ran.stdout
    for figure in ("2x8 routers", "1,600", "2,400", "1,288", "110"):
        assert figure in ran.stdout
    hashes = {_config(wafertlm, *line), _config(wafertlm, *line, "--toggles")}
    for content in (
        "library(x) { cell(a) {} }",
        "library(x) { cell(b) {} }",
    ):  # it is kept by its content
        library.write_text(content)
        hashes.add(_config(wafertlm, *line, "--liberty", library))
    assert len(hashes) == 4


def _config(wafertlm: Wafertlm, *line: object) -> str:
    return str(json.loads(wafertlm(*line, "--json").stdout)["provenance"]["config_hash"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "gates: no router given; write a name of --list, or a SPEC.toml"),
        (("torus",), "unknown router 'torus'; known: locked-mesh, mask-mesh, mesh"),
        (("mesh", "--set", "Fifo=8"), "--set: found 'Fifo'; allowed: Rows, Cols, FifoDepth"),
        (("mesh", "--set", "FifoDepth=x"), "--set: found 'FifoDepth=x'; write PARAMETER=VALUE"),
        (("mesh", "--set", "PayloadWidth=8"), "--set: found 'PayloadWidth'; allowed: --payload"),
        (("mesh", "--set", "Rows=8"), "--set: found 'Rows'; allowed: --mesh"),
        (("mesh", "--liberty", "pyproject.toml"), "pyproject.toml: found no cell; allowed"),
        (("mesh", "--payload-bits", "0"), "--payload-bits: found 0; allowed: 1 to 8192"),
        (("mesh", "--mesh", "4"), "--mesh: found '4'; write ROWSxCOLS"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted(
    wafertlm: Wafertlm, arguments: tuple[str, ...], message: str
) -> None:
    ran = wafertlm("gates", *arguments)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {message}")
