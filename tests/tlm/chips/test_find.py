"""Chips of files and with changed figures; a fault names where, the field, what was found."""

from pathlib import Path

import pytest

from tlm.chips import AnyChip, find_chip, find_tiles, load_chip
from tlm.chips.find import all_chip_names, shipped_as, text_of
from tlm.chips.gpu import GpuBox
from tlm.errors import InputError

_SHIPPED = [name for name in all_chip_names() if name != "rtl-RxC"] + ["rtl-3x5"]


def fault(asked: object, *changes: str) -> str:
    with pytest.raises(InputError) as caught:
        find_chip(str(asked), changes)
    return str(caught.value)


@pytest.fixture
def flat32(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text_of("flat32"), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", _SHIPPED)
def test_what_is_shown_of_a_chip_is_a_file_of_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text_of(name), encoding="utf-8")
    read = find_chip(str(path))
    assert read == find_chip(name).model_copy(update={"name": "mine"})
    assert shipped_as(read) == name


def test_a_file_may_name_its_chip(flat32: Path) -> None:
    flat32.write_text('name = "my own"\n' + flat32.read_text())
    assert find_chip(str(flat32)).name == "my own"


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ("noc.hop_cycles=2", "noc.hop_cycles", 2),
        ("tile.matrix.height = 16", "tile.matrix.height", 16),
        ("clock_hz=1e9", "clock_hz", 1e9),
        ("memory.device=hbm3", "memory.device", "hbm3"),
        ('memory.device="hbm3"', "memory.device", "hbm3"),
        ("memory.per_tile=true", "memory.per_tile", True),
        ('tile.dtypes=["fp16", "bf16"]', "tile.dtypes", ("fp16", "bf16")),
        ("limits.routing_paths=8", "limits.routing_paths", 8),  # a table that the file leaves out
    ],
)
def test_a_figure_is_changed(change: str, field: str, value: object, flat32: Path) -> None:
    for asked in ("flat32", str(flat32)):
        found: object = find_chip(asked, [change])
        for part in field.split("."):
            found = getattr(found, part)
        assert found == value
        assert shipped_as(find_chip(asked, [change])) is None
    assert load_chip("flat32") == find_chip("flat32")  # what is shipped stays


def test_changes_are_made_one_after_the_other() -> None:
    foreign = ["tile.matrix={kind='tiled-systolic', rows=64, cols=64}", "tile.matrix.rows=32"]
    engine = find_tiles("flat32", foreign).tile.matrix
    assert (engine.kind, engine.model_dump()["rows"]) == ("tiled-systolic", 32)


def test_gpus_are_changed_too() -> None:
    box = find_chip("h100x2", ["count=3", "efficiency.gemm=0.5"])
    assert isinstance(box, GpuBox)
    assert (box.count, box.efficiency.gemm) == (3, 0.5)


_NOC = (
    "kind, flit_bytes, hop_cycles, ejection_cycles, reduce_cycles, buffer_flits, packet_flits, "
    "cut_through, arbiter, channel, request_cycles, acknowledge_cycles, data_cycles"
)


@pytest.mark.parametrize(
    ("chip", "change", "message"),
    [
        (
            "flat32",
            "noc.hops=2",
            "--set: chip 'flat32': noc.hops: Extra inputs are not permitted (found 2); "
            f"allowed: {_NOC}",
        ),
        (
            "flat32",
            "noc.hop_cycles=two",
            "--set: chip 'flat32': noc.hop_cycles: Input should be a valid integer (found 'two')",
        ),
        (
            "flat32",
            "noc.hop_cycles=true",
            "--set: chip 'flat32': noc.hop_cycles: Input should be a valid integer (found True)",
        ),
        (
            "flat32",
            "noc.hop_cycles=-1",
            "--set: chip 'flat32': noc.hop_cycles: Input should be greater than 0 (found -1)",
        ),
        (
            "flat32",
            "clock_hz=nan",
            "--set: chip 'flat32': clock_hz: Input should be a finite number (found nan)",
        ),
        ("flat32", "noc=3", f"--set: chip 'flat32': noc: found 3; allowed: a table with {_NOC}"),
        (
            "flat32",
            "clock_hz.x=3",
            "--set: found 'clock_hz.x=3'; clock_hz is no table, it is 965000000.0",
        ),
        (
            "flat32",
            "tile.matrix.kind=foo",
            "--set: chip 'flat32': tile.matrix.kind: found 'foo'; allowed: systolic, redmule, "
            "vector-mac, tiled-systolic",
        ),
        (
            "wse2",
            "memory.channels=4",
            "--set: chip 'wse2': memory.device: found nothing; needed beside what may be left "
            "out: device, stacks, channels, bandwidth_bytes_per_s, capacity_bytes, latency_cycles",
        ),
        ("flat32", "noc", "--set: found 'noc'; write TABLE.FIELD=VALUE, as noc.hop_cycles=2"),
        (
            "flat32",
            "grid.rows=[1,",
            "--set: found 'grid.rows=[1,'; allowed: a value as TOML writes it, or a word",
        ),
        (
            "rtl-4x4",
            "noc.hop_cycles=2",
            "--set: chip 'rtl-4x4': noc: hop_cycles: found 2; allowed: kind = \"calibrated\" "
            "alone, as the RTL decides all else",
        ),
        (
            "rtl-4x4",
            "tile.sram_kib=128",
            "--set: chip 'rtl-4x4': tile.sram_kib: found 128.0; allowed: 64.0, as the RTL decides "
            'it (calibration = "rtl")',
        ),
        (
            "h100x2",
            "memory_bytes=1.5",
            "--set: chip 'h100x2': memory_bytes: Input should be a valid integer (found 1.5)",
        ),
    ],
)
def test_a_change_that_cannot_be_names_the_field(chip: str, change: str, message: str) -> None:
    assert fault(chip, change) == message


def test_the_grid_of_the_rtl_may_change() -> None:
    assert find_tiles("rtl-4x4", ["grid.rows=8"]).grid.rows == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rows = 32", 'rows = "32"', "grid.rows: Input should be a valid integer (found '32')"),
        ("hop_cycles = 1\n", "", "noc.hop_cycles: found nothing; needed beside what may be left"),
        ("[grid]", "[grids]", "grids: Extra inputs are not permitted (found {'rows': 32"),
        ("hop_cycles = 1", "hop_cycle = 1", "noc.hop_cycle: Extra inputs are not permitted (fou"),
        ('kind = "redmule"', "", "tile.matrix.kind: found nothing; allowed: systolic, redmule"),
        ("height = 32", "height = -32", "tile.matrix.height: Input should be greater than 0"),
        ('device = "hbm4"', 'device = "sram"', "memory.device: Input should be 'hbm2', 'hbm3' or"),
        ("title", "titel", "titel: Extra inputs are not permitted"),
        (
            "title",
            'calibration = "rtl"\ntitle',
            'noc.kind: found foreign; allowed: calibrated, as the RTL decides it (calibration = "',
        ),
        (
            "title",
            "peak_flops = 1e12\ntitle",  # of GPUs, then
            "clock_hz: Extra inputs are not permitted (found ",
        ),
        ("[tile]", "[tile", "not TOML: "),
    ],
)
def test_a_fault_in_a_file_is_named(flat32: Path, old: str, new: str, message: str) -> None:
    flat32.write_text(flat32.read_text().replace(old, new, 1))
    assert fault(flat32).startswith(f"{flat32}: {message}")


def test_a_tile_of_the_project_is_calibrated(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text_of("rtl-4x4").replace('calibration = "rtl"', ""))
    assert fault(path) == (
        f'{path}: tile.matrix.kind: found systolic; allowed with calibration = "rtl" alone: it is '
        "the project's own tile, which is measured"
    )


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "chip.json").write_text("{}")
    reasons = {
        "none.toml": "cannot be read: No such file or directory",
        "folder.toml": "cannot be read: Is a directory",
        "bytes.toml": "cannot be read: not UTF-8",
        "chip.json": "found JSON; allowed as a chip: a file that ends in .toml",
    }
    for name, reason in reasons.items():
        assert fault(tmp_path / name) == f"{tmp_path / name}: {reason}"


def test_a_server_of_gpus_runs_no_programs(tmp_path: Path) -> None:
    path = tmp_path / "box.toml"
    path.write_text(text_of("a100x4"))
    for asked, name in (("a100x4", "a100x4"), (str(path), "box")):
        with pytest.raises(InputError, match=rf"--chip: '{name}' is a server of GPUs, which lacks"):
            find_tiles(asked)
    found: AnyChip = find_chip(str(path))
    assert isinstance(found, GpuBox)
