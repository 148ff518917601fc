"""The memory channel: times from a few requests alone, then whole streams against its model.

A time is read off from when requests are answered, as a user of the channel sees it. What never
decides when that is cannot be found so: four activates in tFAW, tRC beside tRAS and tRP, and how a
latency divides into the way to the burst and the burst; there the device's table stands.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibration.experiment import Parameters, Targets
from calibration.memory.cases import HBM2, PATTERNS, requests_of
from calibration.memory.channel import Requests, RtlMemory
from calibration.memory.model import bursts_of, measured_model, requests_per_cycle
from calibration.solve import solve_exactly
from cosim.verilog import MEMORY_SOURCES
from tlm.calibrated import Parameter, load_result
from tlm.interconnect.packets import Int64s

#: Parameters in the order of the law's unknowns: times of a device, and the two latencies.
_NAMES = (
    "read_latency", "write_latency", "t_rcd_rd", "t_rcd_wr", "t_rp", "t_ras", "t_rrd_s", "t_rrd_l",
    "t_ccd_s", "t_ccd_l", "t_rtw", "t_wtr_s", "t_wtr_l", "t_rtp", "t_wtp", "t_rfc", "t_refi",
)  # fmt: skip
_Place = tuple[int, int, int]
_TO_CLOSED = "read_latency", "t_rcd_rd"
_TO_OTHER_ROW = (*_TO_CLOSED, "t_rp")
# (row, bank, group): a place, another row of its bank, another bank of its group, other groups.
_HERE, _ROW, _BANK, _GROUP, _THIRD = (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 2)
_READ, _WRITE = 0, 1
# (rows opened long before, requests, what the last answer takes from the first one's taking on).
_PROBES: tuple[tuple[tuple[_Place, ...], tuple[tuple[int, _Place], ...], tuple[str, ...]], ...] = (
    ((_HERE,), ((_READ, _HERE),), ("read_latency",)),
    ((_HERE,), ((_WRITE, _HERE),), ("write_latency",)),
    ((), ((_READ, _HERE),), _TO_CLOSED),
    ((), ((_WRITE, _HERE),), ("write_latency", "t_rcd_wr")),
    ((_HERE,), ((_READ, _ROW),), _TO_OTHER_ROW),
    ((_HERE,), ((_WRITE, _ROW),), ("write_latency", "t_rcd_wr", "t_rp")),
    ((), ((_READ, _HERE), (_READ, _ROW)), (*_TO_OTHER_ROW, "t_ras")),
    ((), ((_READ, _HERE), (_READ, _GROUP)), (*_TO_CLOSED, "t_rrd_s")),
    ((), ((_READ, _HERE), (_READ, _BANK)), (*_TO_CLOSED, "t_rrd_l")),
    ((_HERE, _GROUP), ((_READ, _HERE), (_READ, _GROUP)), ("read_latency", "t_ccd_s")),
    ((_HERE, _GROUP), ((_WRITE, _HERE), (_WRITE, _GROUP)), ("write_latency", "t_ccd_s")),
    ((_HERE, _BANK), ((_READ, _HERE), (_READ, _BANK)), ("read_latency", "t_ccd_l")),
    (
        (_HERE, _GROUP, _THIRD),
        ((_READ, _HERE), (_READ, _GROUP), (_READ, _THIRD)),
        ("read_latency", "t_ccd_s", "t_ccd_s"),
    ),
    ((_HERE, _GROUP), ((_READ, _HERE), (_WRITE, _GROUP)), ("write_latency", "t_rtw")),
    ((_HERE, _GROUP), ((_WRITE, _HERE), (_READ, _GROUP)), ("read_latency", "t_wtr_s")),
    ((_HERE, _BANK), ((_WRITE, _HERE), (_READ, _BANK)), ("read_latency", "t_wtr_l")),
    ((_HERE,), ((_READ, _HERE), (_READ, _ROW)), (*_TO_OTHER_ROW, "t_rtp")),
    ((_HERE,), ((_WRITE, _HERE), (_READ, _ROW)), (*_TO_OTHER_ROW, "t_wtp")),
)
_REST_CYCLES = 300  # until no time of a row opened before matters any more
_REFRESHES = (1, 2, 3)
_REQUESTS = 800
_DEPTHS = (4, None, 1, 16)
_QUICK_DEPTHS = 1


@dataclass(frozen=True, slots=True)
class Probe:
    """A few requests to a channel at rest, and the law of the last one's answer.

    Attributes:
        memory: The channel.
        label: The requests in words.
        items: (cycle, 1 for a write, address) of the requests.
        first: The request from whose taking on cycles count; None: from reset on.
        law: Names of the parameters whose sum they are, as often as they are in it.
    """

    memory: RtlMemory
    label: str
    items: tuple[tuple[int, int, int], ...]
    first: int | None
    law: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """A pattern of requests; ``depth`` are taken and not answered at most, None: no bound."""

    memory: RtlMemory
    pattern: str
    depth: int | None

    @property
    def label(self) -> str:
        """The stream in words."""
        loop = "open loop" if self.depth is None else f"{self.depth} outstanding"
        return f"{self.pattern}, {_REQUESTS} requests, {loop}"


def _probes() -> list[Probe]:
    found = []
    for opened, asked, law in _PROBES:
        places = [*((_READ, place) for place in opened), *asked]
        cycles = [0] * len(opened) + [_REST_CYCLES] * len(asked)
        items = tuple(
            (cycle, write, HBM2.address(*place))
            for cycle, (write, place) in zip(cycles, places, strict=True)
        )
        state = _in_words(places[: len(opened)]) or "reset"
        found.append(Probe(HBM2, f"{_in_words(asked)} after {state}", items, len(opened), law))
    # All rows are closed: a refresh begins as it falls due, and the read waits for its end.
    for count in _REFRESHES:
        cycle = count * HBM2.timings.t_refi
        law = ("t_refi",) * count + ("t_rfc", *_TO_CLOSED)
        items = ((cycle + 10, _READ, HBM2.address(*_HERE)),)
        found.append(Probe(HBM2, f"read in refresh {count}", items, None, law))
    return found


def _in_words(requests: Iterable[tuple[int, _Place]]) -> str:
    names = ("read", "write")
    return ", ".join(f"{names[w]} row {r} bank {b} group {g}" for w, (r, b, g) in requests)


class _MemoryExperiment(ABC):
    """What both experiments share: the streams, and how they are run."""

    sources: Sequence[Path] = MEMORY_SOURCES
    seed: int
    untried: Sequence[str] = (
        "channels of another shape or device",
        "tRC beside tRAS and tRP, tFAW, a burst's share of a latency: they decide no answer",
    )

    def check_cases(self, *, quick: bool) -> list[Stream]:
        """Every pattern at every depth."""
        depths = _DEPTHS[:_QUICK_DEPTHS] if quick else _DEPTHS
        return [Stream(HBM2, pattern, depth) for depth in depths for pattern in PATTERNS]

    def rtl(self, case: Probe | Stream) -> RtlMemory:
        """The channel."""
        return case.memory

    def label(self, case: Probe | Stream) -> str:
        """The requests in words."""
        return case.label

    def situation(self, case: Probe | Stream) -> str:
        """A few requests, or the pattern of many."""
        return "requests alone" if isinstance(case, Probe) else f"streams: {case.pattern}"

    @abstractmethod
    def figure(self, taken: Int64s, answered: Int64s) -> float:
        """What is compared; cycles of each request."""

    def measure(self, cases: Sequence[Probe | Stream]) -> list[float]:
        """Figures on RTL."""
        return [_cycles(case) if isinstance(case, Probe) else self._on_rtl(case) for case in cases]

    def predict(self, parameters: Parameters, cases: Sequence[Probe | Stream]) -> list[float]:
        """Figures by the law; of streams on the model with these times, the same requests."""
        figures = []
        for case in cases:
            if isinstance(case, Probe):
                figures.append(sum(parameters[name].value for name in case.law))
                continue
            asked = requests_of(case.pattern, case.memory, _REQUESTS, self.seed)
            channel = measured_model(case.memory, parameters)
            seen = channel.simulate(bursts_of(asked), case.depth)
            figures.append(self.figure(seen.end_req, seen.end_resp))
        return figures

    def _on_rtl(self, case: Stream) -> float:
        asked = requests_of(case.pattern, case.memory, _REQUESTS, self.seed)
        seen = case.memory.simulate(asked, outstanding=case.depth)
        return self.figure(seen.taken, seen.answered)


class MemoryLatency(_MemoryExperiment):
    """Times from requests alone; mean latency of streams."""

    name = "memory"
    subject = "mean latency of the memory channel's streams"
    seed = 41
    targets = Targets(mean_pct=3.0, worst_pct=3.0)

    def fit_cases(self) -> list[Probe]:
        """A time each, and some of them a second time."""
        return _probes()

    def identify(self, cases: Sequence[Probe], values: Sequence[float]) -> dict[str, Parameter]:
        """Solve for all times at once.

        Raises:
            LawContradictedError: if no whole times explain every answer.
        """
        rows = [[case.law.count(name) for name in _NAMES] for case in cases]
        found = solve_exactly(rows, values)
        return {
            name: Parameter.exact(cycles, "cycles")
            for name, cycles in zip(_NAMES, found, strict=True)
        }

    def figure(self, taken: Int64s, answered: Int64s) -> float:
        """Mean latency in cycles."""
        return float((answered - taken).mean())


class MemoryBandwidth(_MemoryExperiment):
    """Bandwidth of other streams; nothing is fitted."""

    name = "memory-bandwidth"
    subject = "requests a cycle of the memory channel's streams"
    seed = 43
    targets = Targets(mean_pct=2.0, worst_pct=2.0)

    def fit_cases(self) -> list[Stream]:
        """None: the latencies have fitted everything."""
        return []

    def identify(self, cases: Sequence[Stream], values: Sequence[float]) -> dict[str, Parameter]:
        """Nothing."""
        return {}

    def predict(self, parameters: Parameters, cases: Sequence[Probe | Stream]) -> list[float]:
        """By the model with the times found from latencies."""
        return super().predict(load_result("memory").parameters, cases)

    def figure(self, taken: Int64s, answered: Int64s) -> float:
        """Requests a cycle over the middle 80 % of the answers."""
        return requests_per_cycle(answered)


def _cycles(probe: Probe) -> float:
    seen = probe.memory.simulate(Requests.of(probe.items))
    # What waits for a refresh has had its cycle in the queue before.
    begin = -1 if probe.first is None else seen.taken[probe.first]
    return float(seen.answered[-1] - begin)
