"""``wafertlm kernel`` on slow and disabled tiles, and in several threads."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tlm.program.harvest import Harvest, least_harvest
from workloads.kernels.catalogue import ATTENTION, GEMM, GROUPS, HEADS, KERNELS, LATENT, SUMS

Run = Callable[..., dict[str, Any]]
SHAPES = {
    GEMM: "48,32,40",
    GROUPS: "3,24,32,20",
    HEADS: "32,64,16",
    SUMS: "32,64,4",
    ATTENTION: "1,4,4,32,32,8,8",
    LATENT: "1,4,1,32,32,8,8",
}


@pytest.fixture
def kernel(wafertlm: Any, tmp_path: Path) -> Run:
    """Runs a kernel on tiles of 8x8; its result, or what stands on stderr."""

    def run(
        name: str, tiles: np.ndarray | None, *options: object, status: int = 0
    ) -> dict[str, Any]:
        shape = "1,64,80" if name.endswith("gemv") else SHAPES.get(KERNELS[name].form, "32,64")
        more: tuple[object, ...] = ()
        if tiles is not None:
            np.savetxt(tmp_path / "tiles.csv", tiles, fmt="%d", delimiter=",")
            more = ("--tiles", tmp_path / "tiles.csv")
        fixed = ("--chip", "rtl-8x8", "--grid", "4x4", "--shape", shape, "--dtype", "int8")
        ran = wafertlm("kernel", name, *fixed, *more, *options, "--allow-stale", "--json")
        assert ran.status == status, ran.stderr
        return json.loads(ran.stdout) if status == 0 else {"stderr": ran.stderr}

    return run


def whole(rows: int = 8, cols: int = 8) -> np.ndarray:
    return np.full((rows, cols), 100)


def apart() -> np.ndarray:
    """Tiles of which row 1 and column 2 go out of use; the kernel runs on both sides of each."""
    tiles = whole(5, 5)
    tiles[1, 2] = tiles[1, 4] = tiles[3, 2] = 0
    return tiles


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_runs_beside_lines_out_of_use(kernel: Run, name: str) -> None:
    found = {level: kernel(name, apart(), "--level", level) for level in ("lt", "at")}
    # Messages of an exchange meet everywhere, a little less where the tiles lie apart.
    off = 0.1 if name == "exchange" else 0.05
    less = 0.9 if name == "exchange" else 0.97
    for level, result in found.items():
        plain = kernel(name, None, "--level", level)
        assert less * plain["cycles"] < result["cycles"] < 1.2 * plain["cycles"]
        assert result["tiles"]["disabled_tiles"] == 3
        assert result["tiles"]["harvested_rows"] == [1]
        assert result["tiles"]["harvested_columns"] == [2]
        assert result["tiles"]["spanned_grid"] == "5x5"
        assert result["tiles"]["lost_tiles"] == 6
        assert result["error"]["level_pct"] is None
        assert sum(result["breakdown_cycles"].values()) == result["cycles"]
    assert found["lt"]["cycles"] == pytest.approx(found["at"]["cycles"], rel=off)


def test_a_table_of_whole_tiles_changes_nothing(kernel: Run) -> None:
    plain, same = (kernel("mesh-gemm", tiles) for tiles in (None, whole()))
    assert same["cycles"] == plain["cycles"]
    assert same["tiles"]["lost_tiles"] == 0
    assert same["options"]["tiles"]["file"] == "tiles.csv"
    assert same["tiles"]["table"] == same["options"]["tiles"]
    slower = whole()
    slower[7, 7] = 99  # elsewhere, but another table
    other = kernel("mesh-gemm", slower)
    assert other["provenance"]["config_hash"] != same["provenance"]["config_hash"]


def test_a_table_is_known_by_the_bytes_of_its_file(wafertlm: Any, tmp_path: Path) -> None:
    file = tmp_path / "tiles.csv"
    fixed = ("--chip", "rtl-8x8", "--grid", "2x2", "--shape", "8,8", "--dtype", "int8")
    hashes, times = set(), set()
    # The same numbers in two shapes, and one of them as other programs write it.
    row = b"100,100,100"
    spaced = b"\xef\xbb\xbf100, 100 ,100\r\n" + row + b"\r\n\r\n"
    for content in (b"100,100\n" * 3, row + b"\n" + row, spaced):
        file.write_bytes(content)
        ran = wafertlm("kernel", "softmax", *fixed, "--tiles", file, "--allow-stale", "--json")
        assert ran.status == 0, ran.stderr
        result = json.loads(ran.stdout)
        assert result["tiles"]["table"]["sha256"] == hashlib.sha256(content).hexdigest()
        hashes.add(result["provenance"]["config_hash"])
        times.add(result["cycles"])
    assert (len(hashes), len(times)) == (3, 1)


@pytest.mark.parametrize("level", ["lt", "at"])
def test_a_table_is_looked_up_once(
    kernel: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    grids: list[Any] = []

    def counted(disabled: Any, grid: Any) -> Harvest:
        grids.append(grid)
        return least_harvest(disabled, grid)

    monkeypatch.setattr("wafertlm.kernel.table.least_harvest", counted)
    watched = ("--map", tmp_path / "maps.npz", "--timeline", tmp_path / "shown.json.gz")
    kernel("summa", apart(), "--level", level, *watched)
    assert grids == [(4, 4)]


@pytest.mark.parametrize("level", ["lt", "at"])
def test_slow_tiles_take_so_much_longer(kernel: Run, level: str) -> None:
    tiles = whole(4, 4)
    tiles[2, 1] = 300
    plain, slow = (kernel("softmax", each, "--level", level) for each in (whole(4, 4), tiles))
    assert slow["cycles"] > 2.5 * plain["cycles"]


def test_a_grid_evades_disabled_tiles(kernel: Run) -> None:
    tiles = whole()
    tiles[2, 3] = 0
    result = kernel("summa", tiles)
    assert result["tiles"]["harvested_rows"] == [2]
    assert result["tiles"]["first_tile"] == [3, 0]
    assert result["cycles"] == kernel("summa", None)["cycles"]


def test_maps_and_timelines_are_of_all_tiles_spanned(kernel: Run, tmp_path: Path) -> None:
    maps, shown = tmp_path / "maps.npz", tmp_path / "shown.json.gz"
    result = kernel("summa", apart(), "--map", maps, "--timeline", shown)
    found = np.load(maps)
    assert {found[name].shape for name in found} == {(5, 5)}
    assert found["finish_cycle"].max() == result["cycles"]
    used = np.zeros((5, 5), dtype=bool)
    used[np.ix_([0, 2, 3, 4], [0, 1, 3, 4])] = True
    assert ((found["finish_cycle"] > 0) == used).all()
    # Routers out of use pass packets on.
    assert (found["link_flits_east"][[0, 2, 3, 4], 2] > 0).all()
    assert (found["link_flits_south"][1, [0, 1, 3, 4]] > 0).all()
    events = json.loads(gzip.decompress(shown.read_bytes()))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X" and event["name"] == "C"]
    assert {event["pid"] for event in spans} == {*np.flatnonzero(used).tolist()}


@pytest.mark.rtl
@pytest.mark.slow  # a mesh of its own is built
def test_packets_go_the_same_ways_through_the_verilog(kernel: Run) -> None:
    tiles = whole(4, 4)
    tiles[1, 2] = tiles[3, 2] = tiles[2, 1] = tiles[2, 3] = 0
    verilog, model = (
        kernel("mesh-gemv", tiles, "--grid", "3x3", "--noc", noc, "--compute", "at")
        for noc in ("rtl", "at")
    )
    assert verilog["tiles"]["spanned_grid"] == "4x4"
    assert verilog["cycles"] == model["cycles"]


@pytest.mark.parametrize(
    ("tiles", "message"),
    [
        (
            whole(9, 8),
            "{file}: found 9x8 tiles; allowed on 'rtl-8x8': up to 8x8",
        ),
        (
            np.where(np.eye(6) > 0, 0, 100)[:5, :5],
            "--grid: found 4x4; allowed: such as 1x4, of 5x5 tiles of which 5 are disabled in "
            "{file}",
        ),
        (0 * whole(4, 4), "--grid: found 4x4; allowed: none, of 4x4 tiles of which 16 are "),
        (whole(3, 8), "--grid: found 4x4; allowed: such as 3x8, of 3x8 tiles of which 0 are "),
        (
            whole(4, 4) - 101 * (np.arange(16).reshape(4, 4) == 6),
            "{file}: row 1, column 2 (from 0): found '-1'; allowed: whole per cent from 1 to "
            "100000, or 0 for a disabled tile",
        ),
    ],
)
def test_tables_that_do_not_fit(
    kernel: Run, tmp_path: Path, tiles: np.ndarray, message: str
) -> None:
    stderr = kernel("softmax", tiles, status=2)["stderr"]
    assert stderr.startswith("error: " + message.format(file=tmp_path / "tiles.csv"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found no rows; allowed: one or more"),
        ("1,2\n3\n", "row 1 (from 0): found 1 columns; allowed: 2, as in row 0"),
        ("1,x\n", "row 0, column 1 (from 0): found 'x'; allowed: whole per cent from 1 to 100000"),
        ("1,1.5\n", "row 0, column 1 (from 0): found '1.5'; allowed: whole per cent"),
        ("1,1_0\n", "row 0, column 1 (from 0): found '1_0'; allowed: whole per cent"),
        ("1,\u0661\n", "row 0, column 1 (from 0): found '\u0661'; allowed: whole per cent"),
        ("1,+1\n", "row 0, column 1 (from 0): found '+1'; allowed: whole per cent"),
        ("1,2\n\n3,4\n", "row 1 (from 0): found a blank line; allowed: at the end only"),
        ("\n1,2\n", "row 0 (from 0): found a blank line; allowed: at the end only"),
        ("100001\n", "row 0, column 0 (from 0): found '100001'; allowed: whole per cent"),
    ],
)
def test_tables_that_are_none(wafertlm: Any, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text, encoding="utf-8")
    fixed = ("--chip", "rtl-4x4", "--grid", "2x2", "--shape", "8,8", "--dtype", "int8")
    ran = wafertlm("kernel", "softmax", *fixed, "--tiles", file)
    assert ran.status == 2
    assert f"error: {file}: {message}" in ran.stderr


@pytest.mark.parametrize(("noc", "size"), [("at", 65), ("rtl", 9)])
def test_lines_out_of_use_count_where_a_level_has_its_limit(
    wafertlm: Any, tmp_path: Path, noc: str, size: int
) -> None:
    tiles = whole(size, size)
    tiles[1, 1] = tiles[1, 3] = tiles[3, 1] = 0
    file, grid = tmp_path / "tiles.csv", f"{size - 1}x{size - 1}"
    np.savetxt(file, tiles, fmt="%d", delimiter=",")
    shape = f"{8 * size - 8},{8 * size - 8}"
    fixed = ("--chip", f"rtl-{size}x{size}", "--grid", grid, "--shape", shape, "--dtype", "int8")
    tail = ("--noc", noc, "--tiles", file, "--allow-stale")
    ran = wafertlm("kernel", "softmax", *fixed, *tail)
    assert ran.status == 2
    found = (
        "level at goes up to 4096 tiles, found 4225"
        if noc == "at"
        else ("--noc rtl goes up to 8x8 tiles, found 9x9")
    )
    assert f"error: --grid: {found} with lines out of use between them" in ran.stderr


def test_a_table_that_is_missing(kernel: Run) -> None:
    stderr = kernel("softmax", None, "--tiles", "none.csv", status=2)["stderr"]
    assert stderr.startswith("error: none.csv: cannot be read: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--level", "perf"), "--tiles: found network at level perf, whose tiles are all alike; "),
        (("--level", "rtl"), "--tiles: found level rtl, whose tiles are all alike; allowed: "),
        (("--memory", "perf"), "--memory: found lines of disabled tiles among those used in "),
        (("--level", "at", "--threads", "2"), "--threads: found network at level at; allowed: lt"),
        (("--threads", "0"), "threads is 0; allowed: 1 or more"),
    ],
)
def test_what_does_not_go_together(kernel: Run, options: tuple[str, ...], message: str) -> None:
    assert kernel("softmax", apart(), *options, status=2)["stderr"].startswith("error: " + message)


def test_threads_change_no_byte(kernel: Run, tmp_path: Path) -> None:
    stored = []
    for threads in ("1", "2", "3"):
        out, maps = tmp_path / f"{threads}.json", tmp_path / f"{threads}.npz"
        kernel("summa", apart(), "--threads", threads, "--out", out, "--map", maps)
        stored.append((out.read_bytes(), maps.read_bytes()))
    assert stored[0] == stored[1] == stored[2]
