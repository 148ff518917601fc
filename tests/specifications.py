"""Specifications of custom meshes: the project's described as one, and a toy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cosim.spec.mesh import MeshSpec, load_spec
from tlm.calibrated import REPOSITORY
from tlm.interconnect.zero_load import NocTiming

_MESH = REPOSITORY / "docs" / "custom_rtl" / "mesh.toml"
TOY = Path(__file__).parent / "cosim" / "toy" / "toy.toml"

#: docs/custom_rtl/locked_mesh as it stands, in the model.
LOCKED_TIMING = NocTiming(
    hop_cycles=2,
    ejection_cycles=2,
    fifo_depth=2,
    multicast_gap_cycles=0,
    flit_bytes=8,
    output_depth=2,
    cut_through=False,
    line=(1, 2, 3, 4, 0, 5),
    lock_on_transfer=True,
    channel="output",
    acknowledge_cycles=2,
)

#: Loads a specification after replacing pieces of its text, each of which stands there once.
Changed = Callable[..., MeshSpec]


@pytest.fixture
def changed_mesh(tmp_path: Path) -> Changed:
    return _changer(_MESH, tmp_path)


@pytest.fixture
def changed_toy(tmp_path: Path) -> Changed:
    return _changer(TOY, tmp_path)


@pytest.fixture
def mesh_spec() -> MeshSpec:
    return load_spec(_MESH)


@pytest.fixture
def toy_spec() -> MeshSpec:
    return load_spec(TOY)


def _changer(path: Path, folder: Path) -> Changed:
    """Changes a specification elsewhere: its files are then named from the root."""

    def changed(*changes: tuple[str, str]) -> MeshSpec:
        text = path.read_text()
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        for name in ("../../rtl", "toy.sv"):
            text = text.replace(f'"{name}', f'"{path.parent / name}')
        text = text.replace('["."]', f'["{path.parent}"]')
        (folder / "spec.toml").write_text(text)
        return load_spec(folder / "spec.toml")

    return changed
