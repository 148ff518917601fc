"""The kernels of a layer of a model, as an iteration runs them, for a check."""

from collections.abc import Hashable, Mapping
from typing import Any

from tlm.check import Verdict, chip_limits
from tlm.errors import hold_least
from wafertlm.asked.iteration import IterationOptions
from wafertlm.checked import ToCheck
from wafertlm.iteration.plan import plan_iteration
from wafertlm.kernel import Setup
from workloads.models import find_model

PHASES = ("prefill", "decode")
TOKENS = 4096


def layer_kernels(given: Mapping[str, Any]) -> tuple[list[ToCheck], list[Verdict]]:
    """The kernels of a phase, and verdicts on the weights that a tile keeps.

    Args:
        given: ``model``, ``phase`` and ``tokens``, and options of an iteration.

    Raises:
        InputError: for options that do not fit together, or a model that does not fit the chip.
    """
    tokens = given["tokens"]
    hold_least("--tokens", tokens, 1)
    prefill = given["phase"] == "prefill"
    names = ("model", "chip", "grid", "collective", "schedule", "set")
    options = IterationOptions(
        **{name: given[name] for name in names},
        prefill=(str(tokens),) if prefill else (),
        decode=None if prefill else f"1@{tokens}",
    )
    planned = plan_iteration(options, find_model(options.model))
    kernels, wafer = [], planned.wafer
    for each in planned.kernels:
        setup = each.setup()
        alike: Hashable = setup.told if wafer is not None else setup.options
        kernels.append(ToCheck(each.operator.name, each.times, setup, alike))
    if wafer is None:
        return kernels, []
    left = min(phase.regions.left_bytes for phase in wafer.planned.phases)
    return kernels, [_weights(kernels[0].setup, left)]


def _weights(setup: Setup, left_bytes: int) -> Verdict:
    """They stay in the tiles, at rest."""
    limit = chip_limits(setup.chip).tile_bytes
    assert limit is not None
    taken = limit - left_bytes
    return Verdict("M", left_bytes >= 0, "bytes of a tile's weights", taken, limit)
