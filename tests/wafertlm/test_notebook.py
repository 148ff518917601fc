"""Notebooks run from their first cell to the last, and keep what they show."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tlm.calibrated import REPOSITORY
from wafertlm.site.notebook import main, printed, run_notebook

_SWEEP = REPOSITORY / "docs" / "notebooks" / "buffer_depth.ipynb"


def code(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": []}


def test_cells_share_their_names_and_show_their_last_expression(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "class Table:\n    def _repr_html_(self):\n        return '<table></table>'\nTable()"
    figure = "from matplotlib.figure import Figure\nfigure = Figure()\nfigure"
    cells = [
        code("a = 2\nprint(a)\na + 1"),
        code("print(a)\na = None\na"),
        code(table),
        code(figure),
    ]
    given = {"cells": [{"cell_type": "markdown", "source": ["# A"]}, *cells], "nbformat": 4}
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(given))
    monkeypatch.setattr(sys, "argv", ["notebook", str(path)])
    main()
    ran = json.loads(path.read_text())
    assert ran["cells"][0] == given["cells"][0]
    assert printed(ran) == ["2\n", "2\n", "", ""]
    shown = [
        [out.get("data", {}).keys() for out in cell["outputs"]][-1:] for cell in ran["cells"][1:]
    ]
    assert [{*keys} for kind in shown for keys in kind] == [
        {"text/plain"},
        set(),
        {"text/plain", "text/html"},
        {"text/plain", "image/svg+xml"},
    ]
    assert [cell["execution_count"] for cell in ran["cells"][1:]] == [1, 2, 3, 4]


def test_a_fault_in_a_cell_names_it() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_notebook({"cells": [code("a = 1"), code("\n1 / 0")]})
    assert caught.traceback[-1].frame.code.raw.co_filename == "cell 2"


@pytest.mark.rtl
@pytest.mark.slow
def test_the_sweep_of_buffers_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run_notebook(json.loads(_SWEEP.read_text()))
    files, _, told, _ = printed(ran)
    assert len(files.split()) == 3
    means = [float(each) for each in re.findall(r"^\d flits: ([\d.]+) ms", told, re.MULTILINE)]
    assert len(means) == 3 and all(0 < mean < 10_000 for mean in means)
    assert means[-1] <= means[0]  # deeper buffers make nobody wait longer
    assert "image/svg+xml" in ran["cells"][-2]["outputs"][0]["data"]
