"""Meshes of other shapes, and Verilog that is not what was measured."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.routers.rtl_mesh import RtlMesh
from cosim.verilated.cache import cache_folder
from tlm.calibrated import REPOSITORY
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import Deliveries, Packets
from tlm.interconnect.traffic import Traffic

pytestmark = [pytest.mark.slow, pytest.mark.rtl]

OUT_FLIT = "out_flit[Node][Local*FlitWidth +: FlitWidth]"
EJECTION = f"""      assign eject_valid_o[Node] = out_valid[Node][Local];
      assign out_ready[Node][Local] = eject_ready_i[Node];
      assign eject_flit_o[Node*FlitWidth +: FlitWidth] = {OUT_FLIT};
"""
REGISTERED_EJECTION = f"""      logic valid_q;
      logic [FlitWidth-1:0] flit_q;
      assign out_ready[Node][Local] = !valid_q || eject_ready_i[Node];
      assign eject_valid_o[Node] = valid_q;
      assign eject_flit_o[Node*FlitWidth +: FlitWidth] = flit_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) valid_q <= 1'b0;
        else if (out_ready[Node][Local]) valid_q <= out_valid[Node][Local];
        if (out_ready[Node][Local]) flit_q <= {OUT_FLIT};
      end
"""
PROBE = """
import json
from calibration.experiment import LawContradictedError, run
from calibration.routers.listed import experiments
from calibration.routers.project import ProjectSubject
from calibration.store import status
from tlm.calibrated import REPOSITORY

found = {"stale": [name for name, problem in status().items() if problem], "at": str(REPOSITORY)}
for experiment in experiments(ProjectSubject())[:2]:
    try:
        result = run(experiment, quick=True)
        found |= {name: parameter.value for name, parameter in result.parameters.items()}
    except LawContradictedError as error:
        found[experiment.name] = str(error)
print(json.dumps(found))
"""


@pytest.mark.parametrize("mesh", [RtlMesh(3, 5, 2), RtlMesh(4, 4, 8)], ids=["3x5x2", "4x4x8"])
def test_other_meshes_take_the_cycles_of_the_model(mesh: RtlMesh) -> None:
    timing = replace(rtl_timing(), fifo_depth=mesh.fifo_depth)
    for rate, flits, multicasts in ((0.1, 3, 0.0), (0.5, 6, 0.0), (0.2, 4, 0.2), (0.9, 1, 0.3)):
        packets = Traffic(
            mesh.rows, mesh.cols, "uniform", rate, flits, 800, 9, multicasts, mesh.fifo_depth
        ).packets()
        assert_equal(mesh, packets, timing.fifo_depth)


def assert_equal(mesh: RtlMesh, packets: Packets, depth: int) -> None:
    timing = replace(rtl_timing(), fifo_depth=depth)
    model = HandshakeMesh(mesh.rows, mesh.cols, timing).simulate(packets)
    rtl = mesh.simulate(packets)
    for name in Deliveries.__slots__:
        np.testing.assert_array_equal(getattr(model, name), getattr(rtl, name), err_msg=name)


@pytest.fixture
def calibrated_copy(tmp_path: Path) -> Callable[[str, str, str], dict[str, Any]]:
    """Identifies parameters on a copy of the sources with one piece of Verilog replaced."""

    def identify(file: str, old: str, new: str) -> dict[str, Any]:
        for folder in ("rtl", "calibration", "cosim", "tlm", "workloads"):
            shutil.copytree(REPOSITORY / folder, tmp_path / folder)
        path = tmp_path / "rtl" / "noc" / file
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        environment = os.environ | {
            "PYTHONPATH": str(tmp_path),
            "WAFERTLM_CACHE": str(cache_folder()),
        }
        outcome = subprocess.run(
            [sys.executable, "-c", PROBE],
            env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(outcome.stdout.splitlines()[-1])
        assert found.pop("at") == str(tmp_path)
        return found

    return identify


NOC_RESULTS = [
    *("buffering", "collective", "contention", "hang", "mix", "multicast", "reduction", "relay"),
    *("tile", "tile-queues", "tile-streams", "traffic", "unicast"),
]


def test_a_register_at_the_ejection_is_seen(
    calibrated_copy: Callable[[str, str, str], dict[str, Any]],
) -> None:
    found = calibrated_copy("mesh.sv", EJECTION, REGISTERED_EJECTION)
    # A place that is filled in the cycle in which it becomes free: no output of the model has such.
    assert "no interval from flit to flit explains every transfer" in found.pop("unicast")
    assert found == {"stale": NOC_RESULTS, "fifo_depth": 4, "output_depth": 0, "tile_depth": 1}


def test_a_shallower_buffer_is_seen(
    calibrated_copy: Callable[[str, str, str], dict[str, Any]],
) -> None:
    room = "assign ready_o = (offered_reduce ? operand_free_o : free_o) "
    found = calibrated_copy("input_port.sv", room + "!= '0;", room + "> CountWidth'(1);")
    assert found == {
        "stale": NOC_RESULTS, "fifo_depth": 3, "output_depth": 0, "tile_depth": 0,
        "ejection_cycles": 1, "hop_cycles": 1, "serialisation_cycles": 1, "link_interval_cycles": 1,
    }  # fmt: skip
