"""Writing calibration results, whole or not at all."""

from collections.abc import Iterable
from pathlib import Path

from cosim.verilated.toolchain import tool_versions
from tlm.calibrated import (
    REPOSITORY,
    RESULTS_FOLDER,
    CalibrationResult,
    forget,
    source_hashes,
    stored_names,
    stored_result,
)
from tlm.comparisons import (
    CHIPS_FILE,
    LEVELS_FILE,
    TILES_FILE,
    ChipComparison,
    ChipPoint,
    LevelComparison,
    LevelPoint,
    TileComparison,
    TilePoint,
)
from tlm.errors import InputError
from tlm.files import whole_file
from tlm.memory.dram.streams import STREAMS_FILE, DeviceCosts, StreamComparison, StreamPoint
from tlm.sealed import sealed

#: What the levels' timing comes from.
_RESULTS = (
    "unicast",
    "buffering",
    "multicast",
    "reduction",
    "tile",
    "tile-queues",
    "tile-streams",
)
#: What they are made of: the engines, the network, the array, kernels, and what chooses the cases.
_MODELS = (
    "calibration/levels/cases.py",
    "calibration/levels/models.py",
    "tlm/chips",
    "tlm/compute",
    "tlm/engines",
    "tlm/heap.py",
    "tlm/interconnect/calibration.py",
    "tlm/interconnect/handshake",
    "tlm/interconnect/lines.py",
    "tlm/interconnect/packets.py",
    "tlm/interconnect/simpy_network.py",
    "tlm/interconnect/transfer_times.py",
    "tlm/interconnect/zero_load.py",
    "tlm/lockstep.py",
    "tlm/program",
    "tlm/tiles",
    "workloads/kernels",
    "workloads/machine/place.py",
)
#: What tiles with off-chip memory are made of beside.
_OFFCHIP = ("calibration/results/memory.json", "tlm/memory", "tlm/offchip")
#: What streams to DRAM are made of.
_STREAMS = (
    "calibration/memory/streams.py",
    "tlm/memory/block_costs.py",
    "tlm/memory/dram",
    "tlm/memory/tables.py",
)


def save(result: CalibrationResult) -> None:
    """Store a result as `calibration/results/NAME.json`; equal results are equal bytes."""
    _write(_file_of(result), sealed(result))
    forget()


def is_stored(result: CalibrationResult) -> bool:
    """Whether the stored result is this one, byte for byte."""
    file = _file_of(result)
    return file.is_file() and file.read_bytes() == sealed(result).encode()


def save_levels(points: list[LevelPoint]) -> None:
    """Store a comparison of levels as `calibration/levels.json`, with what it rests on."""
    levels = LevelComparison(sources=level_sources(), points=points)
    _write(LEVELS_FILE, sealed(levels))
    forget()


def save_tiles(points: list[TilePoint], rtl: Iterable[Path]) -> None:
    """Store a comparison with tiles in Verilog as `calibration/tiles.json`.

    Args:
        points: The comparison.
        rtl: The Verilog.
    """
    tiles = TileComparison(sources=tile_sources(rtl), tools=tool_versions(), points=points)
    _write(TILES_FILE, sealed(tiles))
    forget()


def save_chips(points: list[ChipPoint]) -> None:
    """Store a comparison of closed forms as `calibration/chips.json`."""
    chips = ChipComparison(sources=chip_sources(), points=points)
    _write(CHIPS_FILE, sealed(chips))
    forget()


def save_streams(costs: list[DeviceCosts], points: list[StreamPoint], *, address_map: str) -> None:
    """Store what blocks cost on DRAM as `calibration/streams.json`.

    Args:
        costs: Of every device.
        points: What they were fitted to, and what they were checked on.
        address_map: That of all.
    """
    streams = StreamComparison(
        sources=source_hashes(_files(_STREAMS)),
        address_map=address_map,
        costs=costs,
        points=points,
    )
    _write(STREAMS_FILE, sealed(streams))
    forget()


def level_sources() -> dict[str, str]:
    """Hashes of what decides the levels: stored results, and the sources of the models."""
    return source_hashes(_of_levels())


def tile_sources(rtl: Iterable[Path]) -> dict[str, str]:
    """Hashes of what decides the comparison with tiles in Verilog.

    Args:
        rtl: The Verilog.
    """
    own = [
        REPOSITORY / "calibration" / "levels" / "tiles.py",
        *(REPOSITORY / "cosim" / "tiles").glob("*.*"),
        *_files(_OFFCHIP),
    ]
    return source_hashes([*_of_levels(), *own, *rtl])


def chip_sources() -> dict[str, str]:
    """Hashes of what decides the comparison of closed forms."""
    own = _files(("calibration/levels/chips.py", "tlm/on_routers.py", *_OFFCHIP))
    return source_hashes([*_of_levels(), STREAMS_FILE, *own])


def _of_levels() -> list[Path]:
    return [*(RESULTS_FOLDER / f"{name}.json" for name in _RESULTS), *_files(_MODELS)]


def _files(names: Iterable[str]) -> list[Path]:
    """Files of some names, and of folders of them."""
    paths = []
    for place in (REPOSITORY / name for name in names):
        paths += [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.toml")]
    return paths


def _file_of(result: CalibrationResult) -> Path:
    return RESULTS_FOLDER / f"{result.name}.json"


def _write(path: Path, text: str) -> None:
    with whole_file(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def status() -> dict[str, str | None]:
    """What is wrong with each stored result; None with one that can be used."""
    states: dict[str, str | None] = {}
    for name in stored_names():
        try:
            stored_result(name)
            states[name] = None
        except InputError as error:
            states[name] = str(error)
    return states
