"""A program on models of a chip's routers."""

from tlm.chips import load_chip
from tlm.chips.parts import chip_router, noc_timing, own_tile
from tlm.on_routers import formula_memory, run_on_routers
from workloads.kernels.catalogue import KERNELS
from workloads.machine.place import chip_place


def test_memory_and_tiles_take_part_where_they_are_given() -> None:
    chip = load_chip("rtl-4x4")
    place = chip_place(chip, (4, 4), noc_timing(chip), 8, 32, memory=True)
    kernel, router, tile = KERNELS["stream-gemm"], chip_router(chip), own_tile(chip)
    program = kernel.program(kernel.planned((16, 16, 16), place))
    plain, mesh = run_on_routers(program, router)
    assert mesh.waited_cycles.shape[:2] == (4, 4)
    loaded, mesh = run_on_routers(program, router, offchip=formula_memory(place.offchip))
    assert mesh.waited_cycles.shape[0] > 4
    banked, _ = run_on_routers(program, router, tile=tile)
    assert plain.cycles < min(loaded.cycles, banked.cycles)
    assert formula_memory(None) is None
