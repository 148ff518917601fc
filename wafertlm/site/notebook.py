"""``python -m wafertlm.site.notebook FILE``: run a notebook, and store what it shows in it.

Cells run one after the other in one namespace, as in Jupyter, which is not needed for it. A cell
shows what it prints, and its last expression: a table of HTML, a figure as SVG, or text.
"""

import ast
import io
import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tlm.files import whole_file

Notebook = dict[str, Any]


def run_notebook(notebook: Notebook) -> Notebook:
    """The notebook with the outputs of its cells, run from the first to the last.

    Args:
        notebook: In the format of Jupyter, version 4; it stays as it is.

    Raises:
        Exception: whatever a cell raises.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            source = "".join(cell["source"])
            outputs = _run(source, f"cell {count}", names, count)
            cell = cell | {"execution_count": count, "outputs": outputs}
        cells.append(cell)
    return notebook | {"cells": cells}


def printed(notebook: Notebook) -> list[str]:
    """What each of the cells with code prints."""
    return [
        "".join("".join(out["text"]) for out in cell["outputs"] if out["output_type"] == "stream")
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def _run(source: str, told: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run a cell; what it prints, and what its last expression is."""
    tree = ast.parse(source, told)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(io.StringIO()) as stream:
        exec(compile(tree, told, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), told, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := stream.getvalue():
        lines = text.splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
    if value is not None:
        data = {kind: each.splitlines(keepends=True) for kind, each in _shown(value).items()}
        shown = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
        outputs.append(shown | {"data": data})
    return outputs


def _shown(value: Any) -> Mapping[str, str]:
    """A value as Jupyter shows it, by the type of each way."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from tlm.plotting import STYLE

    ways = {"text/plain": repr(value)}
    if isinstance(value, Figure):
        stream = io.StringIO()
        with rc_context(STYLE):
            value.savefig(stream, format="svg", metadata={"Date": None})
        ways["image/svg+xml"] = stream.getvalue()
    elif hasattr(value, "_repr_html_"):
        ways["text/html"] = value._repr_html_()
    return ways


def main() -> None:
    """Run the notebooks that are named, and store each with its outputs."""
    for path in map(Path, sys.argv[1:]):
        ran = run_notebook(json.loads(path.read_text(encoding="utf-8")))
        with whole_file(path) as scratch:
            text = json.dumps(ran, indent=1, ensure_ascii=False)
            scratch.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
