"""A scheduler from a user's file: ``FILE.py:CLASS``, held to what the engine asks of a plan."""

import inspect
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from tlm.errors import InputError
from tlm.python_files import PythonName, names_python
from workloads.serving.load.request import Request
from workloads.serving.schedulers.base import Plan, Queue, Scheduler

_TOLD = "--scheduler"


class CustomScheduler:
    """A user's scheduler, each of whose plans is checked: a wrong one names the file.

    Args:
        named: Where the class is.
        options: What it is made with, by the names of its parameters; None: left out.

    Raises:
        InputError: if the file is at fault, or the class is no scheduler.
    """

    def __init__(self, named: PythonName, options: Mapping[str, Any]) -> None:
        made = named.load()
        if not (isinstance(made, type) and callable(getattr(made, "plan", None))):
            raise InputError(f"{named.file}: '{named.name}' is no class with a plan(queue)")
        given = {name: each for name, each in options.items() if each is not None}
        with named.running():
            known = inspect.signature(made).parameters
        if unknown := sorted(given.keys() - known.keys()):
            flag = unknown[0].replace("_", "-")
            raise InputError(
                f"--{flag}: found with {named.told}; allowed: {', '.join(known) or 'none'}"
            )
        with named.running():
            self._scheduler: Scheduler = made(**given)
        self._named = named
        self.keeps_prompts = bool(getattr(made, "keeps_prompts", False))

    def plan(self, queue: Queue) -> Plan:
        """The user's plan.

        Raises:
            InputError: if it cannot be made, or is none that the engine can carry out.
        """
        with self._named.running():
            plan = self._scheduler.plan(queue)
            fault = _fault(plan, queue)
        if fault:
            raise InputError(f"{self._named.file}: {self._named.name}.plan: {fault}")
        return plan


def custom_scheduler(asked: str, options: Mapping[str, Any]) -> CustomScheduler:
    """The scheduler of ``FILE.py:CLASS``; else as `CustomScheduler`."""
    return CustomScheduler(PythonName.of(asked, _TOLD), options)


def is_custom(asked: str) -> bool:
    """Whether a scheduler is of a user's file."""
    return names_python(asked)


def _fault(plan: Plan, queue: Queue) -> str | None:
    """What the engine cannot carry out; None: nothing."""
    if not isinstance(plan, Plan):
        return f"found {type(plan).__name__}; allowed: a Plan"
    if plan.layers is not None and not (
        plan.layers.step == 1 and 0 <= plan.layers.start < plan.layers.stop <= queue.layers
    ):
        return f"found layers {plan.layers}; allowed: a range within range(0, {queue.layers})"
    seen: set[int] = set()
    admitted = {id(request) for request in queue.prefilling} if plan.chunks else set()
    for request, tokens in plan.chunks:
        if not (isinstance(request, Request) and isinstance(tokens, Integral)):
            kinds = f"{type(tokens).__name__} of {type(request).__name__}"
            return f"found a chunk of {kinds}; allowed: int of Request"
        told = f"request {request.index + 1}"
        if id(request) not in admitted:
            return f"found a chunk of {told}, which is not under way; admit it first"
        if id(request) in seen:
            return f"found two chunks of {told}; allowed: one"
        if not 1 <= tokens <= request.left_to_prefill:
            left = request.left_to_prefill
            return f"found a chunk of {tokens} tokens of {told}; allowed: 1 to {left}, what is left"
        seen.add(id(request))
    return None
