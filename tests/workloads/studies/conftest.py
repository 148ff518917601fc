"""Pictures of studies are drawn as SVG alone: storing PDF, too, takes most of the time.

That each is stored as both is shown by `tests/tlm/test_plotting.py` and, of a study,
`tests/wafertlm/test_study.py`.
"""

from pathlib import Path
from typing import Any

import pytest

from tlm import plotting


@pytest.fixture(autouse=True)
def no_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    save = plotting.save

    def save_svg(figure: Any, path: Path, **how: Any) -> None:
        if path.suffix != ".pdf":
            save(figure, path, **how)

    monkeypatch.setattr(plotting, "save", save_svg)
