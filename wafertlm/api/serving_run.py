"""A serving run: what ``wafertlm serve`` and `serve` share."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlm.errors import InputError
from wafertlm.api.finished import FinishedRun
from wafertlm.api.keywords import given_options
from wafertlm.asked.serve import known_names
from wafertlm.output import Progress
from wafertlm.serving import Execution, ServeOptions, complete_serve, serve_result
from wafertlm.stopwatch import stopwatch

if TYPE_CHECKING:  # matplotlib takes long to load
    from matplotlib.figure import Figure

_COMMAND = "serve"
_REQUIRED = ("model", "chip")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ServingRun(FinishedRun):
    """Requests that have been served."""

    @property
    def ttft_s(self) -> Mapping[str, float | None]:
        """Seconds to the first token: mean, p50, p90, p95, p99, p99_9."""
        return self._times("ttft_s")

    @property
    def tbt_ms(self) -> Mapping[str, float | None]:
        """Milliseconds between tokens."""
        return self._times("tbt_ms")

    @property
    def e2e_s(self) -> Mapping[str, float | None]:
        """Seconds from arrival to the last token."""
        return self._times("e2e_s")

    @property
    def throughput_tok_s(self) -> float:
        """Output tokens a second."""
        return float(self.result["throughput_tok_s"])

    @property
    def goodput_rps(self) -> float | None:
        """Requests a second that attain the objectives; None without any."""
        goodput: float | None = self.result["goodput_rps"]
        return goodput

    @property
    def interval(self) -> Mapping[str, Any] | None:
        """Means at both ends of the prices' error; None where nothing was compared."""
        interval: Mapping[str, Any] | None = self.result["interval"]
        return interval

    @property
    def notes(self) -> list[str]:
        """What the figures rest on, and what makes them depend on the load."""
        return list(self.result["notes"])

    def plot(self) -> "Figure":
        """Times and tokens over time, or what the search for a rate has found.

        Raises:
            InputError: of a mean over seeds.
        """
        from wafertlm.serving.plot import serving_picture

        hold_drawable(self.options["seeds"])
        return serving_picture(self.result)

    def _times(self, name: str) -> Mapping[str, float | None]:
        times: Mapping[str, float | None] = self.result[name]
        return times


def hold_drawable(seeds: int) -> None:
    """Hold that it is a single run.

    Raises:
        InputError: if it is a mean over seeds.
    """
    if seeds > 1:
        raise InputError("--plot: shows a single run; leave out --seeds")


def serving_options(given: Mapping[str, Any]) -> ServeOptions:
    """Options as they were given.

    Raises:
        InputError: if one is missing.
    """
    for name in _REQUIRED:
        if given[name] is None:
            known = ", ".join(known_names()[f"{name}s"])
            raise InputError(f"--{name}: not given; known: {known}")
    return ServeOptions(**given)


def serving_run(options: ServeOptions, execution: Execution) -> ServingRun:
    """Serve requests; all else as `serve_result`."""
    with stopwatch() as watch:
        figures = serve_result(options, execution)
    return ServingRun(result=complete_serve(options, figures, watch.times))


def serve(
    model: str,
    chip: str,
    scheduler: str = "chunked",
    *,
    progress: Progress | None = None,
    requests_csv: Path | None = None,
    checkpoint: Path | None = None,
    **options: Any,
) -> ServingRun:
    """Serve a model's requests on a chip: what ``wafertlm serve`` does.

    Args:
        model: Its name, or a file.
        chip: Its name, or a file.
        scheduler: The policy.
        progress: Hears of requests done, and of how many.
        requests_csv: A file for a row of each request.
        checkpoint: A file for the run's state, to go on from if it is killed.
        options: The command's options: ``workload``, ``rate``, ``requests``, ``trace``, ...

    Raises:
        InputError: for what the command refuses, with its message.
    """
    asked = {"model": model, "chip": chip, "scheduler": scheduler, **options}
    given = given_options(_COMMAND, ServeOptions, asked)
    how = Execution(progress=progress, requests_csv=requests_csv, checkpoint=checkpoint)
    return serving_run(serving_options(given), how)
