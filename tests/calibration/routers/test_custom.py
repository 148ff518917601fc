"""Stored calibrations of custom meshes: what makes them stale, and what is wrong with them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from calibration.routers import custom
from calibration.routers import stored as stored_custom
from calibration.routers.custom import calibrate_custom
from calibration.routers.scenes import NoFormError, ScenesMixedError
from calibration.routers.stored import (
    CustomCalibration,
    Finding,
    calibration_file,
    load_custom,
    model_hash,
)
from cosim.errors import HangError
from cosim.spec.mesh import MeshSpec, load_spec
from cosim.verilated.cache import included_files
from cosim.verilog import TILE_SOURCES
from tests.specifications import TOY
from tlm.calibrated import REPOSITORY, source_hashes
from tlm.errors import InputError
from tlm.imported import imported_files
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import DeadlockError
from tlm.sealed import sealed
from wafertlm.custom import CustomRouters
from wafertlm.noc.networks import custom_network

FILES = ("toy.sv", "toy.toml", "toy_size.svh")


@pytest.fixture
def stored(tmp_path: Path) -> MeshSpec:
    """The toy, elsewhere, with a calibration; its include folder is the whole folder."""
    shutil.copytree(TOY.parent, tmp_path / "toy")
    spec = load_spec(tmp_path / "toy" / "toy.toml")
    found = CustomCalibration(
        sources=source_hashes([spec.folder / name for name in FILES], spec.folder),
        tools={},
        network=asdict(rtl_timing()),
        packet_flits=64,
        multicast_flits=None,
        reduction_flits=None,
        not_represented=[],
        results=[],
    )
    calibration_file(spec).write_text(sealed(found))
    return spec


def test_what_is_stored_is_read(stored: MeshSpec) -> None:
    assert load_custom(stored).timing() == rtl_timing()
    names = {path.name for path in included_files(stored.include_folders())}
    assert names == {*FILES}


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_makes_it_stale(stored: MeshSpec, name: str) -> None:
    comment = "#" if name.endswith(".toml") else "//"
    with (stored.folder / name).open("a") as file:
        file.write(f"{comment} changed\n")
    with pytest.raises(InputError, match=f"'toy' is stale: {name} changed since it was measured"):
        load_custom(stored)


def test_a_new_file_that_may_be_included_makes_it_stale(stored: MeshSpec) -> None:
    (stored.folder / "more.svh").touch()
    with pytest.raises(InputError, match="stale: more.svh changed"):
        load_custom(stored)


def test_a_changed_model_makes_it_stale(stored: MeshSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_custom, "model_hash", lambda: "another")
    with pytest.raises(InputError, match="stale: the model changed since it was measured; run 'w"):
        load_custom(stored)


def test_a_calibration_of_an_unknown_model_is_stale(stored: MeshSpec) -> None:
    change(stored, lambda found: found.pop("model"))
    with pytest.raises(InputError, match="stale: the model changed since"):
        load_custom(stored)


def test_what_belongs_to_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the campaign and its bench import and read, collectives by the tiles among it."""
    for folder in ("calibration", "cosim", "rtl", "tlm", "workloads"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    monkeypatch.setattr(stored_custom, "REPOSITORY", tmp_path)
    here = tuple(tmp_path / path.relative_to(REPOSITORY) for path in TILE_SOURCES)
    monkeypatch.setattr(stored_custom, "TILE_SOURCES", here)
    seen = {model_hash()}
    for name in (
        "calibration/benches/mesh_bench.py",
        "calibration/results/tile-queues.json",
        "calibration/routers/traffic.py",
        "calibration/simulator.py",
        "cosim/spec/mesh.py",
        "rtl/bench/blackbox_bench.sv",
        "rtl/bench/flit_replayer.sv",
        "rtl/tile/sequencer.sv",
        "tlm/chips/parts.py",
        "tlm/chips/rtl.toml",
        "tlm/engines/at/run.py",
        "tlm/interconnect/handshake/core.py",
        "tlm/interconnect/lines.py",
        "tlm/interconnect/ordering.py",
        "tlm/program/tokens.py",
        "tlm/tiles/programs.py",
        "workloads/kernels/parts/software.py",
    ):
        with (tmp_path / name).open("a") as file:
            file.write("\n")
        assert model_hash() not in seen, name
        seen.add(model_hash())
    for name in (
        "calibration/levels/models.py",
        "calibration/results/unicast.json",
        "rtl/memory/scheduler.sv",
        "tlm/engines/lt/run.py",
        "workloads/kernels/gemm/summa.py",
    ):
        with (tmp_path / name).open("a") as file:
            file.write("\n")
        assert model_hash() in seen, name


def test_the_model_is_all_that_a_campaign_loads() -> None:
    program = "import sys, calibration.routers.custom; print(*[str(m.__file__) for m in "
    program += "sys.modules.values() if getattr(m, '__file__', None)], sep='\\n')"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    packages = [REPOSITORY / name for name in ("calibration", "cosim", "tlm", "workloads")]
    loaded = {Path(line) for line in ran.stdout.splitlines()}
    loaded = {path for path in loaded if any(map(path.is_relative_to, packages))}
    assert len(loaded) > 100
    assert loaded <= {*imported_files(["calibration.routers.custom"], REPOSITORY)}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda network: network.pop("line"), "line: not there; allowed: the fields of NocTiming"),
        (lambda network: network.update(speed=3), "speed: not known; allowed: the fields of NocT"),
        (lambda network: network.update(fork="none"), "unknown fork 'none'; known: flit-by-flit"),
        (lambda network: network.update(hop_cycles="two"), "hop_cycles"),
        (lambda network: network.update(fifo_depth=0), "fifo_depth: found 0; allowed: 1 or more"),
    ],
)
def test_a_network_that_is_none(
    stored: MeshSpec, edit: Callable[[dict[str, Any]], None], message: str
) -> None:
    change(stored, lambda found: edit(found["network"]))
    with pytest.raises(InputError) as caught:
        load_custom(stored)
    assert str(caught.value).startswith(f"{calibration_file(stored)}: ('network',")
    assert message in str(caught.value)


def test_a_file_that_is_no_text(stored: MeshSpec) -> None:
    calibration_file(stored).write_bytes(b"\xff")
    with pytest.raises(InputError, match="toy.calibration.json: 'utf-8' codec can't decode .* run"):
        load_custom(stored)


def test_a_folder_that_cannot_be_written_is_found_before_the_measurements(
    stored: MeshSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(custom, "TemporaryFile", refuse)
    monkeypatch.delattr(custom, "Subject")
    with pytest.raises(InputError) as caught:
        calibrate_custom(stored, force=True)
    assert str(caught.value).startswith(f"{stored.folder}: cannot be written: Permission denied;")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ScenesMixedError("scene 'a'"), "toy.toml: packets are slower than any mesh is taken to"),
        (NoFormError("none"), "toy.toml: the mesh is like no form of the model: none"),
        (
            DeadlockError(7, [0], [], []),
            "toy.toml: the model that was found hangs where the mesh does",
        ),
        (HangError("toy 3x4 stands still"), "deadlock: toy 3x4 stands still"),
    ],
)
def test_a_mesh_that_cannot_be_found_out_fails_the_check(
    error: Exception, message: str, wafertlm: Any, stored: MeshSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wafertlm.api.calibration_run.calibrate_custom", raising(error))
    ran = wafertlm("calibrate", "--rtl", stored.file)
    assert (ran.status, ran.stderr.startswith(f"check failed: {message}")) == (1, True)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (HangError("stands still"), "deadlock: stands still"),
        (NoFormError("none"), "the project's mesh: the mesh is like no form of the model: none"),
    ],
)
def test_a_project_mesh_that_cannot_be_found_out_fails_the_check(
    error: Exception, message: str, wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wafertlm.api.calibration_run.campaign.calibrate", raising(error))
    ran = wafertlm("calibrate")
    assert (ran.status, ran.stderr) == (1, f"check failed: {message}\n")


def test_a_quick_calibration_is_marked_and_holds_for_a_quick_campaign_alone(
    stored: MeshSpec, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = load_custom(stored).model_copy(update={"quick": True})
    calibration_file(stored).write_text(sealed(quick))
    monkeypatch.setattr(custom, "tool_versions", dict)
    monkeypatch.delattr(custom, "Subject")
    assert calibrate_custom(stored, store_quick=True) == quick
    for more in ({}, {"quick": True}, {"store_quick": True, "force": True}):
        with pytest.raises(NameError, match="Subject"):  # it is measured
            calibrate_custom(stored, **more)
    routers = CustomRouters.load(str(stored.file))
    told = "toy: a quick calibration, checked on the size of the fit alone\n"
    assert capsys.readouterr().err == told
    assert custom_network(3, 4, routers).calibration == "toy (quick)"
    # A whole one will do for both.
    calibration_file(stored).write_text(sealed(quick.model_copy(update={"quick": False})))
    assert not calibrate_custom(stored, store_quick=True).quick
    assert not calibrate_custom(stored).quick


def test_quick_calibrations_of_the_project_are_not_stored(wafertlm: Any) -> None:
    ran = wafertlm("calibrate", "--store-quick")
    assert (ran.status, ran.stderr) == (
        2,
        "error: --store-quick: found without --rtl; allowed: with the mesh's SPEC.toml\n",
    )


def change(spec: MeshSpec, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change the stored calibration of a mesh."""
    path = calibration_file(spec)
    found = json.loads(path.read_text())
    edit(found)
    path.write_text(json.dumps(found))


def raising(error: Exception) -> Callable[..., None]:
    """A function that raises."""

    def function(*_: object, **__: object) -> None:
        raise error

    return function


def test_scenes_that_went_wrong_are_counted(
    stored: MeshSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Finding(experiment="unicast", scene="a", what="hang", packets="a.json", wave=None)
    for findings, said in (([one], "toy: 1 scene went"), ([one, one], "toy: 2 scenes went")):
        found = load_custom(stored).model_copy(update={"findings": findings})
        calibration_file(stored).write_text(sealed(found))
        CustomRouters.load(str(stored.file))
        assert capsys.readouterr().err == f"{said} wrong as it was calibrated\n"
