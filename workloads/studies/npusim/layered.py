"""Beyond the paper: layered prefill in the pool for prompts, of a model with experts.

Layered prefill (see docs/layered_prefill.md) moves prompts through groups of layers, so that an
iteration loads the experts of one group alone. It is made for cores that decode meanwhile.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tlm.chips import find_tiles
from workloads.machine.groups import Parallel
from workloads.models import find_model
from workloads.serving.engine.group_pools import GroupPools, make_group_pools
from workloads.serving.engine.run import run_disaggregated
from workloads.serving.load.generator import generate
from workloads.serving.schedulers import SchedulerOptions, make_scheduler
from workloads.studies.campaign import Figures
from workloads.studies.ends import with_ends
from workloads.studies.npusim.cases import CHIP
from workloads.studies.npusim.judge import row
from workloads.studies.rows import interval_of

_MODEL, _REQUESTS = "qwen3-30b-a3b", 20
#: Groups of four cores in pipelines of eight: half of the chip each for prompts and for decoding.
_TENSOR, _STAGES, _UNITS = 4, 8, 32
#: New tokens of a micro-batch, or of a wavefront.
SCHEDULERS = {"chunked": 512, "layered": 2048}
#: Prompt and output.
LENGTHS = ((1000, 100), (4000, 100))
_FIGURES = {"ttft_s": "s", "throughput_tok_s": "tok/s", "expert_load_bytes": "bytes"}


class LayeredCase(NamedTuple):
    """Requests that all come at once.

    Attributes:
        scheduler: Of the pool for prompts, one of `SCHEDULERS`.
        inputs: Tokens of a prompt.
        outputs: Tokens of an output.
    """

    scheduler: str
    inputs: int
    outputs: int


def layered_figures(case: LayeredCase) -> Figures:
    """Serve the requests, with ends by the error of the prices."""
    load = generate(f"fixed:{case.inputs}:{case.outputs}", _REQUESTS, math.inf, 1.0, 0)
    prefill, decode = (
        Parallel(tensor=_TENSOR, pipeline=_STAGES, of=f"--{pool}-")
        for pool in ("prefill", "decode")
    )
    asked = GroupPools(prefill=prefill, decode=decode, prefill_units=_UNITS, decode_units=_UNITS)
    pools = make_group_pools(find_model(_MODEL), find_tiles(CHIP), asked)
    options = SchedulerOptions(token_budget=SCHEDULERS[case.scheduler])

    def served(prices: Sequence[Any]) -> Figures:
        prefill, decode = prices
        scheduler = make_scheduler(case.scheduler, options, _STAGES)
        result = run_disaggregated(load, scheduler, replace(pools, prefill=prefill, decode=decode))
        figures: Figures = {name: result[name] for name in (*_FIGURES, "overloaded")}
        return figures | {"ttft_s": result["ttft_s"]["mean"]}

    return with_ends([pools.prefill, pools.decode], served)


def layered_cases() -> Iterator[LayeredCase]:
    """All runs."""
    yield from (LayeredCase(name, *lengths) for name in SCHEDULERS for lengths in LENGTHS)


def layered_rows(found: Mapping[str, Figures]) -> Iterator[dict[str, Any]]:
    """Figures of both schedulers."""
    for case in layered_cases():
        for name, unit in _FIGURES.items():
            of = f"NEW/layered-prefill/{case.inputs}in-{case.outputs}out-{case.scheduler}/{name}"
            note = f"{_MODEL}, prompts and decoding apart"
            figures = found[repr(case)]
            between = interval_of(figures, name)
            yield row(of, figures[name], None, unit, "perf", note, interval=between)
