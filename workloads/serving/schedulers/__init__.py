"""Schedulers: which prompts are computed in an iteration."""

from tlm.errors import InputError, choose
from workloads.serving.schedulers.base import Chunk, Queue, Scheduler
from workloads.serving.schedulers.chunked import DEFAULT_TOKEN_BUDGET, Chunked
from workloads.serving.schedulers.continuous import Continuous

__all__ = ["SCHEDULERS", "Chunk", "Chunked", "Continuous", "Queue", "Scheduler", "make_scheduler"]

SCHEDULERS = ("chunked", "continuous")


def make_scheduler(name: str, token_budget: int | None = None) -> Scheduler:
    """A scheduler by name; ``token_budget`` is of the chunked one (None: its default).

    Raises:
        InputError: for an unknown name, or a budget that is not positive or has no use.
    """
    if choose("scheduler", name, SCHEDULERS) == "chunked":
        return Chunked(DEFAULT_TOKEN_BUDGET if token_budget is None else token_budget)
    if token_budget is not None:
        raise InputError(f"token budget: found {token_budget}; scheduler '{name}' has none")
    return Continuous()
