"""Runs through custom meshes: cycles, faults that are seen, and builds that fail."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.project import ProjectSubject
from calibration.routers.rtl_mesh import FIT_MESH
from cosim.errors import HangError, SimulationError
from cosim.spec.mesh import MeshSpec, load_spec
from tlm.calibrated import REPOSITORY
from tlm.errors import InputError
from tlm.interconnect.packets import Deliveries, Packets, TileSet
from verification.scenes import Scene

Changed = Callable[..., MeshSpec]

pytestmark = pytest.mark.rtl

FEW = Packets.of(
    [
        (0, 0, TileSet.tile(0, 3), 2),
        (0, 5, TileSet.tile(2, 1), 3),
        (9, 5, TileSet.tile(2, 1), 1),
        (9, 11, TileSet.tile(2, 3), 1),
    ]
)


@pytest.mark.parametrize(("number", "family"), [*enumerate(("rows", "everyone", "apart"))])
def test_both_benches_of_the_projects_mesh_see_the_same_cycles(number: int, family: str) -> None:
    mesh = FIT_MESH
    packets = Scene(mesh, 1500, (0.02, 0.08, 0.5)[number], family, seed=9100 + number).draw()
    assert {*packets.kind.tolist()} == {0, 1, 2, 3}
    seen = ProjectSubject().mesh((4, 4)).simulate(packets)
    expected = mesh.simulate(packets)
    for name in Deliveries.__slots__:
        np.testing.assert_array_equal(getattr(seen, name), getattr(expected, name), err_msg=name)


def test_a_mesh_of_one_size_with_other_names(toy_spec: MeshSpec) -> None:
    seen = BlackBoxMesh(toy_spec, 3, 4).simulate(FEW)
    assert seen.head_injected.tolist() == seen.head_ejected.tolist() == [0, 2, 9, 10]
    assert seen.tail_injected.tolist() == seen.tail_ejected.tolist() == [1, 4, 9, 10]
    assert seen.node.tolist() == [3, 9, 9, 11]


def test_everything_that_passes_a_held_node_is_observed(toy_spec: MeshSpec) -> None:
    log = BlackBoxMesh(toy_spec, 3, 4).observe(FEW, (9,))
    # 0 injected or 1 ejected, node, cycle, last bit
    assert log[:, :4].tolist() == [[0, 0, 0, 0], [1, 3, 0, 0], [0, 0, 1, 1], [1, 3, 1, 1]]
    assert (log[0::2, 4] == log[1::2, 4]).all()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (1, "packet 0 ejected at node 3: flit 0 has payload 0xb5c3, expected 0xa5c3"),
        *(
            pytest.param(number, message, marks=pytest.mark.slow)  # each is a build of its own
            for number, message in (
                (2, r"missing \[\(0, 3\), .* never sent there \[\(0, 2\)"),
                (3, "stands still since cycle 11: 7 of 7 flits injected, 0 of 7 ejected"),
                (4, "packet 0 ejected at node 3: flit 0 .* last bit 1"),
            )
        ),
    ],
)
def test_faults_are_seen(changed_toy: Changed, fault: int, message: str) -> None:
    spec = changed_toy(("value = 0", f"value = {fault}"), ('name = "toy"', 'name = "faulty"'))
    with pytest.raises(HangError if fault == 3 else SimulationError, match=message):
        BlackBoxMesh(spec, 3, 4).simulate(FEW)


def test_the_folder_of_a_failed_run_is_kept_unless_it_was_tried(
    changed_toy: Changed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = BlackBoxMesh(
        changed_toy(("value = 0", "value = 1"), ('"toy"\n\n', '"faulty"\n\n')), 3, 4
    )
    runs = tmp_path / "runs"
    runs.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(runs))
    with pytest.raises(SimulationError):
        mesh.simulate(FEW, keep_failures=False)
    assert not [*runs.iterdir()]
    with pytest.raises(SimulationError) as caught:
        mesh.simulate(FEW)
    (kept,) = runs.iterdir()
    assert str(caught.value).endswith(f"; see {kept}")


def test_a_port_that_is_not_there(changed_toy: Changed) -> None:
    spec = changed_toy(('inject_valid = "send_valid"', 'inject_valid = "offer_valid"'))
    with pytest.raises(SimulationError) as caught:
        BlackBoxMesh(spec, 3, 4).build()
    first = str(caught.value).splitlines()[1]
    assert first.startswith("%Error") and "Pin not found: 'offer_valid'" in first


def test_flits_of_another_width(changed_toy: Changed) -> None:
    spec = changed_toy(("bits = 64", "bits = 65"))
    with pytest.raises(SimulationError) as caught:
        BlackBoxMesh(spec, 3, 4).simulate(FEW)
    assert (
        "send_flit: found 864 bits; by the specification: 876" in str(caught.value).splitlines()[1]
    )


def test_a_folder_of_models_that_cannot_be_made(
    toy_spec: MeshSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    for cache in (file, file / "models"):
        monkeypatch.setenv("WAFERTLM_CACHE", str(cache))
        with pytest.raises(InputError) as caught:
            BlackBoxMesh(toy_spec, 3, 4).build()
        assert str(caught.value).startswith(f"$WAFERTLM_CACHE: found {cache}: ")


def test_a_size_that_cannot_be(toy_spec: MeshSpec) -> None:
    with pytest.raises(InputError, match="found size 4x4"):
        BlackBoxMesh(toy_spec, 4, 4)


@pytest.mark.slow
def test_a_function_on_which_this_verilator_breaks_is_built_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "mask_mesh"
    shutil.copytree(REPOSITORY / "docs" / "custom_rtl" / "mask_mesh", folder)
    fifo = folder / "mask_fifo.sv"
    function = (
        "  function automatic logic [IndexWidth-1:0] next(input logic [IndexWidth-1:0] index);\n"
        "    return (index == End) ? '0 : index + IndexWidth'(1);\n"
        "  endfunction\n"
    )
    text = fifo.read_text()
    for old, new in (
        ("  flit_t places_q [Depth];", f"{function}  flit_t places_q [Depth];"),
        ("(read_q == End) ? '0 : read_q + IndexWidth'(1)", "next(read_q)"),
        ("(write_q == End) ? '0 : write_q + IndexWidth'(1)", "next(write_q)"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    fifo.write_text(text)
    seen = BlackBoxMesh(load_spec(folder / "mask_mesh.toml"), 3, 4).simulate(FEW)
    assert seen.tail_ejected.min() > 0
