"""A scene that goes wrong: what is kept of it, and how it is run again."""

import json
import math
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration import simulator
from calibration.routers.findings import Findings, in_words
from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.scenes import Scene, ScenesMixedError
from calibration.routers.subject import Subject
from cosim.errors import HangError, SimulationError, UnfinishedError, WrongDataError
from cosim.spec.mesh import MeshSpec, load_spec
from tests.specifications import TOY
from tlm.interconnect.packets import Packets, TileSet

_FAULT = ("assign fault = flit[3:1];", "assign fault = 3'(flit[7:4] == 4'd5);")


@pytest.fixture
def faulty(tmp_path: Path) -> MeshSpec:
    """The toy, which changes a bit of what goes to tile 1,1."""
    shutil.copytree(TOY.parent, tmp_path / "toy")
    source = tmp_path / "toy" / "toy.sv"
    assert source.read_text().count(_FAULT[0]) == 1
    source.write_text(source.read_text().replace(*_FAULT))
    return load_spec(tmp_path / "toy" / "toy.toml")


def scene(row: int, col: int) -> Scene:
    return Scene((3, 4), f"to {row},{col}", ((0, 0, TileSet.tile(row, col), 2),), whole=True)


@pytest.mark.rtl
def test_a_scene_with_wrong_data_is_kept_and_run_again(
    faulty: MeshSpec, tmp_path: Path, wafertlm: Any
) -> None:
    subject = Subject(faulty)
    subject.findings = Findings(faulty, faulty.folder / "toy.findings", BlackBoxMesh)
    subject.findings.begin("unicast")
    first, bad, last = subject.measure([scene(0, 3), scene(1, 1), scene(2, 1)])
    assert (first, math.isnan(bad), last) == (1.0, True, 1.0)
    (finding,) = subject.findings.found
    assert (finding.experiment, finding.scene) == ("unicast", "to 1,1")
    # Alone, not as the second packet of the run.
    assert finding.what.startswith("wrong data: toy 3x4: packet 0 ejected at node 5: flit 0 has")
    shown = finding.shown(faulty)
    wave = Path(str(shown["wave"]))
    assert wave == faulty.folder / "toy.findings" / "unicast-0.vcd"
    assert "$enddefinitions" in wave.read_text()
    # Findings are no sources: the mesh is what it was.
    assert subject.mesh((3, 4)).build() == BlackBoxMesh(faulty, 3, 4).build()
    assert not [path for path in subject.sources() if "findings" in str(path)]
    _, *words = shlex.split(str(shown["command"]))
    ran = wafertlm(*words, "--json")
    assert (ran.status, json.loads(ran.stdout)["now"]) == (1, finding.what)
    assert ran.stderr == f"check failed: unicast: to 1,1: {finding.what}\n"
    shutil.copy(TOY.parent / "toy.sv", faulty.folder)
    ran = wafertlm(*words, "--json")
    assert (ran.status, json.loads(ran.stdout)["now"]) == (0, None)


@pytest.mark.rtl
def test_verilog_that_never_ends_a_cycle_is_a_finding(
    faulty: MeshSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = faulty.folder / "toy.sv"
    loop = "always_ff @(posedge clk) if (!reset && send_valid[0]) while (!send_ready[14]) owner_q"
    text = source.read_text().replace("endmodule", f"  {loop} = owner;\nendmodule")
    source.write_text(text.replace("owner_q <= owner;", "owner_q = owner;"))
    subject = Subject(faulty)
    subject.findings = Findings(faulty, faulty.folder / "toy.findings", BlackBoxMesh)
    subject.findings.begin("unicast")
    subject.mesh((3, 4)).build()
    monkeypatch.setattr(simulator, "STALL_SECONDS", 3)
    assert math.isnan(subject.measure([scene(0, 3)])[0])
    (finding,) = subject.findings.found
    said = "blackbox_bench: no more than 1000 cycles end in 3 s: does Verilog loop within one?"
    assert finding.what == f"timeout: {said}"


def test_scenes_beyond_those_that_are_kept_are_told_apart(
    faulty: MeshSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hang that was played is none that was left out."""
    subject = Subject(faulty)
    subject.findings = Findings(faulty, faulty.folder / "toy.findings", BlackBoxMesh)
    monkeypatch.setattr(Findings, "room", False)
    subject.failed("one", (3, 4), Packets.of(scene(0, 3).sends), HangError("stands still"))
    assert (subject.findings.unplayed, subject.findings.unkept) == (0, 1)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (HangError("stands still"), "hang: stands still"),
        (WrongDataError("a bit\nand more"), "wrong data: a bit"),
        (UnfinishedError("moves still"), "timeout: moves still"),
        (ScenesMixedError("ran into the next one"), "timeout: ran into the next one"),
        (
            SimulationError("bench: 1 failed\nlog\n[3] %Error: a.sv:1: Assertion failed in b: no"),
            "assertion: [3] %Error: a.sv:1: Assertion failed in b: no",
        ),
        (SimulationError("bench: died\n%Error: a.sv:2: $stop"), "stopped: %Error: a.sv:2: $stop"),
        (SimulationError("bench: died"), "stopped: bench: died"),
        (SimulationError("bench: died; see /tmp/x-1\n"), "stopped: bench: died"),
    ],
)
def test_what_went_wrong_in_a_line(error: Exception, words: str) -> None:
    assert in_words(error) == words


def test_files_that_are_no_scene_are_refused(tmp_path: Path, wafertlm: Any) -> None:
    file = tmp_path / "scene.json"
    kept = {"experiment": "unicast", "scene": "a", "what": "hang", "size": [3, 4]}
    for content in ({**kept, "packets": [[0, 1]]}, {**kept, "packets": []}, kept):
        file.write_text(json.dumps(content))
        ran = wafertlm("replay", "--rtl", TOY, "--finding", file)
        assert (ran.status, ran.stderr.startswith(f"error: {file}: ")) == (2, True)
    whole = {**kept, "fields": list(Packets.__slots__)}
    sound = np.stack(Packets.of(scene(0, 3).sends).columns(), axis=1).tolist()[0]
    for field, value, said in (
        ("source", 99, "packet 0: found source 99"),
        ("flits", 0, "0 flits"),
        ("joint", 7, "joint: found 7; allowed: 0 to 0"),
        ("kind", 9, "kind: found 9; allowed: 0 to 6"),
        ("cycle", -1, "cycle: found -1; allowed: 0 to "),
        ("cycle", 2**70, "allowed: 64 bits"),
    ):
        row = [*sound]
        row[Packets.__slots__.index(field)] = value
        file.write_text(json.dumps({**whole, "packets": [row]}))
        ran = wafertlm("replay", "--rtl", TOY, "--finding", file)
        assert (ran.status, ran.stderr.startswith(f"error: {file}: packets: ")) == (2, True)
        assert said in ran.stderr
    file.write_text(json.dumps({**whole, "size": [0, 4], "packets": [sound]}))
    ran = wafertlm("replay", "--rtl", TOY, "--finding", file)
    assert (ran.status, ran.stderr.startswith(f"error: {file}: size.0: found 0: ")) == (2, True)
    for arguments in (("--finding", file), ("unicast", "--rtl", TOY, "--finding", file)):
        ran = wafertlm("replay", *arguments)
        assert (ran.status, ran.stderr.startswith("error: --finding: ")) == (2, True)
