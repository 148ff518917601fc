"""A chip profile that does not fit is refused, and the message names the file and the field."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tlm.chips import chip_names, find_tiles, load_chip
from tlm.chips import profile as chip_profile
from tlm.chips.parts import matrix_engine
from tlm.compute.tiled_systolic import TiledSystolic
from tlm.compute.vector_product import Faster, VectorProduct
from tlm.errors import InputError

RTL = (Path(chip_profile.__file__).parent / "rtl.toml").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of profiles."""
    monkeypatch.setattr(chip_profile, "_FOLDER", tmp_path)
    load_chip.cache_clear()
    yield tmp_path
    load_chip.cache_clear()


@pytest.mark.parametrize("name", [name for name in chip_names() if name != "rtl-RxC"] + ["rtl-4x4"])
def test_every_profile_loads(name: str) -> None:
    assert load_chip(name).name == name


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "matrix_of.int16",
            "matrix_of.int61",
            "tile.matrix_of: found int61; allowed, of dtypes: int8, int16",
        ),
        (
            "sram_banks = 8",
            "sram_banks = 0",
            "tile.sram_banks: Input should be greater than 0 (found 0)",
        ),
        (
            "sram_banks",
            "sram_bank",
            "tile.sram_bank: Extra inputs are not permitted (found 8); allowed: matrix, dtypes, "
            "matrix_of, vector_flop_per_cycle, sram_kib, sram_banks, sram_bytes_per_cycle",
        ),
    ],
)
def test_a_profile_that_does_not_fit_is_refused(
    folder: Path, old: str, new: str, fault: str
) -> None:
    assert RTL.count(old) == 1
    (folder / "rtl.toml").write_text(RTL.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as error:
        load_chip("rtl-4x4")
    assert str(error.value) == f"rtl.toml: {fault}"


def test_a_type_of_elements_chooses_the_matrix_engine(folder: Path) -> None:
    (folder / "rtl.toml").write_text(RTL, encoding="utf-8")
    chip = load_chip("rtl-4x4")
    sizes = {dtype: chip.for_dtype(dtype).tile.matrix.rows for dtype in chip.tile.dtypes}
    assert sizes == {"int8": 8, "int16": 4}


def test_lanes_that_multiply_are_lanes_of_the_vector_engine() -> None:
    with pytest.raises(InputError) as error:
        find_tiles("npusim-large", ("tile.vector_flop_per_cycle=127",))
    assert str(error.value) == (
        "--set: chip 'npusim-large': tile: matrix.lane_alus: found 64, with vector_flop_per_cycle "
        "127; allowed: 0, or a lane at least: 128 operations a cycle"
    )
    alone = ("tile.vector_flop_per_cycle=127", "tile.matrix.lane_alus=0")
    engine = matrix_engine(find_tiles("npusim-large", alone), 16)
    assert engine == TiledSystolic(128, 128, "stream-drain")


def test_the_vector_engine_reads_what_local_memory_gives() -> None:
    engine = matrix_engine(load_chip("npusim-large"), 16)
    assert isinstance(engine, Faster)
    assert engine.other == VectorProduct(64, 64, 512.0)


@pytest.mark.parametrize(
    ("chip", "change", "fault"),
    [
        (
            "npusim-large",
            "residency.buffer_kib=32000",
            "residency: buffer_kib and activation_kib: found 34048 together; allowed: at most "
            "tile.sram_kib, 32768",
        ),
        (
            "wse2",
            "residency={buffer_kib=1, activation_kib=1}",
            "residency: found on a chip of dies or without memory; allowed: with [memory] and "
            "without [dies]",
        ),
        (
            "npusim-large",
            "area.array_elements=[4096, 1024]",
            "area: array_elements: found [4096, 1024]; allowed: values that rise",
        ),
        (
            "npusim-large",
            "area.core_mm2=[[1.0, 2.0]]",
            "area: core_mm2: found rows of [2] figures; allowed: [5, 5]",
        ),
    ],
)
def test_what_a_profile_keeps_and_measures(chip: str, change: str, fault: str) -> None:
    with pytest.raises(InputError) as error:
        find_tiles(chip, (change,))
    assert str(error.value) == f"--set: chip '{chip}': {fault}"
