"""Files that appear whole or not at all."""

from pathlib import Path

import pytest

from tlm.files import whole_file


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), whole_file(path) as scratch:
        scratch.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
