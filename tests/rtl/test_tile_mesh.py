"""The mesh of tiles in one piece does in every cycle what the joined nodes do."""

from pathlib import Path

import numpy as np
import pytest

from calibration.simulator import build
from cosim.synthesis.yosys import run_yosys
from cosim.tiles.blocks import encode
from cosim.tiles.descriptors import Descriptor, Wait
from cosim.tiles.image import TileImage
from cosim.tiles.lowering import lower
from cosim.tiles.machine import TileMachine
from cosim.tiles.model import TileModel
from cosim.verilog import TILE_FILES
from tlm.calibrated import REPOSITORY
from tlm.compute.vector_mac import VectorMac
from tlm.compute.vector_unit import VectorUnit
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Engine
from tlm.program.functional import TileBlocks
from workloads.kernels.gemm import mesh_gemm_t, summa
from workloads.kernels.gemm.plan import plan_gemm
from workloads.machine.place import Place

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

BENCH = "tests.rtl.benches.tile_mesh_bench"


@pytest.mark.parametrize("kernel", [summa.summa, mesh_gemm_t.mesh_gemm_t])
@pytest.mark.parametrize(
    "model",
    [
        TileModel(2, 2),
        TileModel(2, 2, stages=2),
        TileModel(2, 2, output_depth=2),
        TileModel(2, 2, y_first=True),
    ],
    ids=["default", "two stages", "output buffers", "y first"],
)
def test_the_same_starts_ends_and_arrivals(model: TileModel, kernel: object) -> None:
    # Unicasts, multicasts, reductions and credits, on two by two tiles.
    assert callable(kernel)
    timing = NocTiming(1, 1, 4, 1, flit_bytes=8)
    place = Place(2, 2, timing, 16, 32, VectorMac(1, 1, 0), VectorUnit(2, 3))
    program = kernel(plan_gemm((16, 16, 16), place))
    lowered = lower(program, model)
    memory = TileBlocks(program)
    for tile, image in lowered.images.items():
        image.memory = {
            place.address: encode(place, memory[name][divmod(tile, 2)])
            for name, place in lowered.places.items()
        }
    with TileMachine(model) as machine:
        run = machine.run(lowered.images)
    loads = [image.loads(model.queue_depth) for image in lowered.images.values()]
    plan = {
        "tiles": model.tiles,
        "loads": [
            [np.column_stack(pair).tolist() for pair in lists] for lists in zip(*loads, strict=True)
        ],
    }
    sources = [*TILE_FILES, REPOSITORY / "rtl" / "tile" / "tile_mesh.sv"]
    events = build("tile_mesh", sources, model.parameters()).run(BENCH, plan, seed=1)
    wanted = [(cycle, "arrival", tile) for tile, cycle in run.arrivals]
    for span in run.spans:
        place = 4 * span.tile + span.engine
        wanted += [(span.start_cycle, "start", place), (span.end_cycle, "end", place)]
    assert sorted(map(tuple, events)) == sorted(wanted)


def test_a_tile_is_synthesizable(tmp_path: Path) -> None:
    files = [f"/repository/{path.relative_to(REPOSITORY).as_posix()}" for path in TILE_FILES]
    read = f"read_slang --threads 1 -D SYNTHESIS --top tile {' '.join(files)}"
    output = run_yosys([read, "hierarchy -check -top tile", "proc", "check -assert"], tmp_path)
    assert "Found and reported 0 problems." in output


def test_a_run_leaves_a_wave_of_every_node(tmp_path: Path) -> None:
    wave = tmp_path / "tiles.vcd"
    image = TileImage({Engine.CONTROL: [Descriptor(Wait(5))]})
    with TileMachine(TileModel(2, 2, waves=True), waves=wave) as machine:
        machine.run({3: image})
    text = wave.read_text()
    assert all(f"$scope module node_{row}_{col} $end" in text for row in (0, 1) for col in (0, 1))
    assert "u_scratchpad" in text
