"""Tables 2 and 3: what plans and profiles say beside what the paper prints."""

from collections.abc import Iterator
from typing import Any

from tlm.chips import Chip, load_chip
from tlm.chips.engines import TiledSystolicEngine
from tlm.chips.profile import ForeignNoc
from workloads.machine.order import step_hops
from workloads.studies.npusim.cases import PromptCase, product_plan
from workloads.studies.npusim.facts import CONFIGURATIONS, PRODUCTS, printed_elements
from workloads.studies.npusim.judge import row

_ALU_FLOP, _ALUS = 2, 64
_DERIVED = (
    "derived from the mechanism: (R-1) K N/(C R) + 2 (C-1)/C M N/R; the printed form gives 0 for "
    "R = 1, where the row of K does not"
)


def table_2() -> Iterator[dict[str, Any]]:
    """Elements that a core sends, and links of its longest message, as the plans of kernels say."""
    for shape in PRODUCTS:
        for cores in (4, 16):
            for partition in ("input", "mn", "k", "2d"):
                case = PromptCase("qwen3-1.7b", shape[0], cores, partition, "mesh", 16)
                plan = product_plan(shape, case)
                rows, cols = plan.cores
                name = f"T2/{'x'.join(map(str, shape))}/{partition}-{rows}x{cols}"
                paper = printed_elements(partition, shape, plan.cores)
                note = _DERIVED if partition == "2d" else "as printed"
                sent = float(plan.sent_elements)
                exact = f"{name}/sent_elements"
                yield row(exact, sent, paper, "elements", "plan", note, within_pct=0.0)
    for placement in ("linear", "interleave", "ring"):
        case = PromptCase("qwen3-1.7b", 256, 16, "mn", placement, 16)
        hops = max(step_hops(product_plan(PRODUCTS[0], case).order))
        wrap = placement == "linear"
        note = "printed as 1 to 2" + (": by index the ends of the rows are farther" if wrap else "")
        name = f"T2/16cores/{placement}/max_hop"
        yield row(name, float(hops), None, "links", "plan", note, held=1 <= hops <= 2)


def table_3() -> Iterator[dict[str, Any]]:
    """The shipped profiles are points of the configuration space."""
    for name, ranges in CONFIGURATIONS.items():
        found = _configuration(load_chip(name))
        for parameter, (low, high, unit) in ranges.items():
            value, held = found[parameter], low <= found[parameter] <= high
            paper = low if low == high else None
            note = f"table 3 has {low:g} to {high:g}"
            yield row(f"T3/{name}/chip/{parameter}", value, paper, unit, "profile", note, held=held)


def _configuration(chip: Chip) -> dict[str, float]:
    matrix, noc, memory = chip.tile.matrix, chip.noc, chip.memory
    assert isinstance(matrix, TiledSystolicEngine)
    assert isinstance(noc, ForeignNoc)
    assert memory is not None
    cores = chip.grid.rows * chip.grid.cols
    return {
        "cores": float(cores),
        "clock": chip.clock_hz / 1e6,
        "array_side": float(matrix.rows),
        "vector_lanes": (chip.tile.vector_flop_per_cycle or 0) / (_ALU_FLOP * _ALUS),
        "sram": chip.tile.sram_kib / 1024,
        "noc": noc.flit_bytes * chip.clock_hz / 1e9,
        "hbm": memory.bandwidth_bytes_per_s / cores / 1e9,
    }
