"""Partitioned products on locked channels: docs/custom_rtl/locked_mesh against the model."""

from dataclasses import replace

import pytest

from cosim.network.interconnect import RtlInterconnect
from cosim.network.model import LoopModel
from cosim.spec.mesh import load_spec
from tests.specifications import LOCKED_TIMING
from tests.workloads.kernels.products import place
from tlm.calibrated import REPOSITORY
from tlm.compute.systolic import FoldTiming, Systolic
from tlm.engines.at import run_at
from tlm.interconnect.handshake import HandshakeMesh
from workloads.kernels.gemm.partition_gemm import partition_gemm
from workloads.kernels.gemm.partition_search import find_partition

SPEC = load_spec(REPOSITORY / "docs" / "custom_rtl" / "locked_mesh" / "locked_mesh.toml")
_ENGINE = Systolic(8, 8, "weight-stationary", FoldTiming(0, 0, 0))


def both(placement: str, rows: int, cols: int, partition: str) -> tuple[int, int]:
    """Cycles of a product bound by its messages: in the model, and with the mesh in Verilog."""
    tiles = replace(place(rows, cols), timing=LOCKED_TIMING, placement=placement, matrix=_ENGINE)
    program = partition_gemm(find_partition((16, 64, 64), tiles, partition))
    model = run_at(program, LOCKED_TIMING, HandshakeMesh(rows, cols, LOCKED_TIMING)).cycles
    verilog = LoopModel(SPEC, rows, cols)
    verilog.build()
    with RtlInterconnect(verilog) as mesh:
        return model, run_at(program, LOCKED_TIMING, mesh).cycles


@pytest.mark.slow  # a build of half a minute
@pytest.mark.parametrize("partition", ["mn", "k", "2d"])
def test_four_tiles_in_a_line(partition: str) -> None:
    model, verilog = both("linear", 1, 4, partition)
    assert model == pytest.approx(verilog, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("partition", ["mn", "k", "2d"])
@pytest.mark.parametrize("placement", ["linear", "interleave", "ring", "mesh"])
@pytest.mark.parametrize("grid", [(2, 2), (4, 4)])
def test_more_tiles(grid: tuple[int, int], placement: str, partition: str) -> None:
    model, verilog = both(placement, *grid, partition)
    assert model == pytest.approx(verilog, rel=0.02)
