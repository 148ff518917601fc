"""Figure 7's question: how far formulas of memory and network are from models cycle by cycle.

Kernels as those of Qwen3-4B, an eighth as wide or less, run on the chip that is exactly the RTL,
the only one whose memory has a controller at hand: by closed form; with every packet, and a memory
of latency and bandwidth; and with every packet and every burst of the DRAM model. What the three
cost in time is in docs/npusim.md, as stored results hold none.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing, own_tile
from tlm.engines.at import run_at
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory
from tlm.memory.dram.calibration import rtl_channel
from tlm.memory.dram.target import DramMemory
from tlm.offchip.system import OffChipMemory
from tlm.tiles.mesh import TiledMesh
from tlm.tiles.programs import on_tiles
from workloads.kernels.catalogue import KERNELS, Sizes
from workloads.kernels.tile_jobs import on_own_tiles
from workloads.machine.place import chip_place
from workloads.studies.campaign import Figures
from workloads.studies.npusim.judge import row, target

_CHIP, _GRID, _BITS = "rtl-4x4", (4, 4), (8, 32)
#: Kernels that memory binds, and kernels that products bind.
CASES: dict[str, tuple[str, Sizes]] = {
    "C1-qkv-8": ("stream-gemm", (8, 768, 320)),
    "C2-up-8": ("stream-gemm", (8, 1216, 320)),
    "C3-attention-8": ("decode-attention", (8, 4, 1, 1, 256, 128, 128)),
    "C4-qkv-64": ("stream-gemm", (64, 192, 320)),
    "C5-output-64": ("stream-gemm", (64, 160, 256)),
    "C6-up-64": ("stream-gemm", (64, 304, 320)),
}
_OF_MEMORY = 3
#: Levels of network and of memory.
MODES = {"formula": "perf, perf", "noc": "at, perf", "memory": "at, at"}
#: What the paper has for the former and the latter: the largest error, in per cent.
_MOST_PCT, _COMPUTE_PCT = 38.56, 3.0


class ModeCase(NamedTuple):
    """A kernel in a mode.

    Attributes:
        kernel: One of `CASES`.
        mode: One of `MODES`.
    """

    kernel: str
    mode: str


def mode_figures(case: ModeCase) -> Figures:
    """Cycles of a kernel."""
    name, sizes = CASES[case.kernel]
    chip, kernel = load_chip(_CHIP), KERNELS[name]
    timing, tile = noc_timing(chip), own_tile(chip)
    assert tile is not None  # the chip is the RTL
    plan: Any = kernel.planned(sizes, chip_place(chip, _GRID, timing, *_BITS, memory=True))
    program, edge = kernel.program(plan), plan.place.offchip
    if case.mode == "formula":
        cycles = kernel.closed_form(*on_own_tiles(plan, program, timing, tile))
        return {"cycles": float(cycles)}
    channels = OffChipMemory(
        edge,
        (lambda env: DramMemory(env, rtl_channel()))
        if case.mode == "memory"
        else (lambda env: BandwidthLatencyMemory(env, edge.timing)),
    )
    mesh = TiledMesh(*_GRID, timing, tile, edge_rows=edge.edge_rows)
    timed = on_tiles(program, tile)
    ran = run_at(timed, timing, mesh, queues=tile.queues, offchip=channels)
    return {"cycles": float(ran.cycles)}


def figure_7_cases() -> Iterator[ModeCase]:
    """All runs."""
    yield from (ModeCase(*each) for each in product(CASES, MODES))


def figure_7(found: Mapping[str, Figures]) -> Iterator[dict[str, Any]]:
    """Cycles in each mode, and the difference to every burst and packet."""
    for name in CASES:
        cycles = {mode: found[repr(ModeCase(name, mode))]["cycles"] for mode in MODES}
        exact = cycles["memory"]
        assert exact is not None
        for mode, levels in MODES.items():
            note, own = f"network and memory at {levels}", cycles[mode]
            assert own is not None
            yield row(f"F7/{name}/{mode}/cycles", own, None, "cycles", levels, note)
            if mode != "memory":
                off = 100 * (own / exact - 1)
                yield row(f"F7/{name}/{mode}/difference", off, None, "%", levels, note)


def figure_7_targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Where formulas are near and where not."""
    model = {each["id"]: each["model"] for each in rows}
    names = [*CASES]
    for bound, of, said in (
        ("memory", names[:_OF_MEMORY], _MOST_PCT),
        ("products", names[_OF_MEMORY:], _COMPUTE_PCT),
    ):
        for mode in ("formula", "noc"):
            most = max(abs(model[f"F7/{name}/{mode}/difference"]) for name in of)
            text = f"F7: bound by {bound}, {mode}: within {said:g} % of every burst and packet"
            yield target(text, most, most <= said)
