"""`wafertlm kernel --memory`: blocks of attention from off-chip memory, at every level."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cosim.network.model import LoopModel
from cosim.tiles.model import TileModel

Run = Callable[..., dict[str, Any]]
ATTENTION = ["flat-attention", "flash-attention-2", "flash-attention-3"]
OWN = ("--chip", "rtl-4x4", "--grid", "4x4", "--shape", "1,4,4,32,32,16,16", "--dtype", "int8")


@pytest.fixture
def kernel(wafertlm: Any) -> Run:
    """Runs a kernel, also on measurements that are out of date; its result, or what it says."""

    def run(*options: str, status: int = 0) -> dict[str, Any]:
        ran = wafertlm("kernel", *options, "--allow-stale", "--json")
        assert ran.status == status, ran.stderr
        return json.loads(ran.stdout) if status == 0 else {"stderr": ran.stderr}

    return run


@pytest.mark.parametrize("name", ATTENTION)
def test_verilog_and_its_model_take_the_same_time(kernel: Run, name: str) -> None:
    runs = {
        level: kernel(name, *OWN, "--level", "at", "--memory", level)
        for level in ("rtl", "at", "perf")
    }
    assert runs["rtl"]["cycles"] == runs["at"]["cycles"]
    assert runs["rtl"]["breakdown_cycles"] == runs["at"]["breakdown_cycles"]
    assert runs["perf"]["cycles"] == pytest.approx(runs["at"]["cycles"], rel=0.02)
    for level, run in runs.items():
        parts, memory = run["breakdown_cycles"], run["memory"]
        assert sum(parts.values()) == run["cycles"]
        assert parts["memory"] > 0
        assert memory["level"] == level
        # Blocks are whole bursts here: channels read and write what is loaded and stored.
        assert memory["loaded_bytes"] == memory["read_bytes"] > 0
        assert memory["stored_bytes"] == memory["written_bytes"] > 0
        error_pct = run["error"]["level_pct"]
        assert error_pct is None if level == "perf" else 0 <= error_pct < 2
    assert len(runs["rtl"]["memory"]["rtl_hash"]) == 16


@pytest.mark.parametrize("name", ATTENTION)
def test_a_formula_at_every_level_of_the_network(kernel: Run, name: str) -> None:
    at, lt, perf = (
        kernel(name, *OWN, "--level", level, "--memory", "perf") for level in ("at", "lt", "perf")
    )
    assert lt["cycles"] == pytest.approx(at["cycles"], rel=0.05)
    moved = [
        {name: run["memory"][name] for name in ("channels", "loaded_bytes", "stored_bytes")}
        for run in (at, lt, perf)
    ]
    assert moved[0] == moved[1] == moved[2]
    assert lt["breakdown_cycles"]["memory"] > 0


def test_packets_of_blocks_through_verilog(kernel: Run) -> None:
    # With the row of nodes a mesh of 4x4, which other tests build, too.
    options = ("flat-attention", "--chip", "rtl-4x4", "--grid", "3x4", "--shape")
    options = (*options, "1,4,4,24,32,8,8", "--dtype", "int8", "--level", "at", "--memory", "rtl")
    verilog, model = kernel(*options, "--noc", "rtl"), kernel(*options)
    assert verilog["cycles"] == model["cycles"]


@pytest.mark.rtl
@pytest.mark.slow
def test_tiles_and_channels_in_verilog(kernel: Run) -> None:
    options = ("flat-attention", "--chip", "rtl-2x2", "--grid", "2x2", "--shape")
    options = (*options, "1,2,2,32,32,16,16", "--dtype", "int8")
    rtl = kernel(*options, "--level", "rtl", "--memory", "rtl")
    at = kernel(*options, "--level", "at", "--memory", "at")
    assert at["cycles"] == rtl["cycles"]
    assert rtl["breakdown_cycles"]["memory"] > 0
    assert sum(rtl["breakdown_cycles"].values()) == rtl["cycles"]
    assert rtl["memory"]["loaded_bytes"] == at["memory"]["loaded_bytes"]
    assert rtl["error"]["level_pct"] == 0


def test_a_bound_of_bandwidth(kernel: Run) -> None:
    # One query a head on a chip of 2 TB/s: reading keys and values is all there is to do.
    options = ("flat-attention", "--chip", "flat32", "--grid", "32x32", "--dtype", "fp16")
    options = (*options, "--shape", "8,8,8,1,8192,128,128", "--memory", "perf")
    for level in ("lt", "perf"):
        result = kernel(*options, "--level", level)
        seconds = result["memory"]["loaded_bytes"] / 2.0e12
        assert result["seconds"] > 0.97 * seconds
        assert result["breakdown_cycles"]["memory"] > 0


@pytest.mark.parametrize(
    ("chip", "grid", "shape"),
    [
        ("npusim-large", "8x8", "1,16,16,256,512,128,128"),
        ("npusim-small", "4x8", "1,8,8,1,2048,128,128"),
    ],
)
def test_a_channel_at_each_tile(kernel: Run, chip: str, grid: str, shape: str) -> None:
    """No block crosses the network, so level at needs no router."""
    options = ("flash-attention-3", "--chip", chip, "--grid", grid, "--shape", shape)
    options = (*options, "--dtype", "fp16", "--memory", "perf")
    at, lt, perf = (kernel(*options, "--level", level) for level in ("at", "lt", "perf"))
    assert lt["cycles"] == pytest.approx(at["cycles"], rel=0.02)
    assert perf["cycles"] == pytest.approx(lt["cycles"], rel=0.10)
    rows, cols = map(int, grid.split("x"))
    for run in (at, lt, perf):
        assert run["memory"]["channels"] == rows * cols
        assert run["memory"]["loaded_bytes"] == at["memory"]["read_bytes"]
        assert run["breakdown_cycles"]["memory"] > 0
        assert sum(run["breakdown_cycles"].values()) == run["cycles"]


@pytest.mark.parametrize("chip", ["npusim-large", "npusim-small"])
def test_a_model_of_dram_at_each_tile(kernel: Run, chip: str) -> None:
    """Every command and refresh, of loads and stores; the formula is near."""
    options = ("stream-gemm", "--chip", chip, "--grid", "1x2", "--shape", "8,768,1280")
    options = (*options, "--dtype", "bf16", "--level", "at")
    modelled, formula = (kernel(*options, "--memory", level) for level in ("at", "perf"))
    assert modelled["cycles"] == pytest.approx(formula["cycles"], rel=0.05)
    assert modelled["cycles"] != formula["cycles"]
    assert modelled["memory"] == formula["memory"] | {"level": "at"}
    assert modelled["memory"]["written_bytes"] > 0
    assert sum(modelled["breakdown_cycles"].values()) == modelled["cycles"]


def test_the_bandwidth_of_channels_at_tiles(kernel: Run) -> None:
    # One query a head: each of 64 tiles reads its head's keys and values at 120 GB/s.
    options = ("flash-attention-3", "--chip", "npusim-large", "--grid", "8x8", "--dtype", "fp16")
    options = (*options, "--shape", "1,64,64,1,8192,128,128", "--memory", "perf")
    for level in ("lt", "perf"):
        result = kernel(*options, "--level", level)
        seconds = result["memory"]["loaded_bytes"] / 7.68e12
        assert seconds < result["seconds"] < 1.5 * seconds


def test_kernels_whose_blocks_lie_in_the_tiles(kernel: Run) -> None:
    options = ("summa", "--chip", "rtl-2x2", "--grid", "2x2", "--shape", "16,16,16")
    options = (*options, "--dtype", "int8", "--level", "at")
    plain, counted = kernel(*options), kernel(*options, "--memory", "at")
    assert plain["cycles"] == counted["cycles"]
    assert plain["breakdown_cycles"] == counted["breakdown_cycles"]
    assert counted["memory"]["read_bytes"] == 0


@pytest.mark.parametrize(
    ("chip", "options", "said"),
    [
        ("rtl-4x4", "--level lt --memory at", "found at with the network at level lt; allowed: "),
        ("rtl-4x4", "--level at --memory lt", "found 'lt'; allowed: rtl, at, perf"),
        (
            "rtl-4x4",
            "--level at --rtl x.toml --memory at",
            "--memory: found with --rtl and the network at level at",
        ),
        ("rtl-4x4", "--level rtl --memory at", "found rtl with another level of a part"),
        ("wse2", "--level lt --memory perf", "chip 'wse2': found no off-chip memory"),
        ("npusim-large", "--level at --memory rtl", "found rtl with 'npusim-large'; allowed: perf"),
        ("flat32", "--level at --memory at", "found at with 'flat32'; allowed: perf, as a profile"),
        ("flat32", "--noc rtl --memory perf", "the router of 'flat32' is not in Verilog; levels"),
    ],
)
def test_refused(kernel: Run, chip: str, options: str, said: str) -> None:
    dtype = "int8" if chip == "rtl-4x4" else "fp16"
    fixed = ("--chip", chip, "--grid", "4x4", "--shape", "1,4,4,32,32,16,16", "--dtype", dtype)
    found = kernel("flat-attention", *fixed, *options.split(), status=2)["stderr"]
    assert said in found


@pytest.mark.parametrize("compute", ["at", "rtl"])
def test_a_row_of_nodes_more_than_verilog_has_is_refused_before_anything_is_built(
    kernel: Run, monkeypatch: pytest.MonkeyPatch, compute: str
) -> None:
    def built(*_: object) -> None:
        pytest.fail("something was built")

    monkeypatch.setattr(LoopModel, "build", built)
    monkeypatch.setattr(TileModel, "build", built)
    fixed = ("--chip", "rtl-8x8", "--grid", "8x8", "--shape", "1,8,8,64,64,8,8", "--dtype", "int8")
    levels = ("--level", "at", "--noc", "rtl", "--memory", "at", "--compute", compute)
    assert kernel("flat-attention", *fixed, *levels, status=2)["stderr"] == (
        "error: --grid: --noc rtl with --memory goes up to 64 nodes, a row of them below the "
        "tiles; found 8x8 tiles, 72 nodes\n"
    )


@pytest.mark.parametrize("chip", ["flat32", "npusim-small"])
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("stream-gemm", "64,512,512"),
        ("rms-norm", "512,1024"),
        ("rotary", "512,1024,64"),
        ("residual", "512,1024"),
        ("gate", "512,1024"),
        ("kv-append", "512,1024"),
        ("weighted-sum", "128,1024,4"),
        ("decode-attention", "4,8,2,1,1000,64,64"),
        ("flat-attention", "1,8,8,64,256,64,64"),
    ],
)
def test_no_kernel_is_over_before_its_memory_could_be(
    kernel: Run, name: str, shape: str, chip: str
) -> None:
    given = ("--chip", chip, "--grid", "8x8", "--shape", shape, "--dtype", "fp16")
    for level in ("lt", "perf"):
        result = kernel(name, *given, "--memory", "perf", "--level", level)
        assert 0 < result["memory_utilization"] <= 1, level
