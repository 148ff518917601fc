"""Kernels on tiles in Verilog, by the command."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

from cosim.tiles.machine import TileMachine
from tlm.calibrated import stale_allowed
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing, own_tile
from tlm.comparisons import load_tiles
from tlm.engines.at import run_at
from tlm.interconnect.handshake import HandshakeMesh
from tlm.program import Program
from tlm.program.data import Gemm
from tlm.program.operations import Work
from tlm.spread import spread
from tlm.tiles.programs import on_tiles
from wafertlm.kernel import tiles

OPTIONS = ("--chip", "rtl-2x2", "--grid", "2x2", "--shape", "32,32,32", "--dtype", "int8", "--json")


def cycles(wafertlm: Any, *options: str, kernel: str = "summa") -> int:
    ran = wafertlm("kernel", kernel, *OPTIONS, *options)
    assert ran.status == 0, ran.stderr
    return int(json.loads(ran.stdout)["cycles"])


@pytest.mark.rtl
@pytest.mark.parametrize(
    ("dtype", "macs_per_cycle"),
    [("int8", 64), pytest.param("int16", 16, marks=pytest.mark.slow)],
)
def test_a_kernel_takes_the_cycles_of_its_tiles_in_verilog(
    wafertlm: Any, dtype: str, macs_per_cycle: int
) -> None:
    of = ("--dtype", dtype)
    ran = wafertlm("kernel", "summa", *OPTIONS, *of, "--level", "rtl")
    assert ran.status == 0, ran.stderr
    result = json.loads(ran.stdout)
    exact = dict.fromkeys(["level_pct", "nearest_pct", "worst_pct"], 0.0)
    rests_on = result["error"].pop("rests_on")
    assert result["error"] == exact | {"profile_pct": None}
    assert {part["rtl_hash"] for part in rests_on.values()} == {result["provenance"]["rtl_hash"]}
    assert result["network"]["mesh"] == "tile mesh 2x2"
    assert sum(result["breakdown_cycles"].values()) == result["cycles"]
    assert result["utilization"] == 32**3 / (4 * macs_per_cycle * result["cycles"])
    modelled = cycles(wafertlm, *of, "--level", "at")
    assert result["cycles"] == modelled
    with_products = cycles(wafertlm, *of, "--level", "at", "--compute", "rtl")
    assert with_products == modelled
    assert cycles(wafertlm, *of, "--level", "lt") == pytest.approx(modelled, rel=0.03)
    perf = cycles(wafertlm, *of, "--level", "perf")
    assert perf > 32**3 // (4 * macs_per_cycle)
    assert perf == pytest.approx(modelled, rel=0.03)
    assert perf == pytest.approx(modelled, rel=0.03)


def test_with_products_that_are_not_as_modelled_all_jobs_are_by_themselves(
    wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chip = load_chip("rtl-4x4").for_dtype("int16")
    with stale_allowed(True):
        tile, timing = own_tile(chip), noc_timing(chip)
    assert tile is not None
    changed: list[Program] = []

    def cycle_longer(program: Program, _machine: None) -> Callable[[Gemm], int]:
        products = {
            work.task: work.cycles + 1
            for work in on_tiles(program, tile).operations()
            if isinstance(work, Work) and isinstance(work.task, Gemm)
        }
        changed.append(on_tiles(program, tile, products.__getitem__))
        return products.__getitem__

    monkeypatch.setattr(tiles, "rtl_products", cycle_longer)
    monkeypatch.setattr(tiles, "lone_tiles", lambda *_: nullcontext())
    of = ("kernel", "cannon", "--chip", "rtl-4x4", "--grid", "4x4", "--shape", "16,16,64")
    of = (*of, "--dtype", "int16", "--level", "at", "--allow-stale", "--json")
    modelled, found = (
        json.loads(wafertlm(*of, *more).stdout) for more in ((), ("--compute", "rtl"))
    )
    alone = run_at(changed[0], timing, HandshakeMesh(4, 4, timing), queues=tile.queues)
    assert found["cycles"] == alone.cycles
    # Words of other jobs at the same banks cost more than that cycle of each product.
    assert found["cycles"] < modelled["cycles"]
    assert modelled["error"]["level_pct"] == 0 < found["error"]["level_pct"]
    with stale_allowed(True):
        points = [p for p in load_tiles().points if p.kernel == "cannon" and p.dtype == "int16"]
    claimed = found["error"]["level_pct"]
    assert min(abs(claimed - abs(p.alone_error_pct)) for p in points) < 1e-9


@pytest.mark.rtl
def test_what_tiles_compute_otherwise_is_told_with_its_place(
    wafertlm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = TileMachine.read

    def spoilt(self: TileMachine, tile: int, address: int, count: int) -> Any:
        words = read(self, tile, address, count)
        return words ^ np.uint64(tile == 2)

    monkeypatch.setattr(TileMachine, "read", spoilt)
    ran = wafertlm("kernel", "summa", *OPTIONS, "--level", "rtl")
    assert ran.status == 1
    place = "check failed: tile mesh 2x2: tile (1, 0): buffer 'a.own.0' at (0, 0): found "
    assert ran.stderr.splitlines()[-1].startswith(place)


@pytest.mark.parametrize(
    "options, message",
    [
        (("--level", "rtl", "--noc", "at"), "--level: found rtl with another level of a part"),
        (
            ("--level", "lt", "--compute", "rtl"),
            "--compute: found rtl with the network at level",
        ),
        (
            ("--level", "at", "--compute", "rtl", "--chip", "wse2"),
            "--chip: the tiles of 'wse2' are not in Verilog; those that are: rtl-RxC",
        ),
        (
            ("--level", "rtl", "--chip", "rtl-9x9", "--grid", "9x9"),
            "up to 8x8 tiles, found 9x9",
        ),
        (
            ("--level", "rtl", "--dtype", "fp16"),
            "--dtype: chip 'rtl-2x2' computes int8, int16, found fp16",
        ),
    ],
)
def test_what_does_not_go_with_tiles_in_verilog_is_refused(
    wafertlm: Any, options: tuple[str, ...], message: str
) -> None:
    ran = wafertlm("kernel", "summa", *OPTIONS, *options)
    assert ran.status == 2
    assert message in ran.stderr


def test_the_stored_comparison_holds_the_target_of_its_mean() -> None:
    assert spread(load_tiles().points, attrgetter("error_pct")).mean_abs_pct < 1.0
