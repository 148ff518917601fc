"""A mesh of one crossbar, whose flits carry faults."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cosim.network.model import LoopModel
from cosim.spec.mesh import load_spec
from tests.specifications import TOY

_TOY = TOY.parent

#: The toy with pieces of its specification replaced, each of which stands there once.
ChangedToy = Callable[..., LoopModel]


@pytest.fixture
def changed_toy(tmp_path: Path) -> ChangedToy:
    def changed(*changes: tuple[str, str], waves: bool = False) -> LoopModel:
        text = (_TOY / "toy.toml").read_text()
        for old, new in (*changes, ('"toy.sv"', f'"{_TOY / "toy.sv"}"'), ('["."]', f'["{_TOY}"]')):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (tmp_path / "toy.toml").write_text(text)
        return LoopModel(load_spec(tmp_path / "toy.toml"), 3, 4, waves=waves)

    return changed
