"""A kernel's run: what ``wafertlm kernel`` and `run_kernel` share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wafertlm.api.finished import FinishedRun
from wafertlm.api.keywords import given_options
from wafertlm.commands.common import required
from wafertlm.kernel import Execution, KernelOptions, KernelResult, Setup, resolve, run_setup
from wafertlm.output import Progress
from wafertlm.stopwatch import Stopwatch, stopwatch

if TYPE_CHECKING:  # matplotlib takes long to load
    from matplotlib.figure import Figure

_COMMAND = "kernel"
_REQUIRED = ("kernel", "chip", "grid", "shape")

#: How a run is carried out, once it is known what runs.
Execute = Callable[[Setup, Stopwatch], Execution]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class KernelRun(FinishedRun):
    """A kernel that has run.

    Attributes:
        ran: All that is known of the run.
    """

    ran: KernelResult

    @property
    def cycles(self) -> int:
        """Cycles of the chip's clock, of the whole run."""
        return self.ran.cycles

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.ran.seconds

    @property
    def utilization(self) -> float:
        """Unpadded multiply-accumulates over the peak of all matrix engines."""
        return self.ran.utilization

    @property
    def breakdown_cycles(self) -> dict[str, int]:
        """Compute, communication, memory and overhead; they sum up to the cycles."""
        return self.ran.breakdown_cycles

    @property
    def error(self) -> dict[str, float | None]:
        """``level_pct`` and ``profile_pct``: None where nothing was compared."""
        return self.ran.error

    @property
    def maps(self) -> dict[str, Any]:
        """Arrays over the tiles, shape (rows, columns); none at level `perf`."""
        return self.ran.maps

    def plot(self) -> "Figure":
        """What the cycles went into, and maps of the tiles if there are any."""
        from wafertlm.api.pictures import kernel_picture

        return kernel_picture(self.result, self.maps)


def kernel_options(given: Mapping[str, Any]) -> KernelOptions:
    """Options as they were given.

    Raises:
        InputError: if one is missing.
    """
    required(_COMMAND, given, _REQUIRED)
    return KernelOptions(**given)


def kernel_run(options: KernelOptions, execute: Execute) -> KernelRun:
    """Run a kernel.

    Args:
        options: What is run.
        execute: Says how, when all that the options name has been looked up.

    Raises:
        InputError: as `resolve` and `run_setup`.
        CheckFailedError: if the network hangs, or its Verilog is at fault.
    """
    with stopwatch() as watch:
        setup = resolve(options)
        ran = run_setup(setup, execute(setup, watch)).settled()
    return KernelRun(result=ran.record(watch.times), ran=ran)


def run_kernel(
    kernel: str,
    *,
    threads: int | None = None,
    waves: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> KernelRun:
    """Run a kernel on a chip: what ``wafertlm kernel`` does.

    Args:
        kernel: Its name: `kernels`.
        threads: Threads of level `lt`, which change no figure.
        waves: A file for a wave of what is Verilog.
        progress: Hears of operations done, and of how many, where the network is at level `lt`.
        options: The command's options: ``chip``, ``grid``, ``shape``, ``level``, ...

    Raises:
        InputError: for what the command refuses, with its message.
        CheckFailedError: if the network hangs, or its Verilog is at fault.
    """
    given = given_options(_COMMAND, KernelOptions, {"kernel": kernel, **options})

    def execute(setup: Setup, watch: Stopwatch) -> Execution:
        return Execution(
            threads=threads,
            waves=None if waves is None else Path(waves),
            progress=progress,
            building=watch.compiling,
        )

    return kernel_run(kernel_options(given), execute)
