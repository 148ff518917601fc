"""Beyond the paper: serving many requests on the wafer, and routers that combine operands.

Nothing here has a published value. What routers would be worth is by the closed forms of the same
kernels; their price is of the project's own router, synthesised at the wafer's width of a flit.
"""

import json
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple, cast

from tlm.calibrated import REPOSITORY, file_hash
from tlm.chips import load_chip
from workloads.models import load_model
from workloads.serving.engine.run import run
from workloads.serving.load.generator import generate
from workloads.serving.price.models import serving_model
from workloads.serving.price.wafer_price import WaferPrice
from workloads.serving.schedulers import SchedulerOptions, make_scheduler
from workloads.studies.campaign import Figures
from workloads.studies.ends import with_ends

CHIP = "wse2"
SCHEDULERS = ("static", "continuous", "layered", "chunked", "pd-fusion")
WORKLOAD, RATE_RPS, REQUESTS, SEED = "sharegpt", 4.0, 200, 0
_GATES = REPOSITORY / "verification" / "gates.json"


class ServeCase(NamedTuple):
    """Requests on the whole wafer.

    Attributes:
        model: Its name.
        scheduler: Who says what an iteration is made of.
    """

    model: str
    scheduler: str


class RouterCase(NamedTuple):
    """Gates that a router has more if it combines operands.

    Attributes:
        chip: The chip whose width of a flit, and number of routers, are meant.
    """

    chip: str


def served(case: ServeCase) -> Figures:
    """Means over the requests, with their ends by the error of the prices (`with_ends`)."""
    price = serving_model(load_model(case.model), CHIP)
    return with_ends([price], partial(_served, case.scheduler))


def _served(scheduler: str, prices: Sequence[WaferPrice]) -> Figures:
    """Means, and whether the wafer is overloaded."""
    trace = generate(WORKLOAD, REQUESTS, RATE_RPS, 1.0, SEED)
    result = run(trace, make_scheduler(scheduler, SchedulerOptions()), prices[0])
    return {
        "ttft_s": result["ttft_s"]["mean"],
        "tbt_ms": result["tbt_ms"]["mean"],
        "throughput_tok_s": result["throughput_tok_s"],
        "j_per_token": result["energy_mj_per_output_token"] / 1e3,
        "overloaded": float(bool(result["overloaded"])),
    }


def router_gates(case: RouterCase) -> Figures:
    """NAND2 equivalents more, of a router and of all; None where stored counts are stale."""
    chip, stored = load_chip(case.chip), _stored()
    if stored is None:
        return {"router_nand2": None, "chip_nand2": None, "router_pct": None}
    bits = 8 * cast(Any, chip.noc).flit_bytes
    without, both = (
        stored[f"{kind}, {bits} bits of payload"]["nand2"] for kind in ("multicast", "both")
    )
    routers = chip.grid.rows * chip.grid.cols
    return {
        "router_nand2": float(both - without),
        "chip_nand2": float(routers * (both - without)),
        "router_pct": 100 * (both / without - 1),
    }


@cache
def _stored() -> dict[str, dict[str, int]] | None:
    """Counts of the router's variants by name, as `verification.gates` stores them."""
    if not _GATES.is_file():
        return None
    kept = json.loads(_GATES.read_text(encoding="utf-8"))
    stale = [name for name, known in kept["sources"].items() if not _is(name, known)]
    costs: dict[str, dict[str, int]] = kept["costs"]
    return None if stale else costs


def _is(name: str, known: str) -> bool:
    path = REPOSITORY / name
    return path.is_file() and file_hash(path) == known
