"""Warnings of PLMR: which kernels are told apart, and which are walked over once."""

from tlm.chips import load_chip
from wafertlm.kernel import KernelOptions, Setup, resolve
from wafertlm.plmr import RunKernel, plmr_warnings
from workloads.kernels.catalogue import KERNELS
from workloads.machine.network import chip_network
from workloads.machine.place import chip_place
from workloads.models import find_model
from workloads.serving.price.regions import regions_of
from workloads.serving.price.reshuffle import Reshuffle, reshuffled


def test_exchanges_of_a_line_are_told_apart() -> None:
    """They differ in who sends to whom alone: the first one's verdict stood for all."""
    chip, model = load_chip("wse2"), find_model("llama3-8b")
    whole = chip.grid.rows, chip.grid.cols
    place = chip_place(chip, whole, chip_network(chip).timing, 16, 32)
    small, middle, large = (regions_of(model, chip, side, whole) for side in (300, 600, 840))
    told = []
    for source in (small, middle):
        (row, mapped), _ = reshuffled(Reshuffle(source, large), place)
        program = KERNELS["exchange"].program(mapped.plan)
        told += plmr_warnings(chip, [RunKernel.of("exchange", row.place, mapped.plan, program)])
    assert len(set(told)) == len(told) == 2


def _setup(kernel: str, shape: str, *, at_root: bool = False) -> Setup:
    options = KernelOptions(
        kernel=kernel, chip="wse2", grid="8x8", shape=shape, dtype="fp16", at_root=at_root
    )
    return resolve(options)


def test_products_of_other_sizes_are_alike() -> None:
    """A wafer that serves runs many, and each would take half a second."""
    assert _setup("mesh-gemm", "64,64,64").told == _setup("mesh-gemm", "512,64,96").told
    vector = _setup("mesh-gemv", "1,64,64")
    assert vector.told == _setup("mesh-gemv", "1,640,96").told
    assert vector.told != _setup("mesh-gemv", "1,64,64", at_root=True).told
