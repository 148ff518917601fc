"""What tests of the report have in common."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.wafertlm.report.pages import kernel_run, serve_run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with a kernel run and its map, and a serving run and its requests."""
    folder = tmp_path / "results"
    (folder / "wafer").mkdir(parents=True)
    (folder / "wafer" / "summa.json").write_text(json.dumps(kernel_run()))
    tiles = np.arange(24).reshape(4, 6)
    np.savez_compressed(
        folder / "wafer" / "summa.npz",
        finish_cycle=1000 + tiles,
        matrix_busy_cycles=tiles,
        wait_cycles=10 * tiles,
    )
    (folder / "chat.json").write_text(json.dumps(serve_run()))
    rows = "arrival_s,ttft_s,e2e_s,output_tokens,mean_tbt_ms\n0,1,1,1,\n1,2,4,3,1000\n2,1,2,2,900\n"
    (folder / "chat.csv").write_text(rows)
    return folder
