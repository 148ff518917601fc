"""A stored case again: the same run, the same figure, what differs first, and a wave."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.campaign import EXPERIMENTS
from calibration.experiment import run
from calibration.routers.custom import calibrate_custom
from calibration.routers.rtl_mesh import FIT_MESH
from calibration.routers.stored import CustomCalibration, calibration_file
from calibration.routers.subject import Subject
from calibration.routers.unicast import Unicast
from cosim.spec.mesh import MeshSpec, load_spec
from cosim.spec.project import mesh_timing
from tlm.calibrated import REPOSITORY, CalibrationResult, source_hashes, stored_result
from tlm.errors import InputError
from tlm.interconnect.packets import Deliveries
from tlm.sealed import sealed
from wafertlm.replay import Difference, first_difference, load, worst
from wafertlm.watched import Watch, watched

MASK_MESH = REPOSITORY / "docs" / "custom_rtl" / "mask_mesh"
#: A default test builds it, too.
LOCKED_MESH = MASK_MESH.with_name("locked_mesh")


def answer(wafertlm: Any, *arguments: object, status: int = 0) -> dict[str, Any]:
    ran = wafertlm("replay", *arguments, "--json")
    assert ran.status == status, ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def deliveries(*cycles: tuple[int, int, int, int]) -> Deliveries:
    """From rows packet, node, head, tail."""
    packet, node, head, tail = np.array(cycles).T
    return Deliveries(head, head, packet, node, head, tail)


def changed(change: Callable[[CalibrationResult], dict[str, Any]]) -> Callable[..., Any]:
    """Reads stored results with a change."""
    return lambda name: stored_result(name).model_copy(update=change(stored_result(name)))


@pytest.fixture
def custom(request: pytest.FixtureRequest, tmp_path: Path) -> MeshSpec:
    """An example of a custom mesh, in one size."""
    example: Path = request.param
    shutil.copytree(example, tmp_path / "custom")
    path = tmp_path / "custom" / f"{example.name}.toml"
    text, count = re.subn(r"(?m)^check = .*$", "check = []", path.read_text())
    assert count == 1
    path.write_text(text)
    return load_spec(path)


def test_the_first_difference_is_the_first_in_time() -> None:
    rtl = deliveries((0, 3, 9, 12), (1, 2, 5, 8), (1, 7, 6, 9), (2, 0, 4, 4))
    model = deliveries((0, 3, 8, 12), (1, 2, 5, 8), (1, 7, 6, 7), (2, 0, 4, 4))
    assert first_difference(rtl, model, 0) == Difference(1, 7, "tail", 9, 7)
    assert first_difference(rtl, rtl, 0) is None


def test_packets_of_cases_before_do_not_count() -> None:
    rtl, model = deliveries((0, 3, 9, 12), (1, 2, 5, 8)), deliveries((0, 3, 8, 12), (1, 2, 5, 8))
    assert first_difference(rtl, model, 1) is None
    assert first_difference(rtl, model, 0) == Difference(0, 3, "head", 9, 8)


def test_the_worst_case_has_the_largest_error_either_way() -> None:
    points = stored_result("unicast").check[:5]
    wrong = {1: 1.2, 3: 0.7, 4: 1.1}
    points = [
        point.model_copy(update={"model": point.rtl * wrong.get(number, 1)})
        for number, point in enumerate(points)
    ]
    assert worst(points) == 3
    assert worst(points[:3]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "replay: experiment not given; known: buffering, "),
        (("mult",), "unknown experiment 'mult'; known: buffering, "),
        (("unicast", "--case", "120"), "--case: found 120; allowed: 0 to 119\n"),
        (("unicast", "--case", "-1"), "--case: found -1; allowed: 0 to 119\n"),
        (("unicast", "--case", "1", "--worst"), "found --case and --worst; allowed: one of them\n"),
        (("unicast", "--wave", "/dev/null/x.vcd"), "/dev/null/x.vcd: cannot be written"),
        (("unicast", "--rtl", "no.toml"), "no.toml: cannot be read: No such file"),
        (("traffic", "--rtl", str(MASK_MESH / "mask_mesh.toml")), "no calibration of 'mask-mesh'"),
    ],
)
def test_bad_input_is_named(wafertlm: Any, arguments: tuple[str, ...], message: str) -> None:
    ran = wafertlm("replay", *arguments)
    assert (ran.status, ran.stdout) == (2, "")
    assert message in ran.stderr


def test_a_result_of_other_cases_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "wafertlm.replay.stored_result", changed(lambda result: {"check": result.check[1:]})
    )
    with pytest.raises(InputError, match="is of other cases than there are; run 'wafertlm cal"):
        load("unicast", None, Watch())


def test_a_wave_of_an_unknown_harness_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--wave: found with cases whose harness leaves no wave"):
        watched(EXPERIMENTS[-1], ["a case of words"], Watch(wave=tmp_path / "x.vcd"))


@pytest.mark.rtl
@pytest.mark.parametrize("name", [experiment.name for experiment in EXPERIMENTS])
def test_a_case_gives_its_stored_figures_again(wafertlm: Any, name: str) -> None:
    points = stored_result(name).check
    number = max(at for at, point in enumerate(points[:8]) if not point.case.startswith("8x8: "))
    result = answer(wafertlm, name, "--case", number)
    assert result["case"] == points[number].case
    assert result["rtl"] == result["stored_rtl"] == points[number].rtl
    assert result["model"] == result["stored_model"] == points[number].model
    assert result["first_difference"] is None
    # Scenes come after those before them; loads and streams are runs of their own.
    alone = name in ("traffic", "mix", "hang", "memory", "memory-bandwidth")
    assert result["cases_before"] == (0 if alone else number)
    figures_alone = name.startswith(("buffering", "memory", "relay", "systolic", "tile"))
    assert (result["packets_compared"] is None) == figures_alone


@pytest.mark.rtl
def test_a_scene_is_played_in_one_run_with_those_before_it() -> None:
    stored = load("contention", None, Watch())
    replayed = stored.replay(6)
    packets = stored.watch.packets
    assert packets is not None
    assert len(packets) == sum(len(scene.sends) for scene in stored.cases[:7])
    assert replayed.packets_compared == len(stored.cases[6].sends)
    assert replayed.first_cycle == packets.cycle[-len(stored.cases[6].sends) :].min() > 0


@pytest.mark.rtl
def test_without_a_number_the_worst_case_is_replayed(
    wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoiled(result: CalibrationResult) -> dict[str, Any]:
        check = [*result.check]
        check[3] = check[3].model_copy(update={"model": 1.5 * check[3].rtl})
        return {"check": check}

    monkeypatch.setattr("wafertlm.replay.stored_result", changed(spoiled))
    for arguments in ((), ("--worst",)):
        result = answer(wafertlm, "unicast", *arguments)
        assert result["options"]["case"] == 3
        assert result["stored_model"] == 1.5 * result["model"]


@pytest.mark.rtl
def test_another_figure_on_rtl_than_stored_is_status_1(
    wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoiled(result: CalibrationResult) -> dict[str, Any]:
        first = result.check[0]
        return {"check": [first.model_copy(update={"rtl": first.rtl + 1}), *result.check[1:]]}

    rtl = stored_result("unicast").check[0].rtl
    monkeypatch.setattr("wafertlm.replay.stored_result", changed(spoiled))
    result = answer(wafertlm, "unicast", "--case", 0, status=1)
    assert (result["rtl"], result["stored_rtl"]) == (rtl, rtl + 1)
    ran = wafertlm("replay", "unicast", "--case", 0)
    wanted = f"check failed: unicast, case 0: RTL gives {rtl:g}, stored is {rtl + 1:g}\n"
    assert ran.stderr == wanted


@pytest.mark.rtl
def test_the_packet_that_a_wrong_model_delivers_elsewhen_is_named(
    wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = load("unicast", None, Watch())
    scene = stored.cases[5]
    ((_, source, to, flits),) = scene.sends
    slow = replace(mesh_timing(FIT_MESH), hop_cycles=2)
    monkeypatch.setattr("wafertlm.noc.networks.mesh_timing", lambda mesh: slow)
    result = answer(wafertlm, "unicast", "--case", 5)
    # The network takes a flit in the cycle that it is due in.
    head = result["first_cycle"] + result["rtl"] - (flits - 1)
    assert scene.hops > 0
    assert result["first_difference"] == {
        "packet": 5,
        "node": to.nodes(4)[0],
        "flit": "head",
        "rtl_cycle": head,
        "model_cycle": head + scene.hops,
    }
    text = wafertlm("replay", "unicast", "--case", 5).stdout
    assert f"first difference: packet 5 at node {to.nodes(4)[0]}, its head: RTL cycle" in text


def first_and_last(wave: Path, signal: str) -> tuple[int, int]:
    """Values of a signal of the top in a wave."""
    text = wave.read_text()
    found = re.search(rf"\$var wire +\d+ (\S+) {signal} ", text)
    assert found is not None
    values = re.findall(rf"(?m)^b([01]+) {re.escape(found[1])}$", text)
    return int(values[0], 2), int(values[-1], 2)


@pytest.mark.rtl
@pytest.mark.slow
def test_a_wave_begins_with_the_case(wafertlm: Any, tmp_path: Path) -> None:
    wave = tmp_path / "new folder" / "case.vcd"
    result = answer(wafertlm, "contention", "--case", 6, "--wave", wave)
    assert result["rtl"] == result["stored_rtl"]
    assert result["wave"] == str(wave)
    begin, end = first_and_last(wave, "cycle_o")
    assert 0 < result["first_cycle"] <= begin <= result["first_cycle"] + 1
    assert end > begin + result["rtl"]
    assert [path.name for path in wave.parent.iterdir()] == ["case.vcd"]


@pytest.mark.rtl
def test_runs_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    load("unicast", None, Watch()).replay(0)
    assert not [*scratch.iterdir()]


@pytest.mark.rtl
@pytest.mark.slow  # a model with waves is built for each
@pytest.mark.parametrize("name", ["memory", "systolic"])
def test_other_harnesses_leave_waves_too(wafertlm: Any, tmp_path: Path, name: str) -> None:
    wave = tmp_path / f"{name}.vcd"
    result = answer(wafertlm, name, "--case", 2, "--wave", wave)
    assert result["rtl"] == result["stored_rtl"]
    assert "$enddefinitions" in wave.read_text()


@pytest.mark.rtl
@pytest.mark.parametrize(
    "custom", [LOCKED_MESH, pytest.param(MASK_MESH, marks=pytest.mark.slow)], indirect=True
)
def test_a_case_of_a_custom_mesh(wafertlm: Any, custom: MeshSpec) -> None:
    subject = Subject(custom)
    found = run(Unicast(subject), quick=False, folder=custom.folder)
    whole = CustomCalibration(
        sources=source_hashes(subject.sources(), custom.folder),
        tools=found.tools,
        network=asdict(subject.timing),
        packet_flits=subject.packet_flits,
        multicast_flits=None,
        reduction_flits=None,
        not_represented=[],
        results=[found],
    )
    calibration_file(custom).write_text(sealed(whole))
    assert answer(wafertlm, "--list", "--rtl", custom.file) == {"experiments": ["unicast"]}
    result = answer(wafertlm, "unicast", "--case", 4, "--rtl", custom.file)
    assert result["options"]["rtl"] == custom.file.name
    assert result["rtl"] == result["stored_rtl"] == result["model"] == found.check[4].rtl
    assert (result["cases_before"], result["packets_compared"]) == (4, 1)
    assert result["first_difference"] is None


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("custom", [MASK_MESH], indirect=True)
def test_every_experiment_of_a_custom_mesh(wafertlm: Any, custom: MeshSpec, tmp_path: Path) -> None:
    found = calibrate_custom(custom)
    for result in found.results:
        last = len(result.check) - 1
        again = answer(wafertlm, result.name, "--case", last, "--rtl", custom.file)
        assert again["rtl"] == again["stored_rtl"], result.name
        assert again["model"] == again["stored_model"], result.name
        assert again["first_difference"] is None
    wave = tmp_path / "custom.vcd"
    (hangs,) = [result for result in found.results if result.name == "hang"]
    hung = [point.rtl for point in hangs.check].index(2.0)
    answer(wafertlm, "hang", "--case", hung, "--rtl", custom.file, "--wave", wave)
    assert "$enddefinitions" in wave.read_text()
