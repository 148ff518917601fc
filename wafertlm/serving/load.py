"""The requests that options of serving ask for: those of a trace, or generated ones."""

from typing import Any

from tlm.errors import InputError
from wafertlm.asked.serve import ServeOptions
from workloads.machine.kv_levels import BLOCK_TOKENS
from workloads.serving.load.generator import generate
from workloads.serving.load.traces import PS_PER_S, Trace, load_trace


class Load:
    """What options ask for.

    Args:
        options: With either a trace or a workload.

    Raises:
        InputError: if the trace cannot be used.
    """

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._trace = None if options.trace is None else load_trace(options.trace)

    def requests(self, seed: int, rate: float | None = None) -> Trace:
        """Those of a seed, at the options' rate or at another.

        Raises:
            InputError: if they cannot be used.
        """
        options = self._options
        if self._trace is not None:
            trace = self._head(self._trace)
            scale = options.rate_scale if rate is None else rate / rate_of(trace)
        else:
            rps = options.rate_rps if rate is None else rate
            assert rps is not None  # as checked
            trace = self._generated(rps, options.arrival_cv, seed)
            scale = options.rate_scale if rate is None else 1.0
        return trace if scale == 1.0 else trace.scaled(scale)

    @property
    def most_tokens(self) -> int:
        """Tokens that running requests have at most, whatever the seed."""
        options = self._options
        if self._trace is None:
            traces = [self._generated(1.0, 1.0, seed) for seed in options.every_seed]
        else:
            traces = [self._head(self._trace)]
        return max(trace.most_tokens(options.max_sequences, BLOCK_TOKENS) for trace in traces)

    @property
    def recorded(self) -> dict[str, Any]:
        """A trace as a result keeps it: by its content."""
        if self._options.trace is None or self._trace is None:
            return {}
        return {"trace": {"name": self._options.trace.name, "hash": self._trace.file_hash}}

    def _head(self, trace: Trace) -> Trace:
        """As many as are asked for."""
        return trace if self._options.requests is None else trace.head(self._options.requests)

    def _generated(self, rps: float, arrival_cv: float, seed: int) -> Trace:
        options = self._options
        assert options.workload is not None  # as checked
        assert options.requests is not None
        return generate(options.workload, options.requests, rps, arrival_cv, seed)


def rate_of(trace: Trace) -> float:
    """Mean rate of arrivals in requests per second.

    Raises:
        InputError: if all arrive at once.
    """
    span_s = int(trace.arrival_ps[-1]) / PS_PER_S
    if not span_s:
        raise InputError("--find-rate: found requests that all arrive at once; they have no rate")
    return (len(trace) - 1) / span_s
