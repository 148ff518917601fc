"""Table I, and section V-C for the wafer: what the chips' files give against what the paper says.

These are not predicted, but given to the model. A difference is the paper's own: its figures do not
all follow from each other.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tlm.chips import Chip, load_chip
from tlm.chips.parts import noc_timing, vector_engine
from workloads.studies.flatattention import cases, wafer


class ChipFact(NamedTuple):
    """A figure of a chip: its row's name, unit, value in the chip's file, published value, note."""

    name: str
    unit: str
    model: float
    paper: float
    note: str


def chip_facts() -> Iterator[ChipFact]:
    """Rows of table I, and of the wafer's dies."""
    chip, at = load_chip(cases.CHIP), f"TI/{cases.CHIP}"
    tile, told = chip.tile, "table I"
    engine = 2.0 * tile.matrix.compute().macs_per_cycle
    yield ChipFact(f"{at}/chip/tiles", "tiles", chip.grid.rows * chip.grid.cols, 32 * 32, told)
    yield ChipFact(f"{at}/chip/clock", "MHz", chip.clock_hz / 1e6, 965.0, told)
    own = "table I; its own tiles, engines and clock give 1,012"
    yield ChipFact(f"{at}/chip/peak", "TFLOPS", _peak_tflops(chip), 988.0, own)
    yield ChipFact(f"{at}/NoC/link_width", "bit", 8.0 * noc_timing(chip).flit_bytes, 1024.0, told)
    yield ChipFact(f"{at}/tile/engine", "FLOP/cycle", engine, 1024.0, told)
    vector = 2.0 * vector_engine(chip).lanes
    yield ChipFact(f"{at}/tile/vector", "FLOP/cycle", vector, 4 * 32, "table I: 4 Spatz of 32")
    yield ChipFact(f"{at}/tile/L1", "KiB", tile.sram_kib, 384.0, told)
    assert tile.sram_bytes_per_cycle is not None
    yield ChipFact(f"{at}/tile/L1_rate", "B/cycle", tile.sram_bytes_per_cycle, 512.0, told)
    yield ChipFact(f"{at}/HBM/bandwidth", "TB/s", _memory_tb_s(chip), 2.0, "table I: of one stack")
    assert chip.memory is not None
    yield ChipFact(f"{at}/HBM/channels", "channels", chip.memory.channels, 32.0, told)

    die, at = load_chip(wafer.CHIP), f"TI/{wafer.CHIP}"
    own = "section V-C; 1,979 in table II; tiles, engines and 1.9 GHz give 1,992"
    yield ChipFact(f"{at}/die/peak", "TFLOPS", _peak_tflops(die), 1976.0, own)
    two = "section V-C: of two stacks"
    yield ChipFact(f"{at}/HBM/bandwidth", "TB/s", _memory_tb_s(die), 4.0, two)


def _peak_tflops(chip: Chip) -> float:
    """Of all matrix engines of a die; a multiply-add counts as two."""
    engines = chip.grid.rows * chip.grid.cols * chip.tile.matrix.compute().macs_per_cycle
    return 2e-12 * engines * chip.clock_hz


def _memory_tb_s(chip: Chip) -> float:
    assert chip.memory is not None
    return chip.memory.bandwidth_bytes_per_s / 1e12
