"""An iteration's run: what ``wafertlm iteration`` and `iteration` share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tlm.engines.at.cost import Cost
from wafertlm.api.finished import FinishedRun
from wafertlm.api.keywords import given_options
from wafertlm.commands.common import required
from wafertlm.iteration import IterationOptions, IterationResult, run_iteration
from wafertlm.kernel import Execution
from wafertlm.output import Progress
from wafertlm.stopwatch import stopwatch

if TYPE_CHECKING:  # matplotlib takes long to load
    from matplotlib.figure import Figure

_COMMAND = "iteration"
_REQUIRED = ("model", "chip")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class IterationRun(FinishedRun):
    """An iteration that has run.

    Attributes:
        ran: All that is known of the run.
    """

    ran: IterationResult

    _tables: ClassVar[tuple[str, ...]] = ("kernels",)

    @property
    def cycles(self) -> int:
        """Cycles of the chip's clock, of the whole iteration."""
        return self.ran.cycles

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.ran.seconds

    @property
    def seconds_between(self) -> tuple[float, float] | None:
        """Between what the seconds may be, by the error of the level; None if not known."""
        return self.ran.seconds_between

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """A record for each kernel, and how often it runs."""
        return list(self.result["kernels"])

    def plot(self) -> "Figure":
        """Time of each operator, and what it went into."""
        from wafertlm.api.pictures import iteration_picture

        return iteration_picture(self.result)


def iteration_options(given: Mapping[str, Any]) -> IterationOptions:
    """Options as they were given.

    Raises:
        InputError: if one is missing.
    """
    required(_COMMAND, given, _REQUIRED)
    return IterationOptions(**given)


def iteration_run(
    options: IterationOptions,
    progress: Progress | None = None,
    cost: Callable[[Cost], object] | None = None,
) -> IterationRun:
    """Run an iteration.

    Args:
        options: What is run.
        progress: Hears of kernels done, and of how many.
        cost: Hears what level `at` will cost, before anything runs.

    Raises:
        InputError: as `run_iteration`.
        CheckFailedError: if the network hangs.
    """
    with stopwatch() as watch:
        ran = run_iteration(options, progress, Execution(cost=cost))
    return IterationRun(result=ran.record(watch.times), ran=ran)


def iteration(
    model: str, chip: str, *, progress: Progress | None = None, **options: Any
) -> IterationRun:
    """Run one iteration of a model on a chip: what ``wafertlm iteration`` does.

    Args:
        model: Its name, or a file.
        chip: Its name, or a file.
        progress: Hears of kernels done, and of how many.
        options: The command's options: ``prefill``, ``decode``, ``level``, ...

    Raises:
        InputError: for what the command refuses, with its message.
        CheckFailedError: if the network hangs.
    """
    asked = {"model": model, "chip": chip, **options}
    given = given_options(_COMMAND, IterationOptions, asked)
    return iteration_run(iteration_options(given), progress)
