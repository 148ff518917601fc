"""Schedulers by name, with their options."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

from tlm.errors import InputError, choose
from workloads.serving.schedulers.base import Scheduler
from workloads.serving.schedulers.chunked import Chunked
from workloads.serving.schedulers.continuous import Continuous
from workloads.serving.schedulers.custom import custom_scheduler, is_custom
from workloads.serving.schedulers.layered import Layered
from workloads.serving.schedulers.pd_fusion import PdFusion
from workloads.serving.schedulers.static import Static


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """What schedulers can be told; None: their default.

    Attributes:
        token_budget: Tokens of an iteration (chunked), of a wavefront (layered) or of a chunk
            (pd-fusion).
        layer_groups: Groups of layers (layered).
        budget_units: Budget of an iteration (pd-fusion).
        chunk_units: Price of a chunk (pd-fusion).
    """

    token_budget: int | None = None
    layer_groups: int | None = None
    budget_units: int | None = None
    chunk_units: int | None = None


# Each with the names of its arguments by those of the options it has.
_MAKERS: dict[str, tuple[Callable[..., Scheduler], dict[str, str]]] = {
    "chunked": (Chunked, {"token_budget": "token_budget"}),
    "continuous": (Continuous, {}),
    "layered": (Layered, {"token_budget": "wavefront_tokens", "layer_groups": "groups"}),
    "pd-fusion": (
        PdFusion,
        {
            "token_budget": "chunk_tokens",
            "budget_units": "budget_units",
            "chunk_units": "chunk_units",
        },
    ),
    "static": (Static, {}),
}
SCHEDULERS = tuple(_MAKERS)
#: Those whose budget is that of a micro-batch.
_BY_MICRO_BATCH = ("chunked", "pd-fusion")


def make_scheduler(
    name: str, options: SchedulerOptions | None = None, micro_batches: int = 1
) -> Scheduler:
    """A scheduler by name, or of a user's file: ``FILE.py:CLASS``.

    Args:
        name: Its name.
        options: What it is told.
        micro_batches: That pass a pipeline in an iteration, of which budgets then are.

    Raises:
        InputError: for an unknown name, a file at fault, an option out of range, or one that has no
            use.
    """
    if is_custom(name):
        return custom_scheduler(name, asdict(options or SchedulerOptions()))
    make, names = _MAKERS[choose("scheduler", name, SCHEDULERS)]
    arguments: dict[str, Any] = {}
    for option in fields(options) if options else ():
        value = getattr(options, option.name)
        if value is None:
            continue
        if option.name not in names:
            shown = option.name.replace("_", " ")
            raise InputError(f"{shown}: found {value}; scheduler '{name}' has none")
        arguments[names[option.name]] = value
    if micro_batches > 1 and name in _BY_MICRO_BATCH:
        arguments["micro_batches"] = micro_batches
    return make(**arguments)
