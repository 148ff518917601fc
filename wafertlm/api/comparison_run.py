"""A comparison's run: what ``wafertlm compare`` and `compare` share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tlm.errors import InputError
from wafertlm.api.finished import FinishedRun
from wafertlm.api.keywords import option_words
from wafertlm.command_words import OPTIONS
from wafertlm.compare import gates_of, run_comparison, variants
from wafertlm.compare.variants import varied
from wafertlm.options import joined_values
from wafertlm.output import Progress
from wafertlm.stopwatch import stopwatch

if TYPE_CHECKING:  # matplotlib takes long to load
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ComparisonRun(FinishedRun):
    """Variants of a command that have run."""

    _tables: ClassVar[tuple[str, ...]] = ("changes",)

    @property
    def variants(self) -> list[dict[str, Any]]:
        """What was varied, and the object of each run."""
        return list(self.result["variants"])

    @property
    def changes(self) -> list[dict[str, Any]]:
        """Changes of figures against the first run, and between what errors let them be."""
        return list(self.result["changes"])

    @property
    def gates(self) -> list[dict[str, Any]] | None:
        """Gates of routers in Verilog; None without any."""
        gates: list[dict[str, Any]] | None = self.result["gates"]
        return gates

    def plot(self) -> "Figure":
        """Changes against the first run, each with its interval."""
        from wafertlm.api.pictures import comparison_picture

        return comparison_picture(self.result)


def comparison_run(
    command: str,
    given: Sequence[str],
    vary: Sequence[str],
    progress: Progress = lambda done, total: None,
    *,
    has_gates: bool = True,
    has_toggles: bool = True,
    liberty: Path | None = None,
    quick: bool = False,
) -> ComparisonRun:
    """Run the variants of a command.

    Args:
        command: Its name.
        given: Its words that are the same for all.
        vary: What varies: ``OPTION=V1,V2``.
        progress: Hears of variants done, and of how many.
        has_gates: Whether gates of routers are counted.
        has_toggles: Whether toggles are counted with them.
        liberty: A library of cells for areas.
        quick: Routers without a calibration get a quick one.

    Raises:
        InputError: for unknown commands and options, and what does not fit together.
        click.UsageError: for words that the command does not understand.
    """
    if not command:
        raise InputError(f"compare: no command given; known: {', '.join(OPTIONS)}")
    asked = variants(command, given, vary)
    with stopwatch() as watch:
        found = run_comparison(command, asked, watch, progress, quick=quick)
        gates = None
        if has_gates:
            gates = gates_of(asked, watch, has_toggles=has_toggles, liberty=liberty)
    return ComparisonRun(result=found.record(varied(vary), watch.times, gates))


def compare(
    command: str,
    *,
    vary: Mapping[str, Iterable[object]],
    gates: bool = True,
    toggles: bool = True,
    liberty: str | Path | None = None,
    quick: bool = False,
    progress: Progress = lambda done, total: None,
    **options: Any,
) -> ComparisonRun:
    """Run a command with some options varied: what ``wafertlm compare`` does.

    Args:
        command: ``noc``, ``kernel``, ``iteration`` or ``serve``.
        vary: Values by options, such as ``{"fifo_depth": [4, 8]}``; of a chip's figures
            ``{"set:noc.hop_cycles": [1, 2]}``. All combinations run.
        gates: Whether gates of routers in Verilog are counted, which takes minutes, once.
        toggles: Whether toggles are counted with them.
        liberty: A library of cells, in Liberty's format, for the routers' areas.
        quick: Routers without a calibration get a quick one.
        progress: Hears of variants done, and of how many.
        options: The command's options, the same for all.

    Raises:
        InputError: for what the command refuses, with its message.
        CheckFailedError: if a network hangs, or Verilog is at fault.
    """
    axes = [f"{_option(name)}={joined_values(map(_text, values))}" for name, values in vary.items()]
    words = option_words(command, OPTIONS, options)
    return comparison_run(
        command,
        words,
        axes,
        progress,
        has_gates=gates,
        has_toggles=toggles,
        liberty=None if liberty is None else Path(liberty),
        quick=quick,
    )


def _option(name: str) -> str:
    return name if name.startswith("set:") else name.replace("_", "-")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
