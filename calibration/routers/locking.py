"""Meshes whose messages are sent by request, acknowledge and data: depths and zero-load latency.

Requests stand in line behind what they meet. So buffers are filled by long messages, and cycles of
the interfaces are told apart by messages that cross.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.experiment import LawContradictedError
from calibration.routers.buffering import Buffering, Path1D
from calibration.routers.contention import (
    BURST,
    CROWD,
    LONGEST_TURNAROUND_CYCLES,
    MEET,
    Contention,
)
from calibration.routers.experiment import common, exact, kind
from calibration.routers.scenes import Scene, Send, Size, closest, forms
from calibration.routers.unicast import (
    ALONE,
    LONGEST_INTERVAL_CYCLES,
    LONGEST_RETURN_CYCLES,
    Unicast,
)
from calibration.solve import solve_exactly
from tlm.calibrated import Parameter
from tlm.errors import InputError
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import CHANNELS, NocTiming

#: Links over which a tail's way is measured.
_WAYS = (1, 3)
_CROSSING_FLITS = 4
_FIT_RUSHES, _CHECK_RUSHES = 6, 6
#: What scenes of packets are about where these are messages. One of a tile is on its way at most:
#: it may leave buffers empty that packets would fill.
_AS_MESSAGES = {
    ALONE: "a message alone",
    MEET: "messages of all inputs at one output",
    CROWD: "a crowd of messages to one tile",
    BURST: "bursts of messages from anywhere to anywhere",
}
_RUSH_MESSAGES, _RUSH_FLITS, _RUSH_CYCLES = 400, 6, 30


@dataclass(frozen=True, slots=True)
class Messages(Path1D):
    """A long message from column 0, and with ``side`` one of that tile; both set up at once."""

    @property
    def label(self) -> str:
        """The path in words."""
        size, beside = self.size, "" if self.side is None else f", with one of column {self.side}"
        return f"{size[0]}x{size[1]}: row {self.row}, a message over {self.hops} hops{beside}"

    @property
    def situation(self) -> str:
        """What is full."""
        if self.side is None:
            return "a message that fills its way to a blocked tile"
        return "two messages that fill a way to a blocked tile"

    @property
    def senders(self) -> list[int]:
        """Nodes that send."""
        first = self.row * self.size[1]
        return [first, *([] if self.side is None else [first + self.side])]

    @property
    def places(self) -> tuple[int, int, int]:
        """How many buffers of inputs, of outputs to links and to tiles the flits fill."""
        return self.hops + len(self.senders), self.hops, 1


class LockedBuffering(Buffering):
    """Flits taken: what the buffers on the way of the data hold, and those of the senders."""

    subject = "flits of messages accepted against a blocked tile"

    @property
    def untried(self) -> Sequence[str]:
        """What does not fill a way."""
        return ("messages of one flit against a blocked tile", "requests to a blocked tile")

    def fit_cases(self) -> list[Path1D]:
        """Two lengths, and two messages."""
        return [_messages(case) for case in super().fit_cases()]

    def check_cases(self, *, quick: bool) -> list[Path1D]:
        """Other lengths and tiles."""
        return [_messages(case) for case in super().check_cases(quick=quick)]

    def counted(self, case: Path1D) -> list[int]:
        """All that send."""
        return _messages(case).senders

    def items(self, case: Path1D) -> list[Send]:
        """A message of each, at once: both are acknowledged before the data stand still."""
        to, flits = TileSet.tile(case.row, case.hops), self._message_flits(case.size)
        return [(0, node, to, flits) for node in self.counted(case)]

    def find(self, cases: Sequence[Path1D], values: Sequence[float]) -> dict[str, Parameter]:
        """Depths of inputs, and of outputs to links and to tiles.

        Raises:
            LawContradictedError: if the flits are no such sum, or messages are too short.
        """
        flits = self._message_flits(self.mesh.fit)
        taken = zip(cases, values, strict=True)
        if any(value >= flits * len(self.counted(case)) for case, value in taken):
            raise LawContradictedError(
                f"the buffers on a way hold whole messages of {flits} flits, the longest that "
                "there are: their depth cannot be found"
            )
        return super().find(cases, values)

    def _message_flits(self, size: Size) -> int:
        """As many as a path is offered, but no more than a packet may have."""
        offered, longest = self.offered_flits(size), self.mesh.spec.limits.packet_flits
        return min(offered, longest or offered)


def _messages(path: Path1D) -> Messages:
    return Messages(path.size, path.row, path.hops, path.side)


class LockedUnicast(Unicast):
    """cycles = set-up + ejection + hops x hop + (flits - 1) x serialisation.

    The set-up is two ways, of a request and an acknowledge, and cycles of the interfaces. A tail
    goes in as it leaves for the router: from there on its way is alone.
    """

    def situation(self, case: Scene) -> str:
        """What the case is about, in messages."""
        return _AS_MESSAGES.get(case.situation, case.situation)

    def fit_cases(self) -> list[Scene]:
        """Six transfers, tails on their way, and messages that cross, one some cycles later."""
        rows, cols = self.mesh.fit
        near = cols + 1
        tails = [
            Scene(
                (rows, cols),
                f"{rows}x{cols}: the tail of 2 flits over {way} links",
                ((0, 0, TileSet.tile(0, way), 2),),
                situation="the tail of a message on its way",
                from_tail=True,
            )
            for way in _WAYS
        ]
        crossing = [
            Scene(
                (rows, cols),
                f"{rows}x{cols}: {flits} flits cross others, {later} cycles later",
                (
                    (0, near, TileSet.tile(1, 2), flits),
                    (later, near + 1, TileSet.tile(1, 1), flits),
                ),
                situation="two messages that cross",
            )
            for flits in dict.fromkeys([1, min(_CROSSING_FLITS, self.mesh.packet_flits)])
            for later in range(self.mesh.set_up_cycles + 1)
        ]
        return [*super().fit_cases(), *tails, *crossing]

    def find(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """Solve the law of heads; then of flits that follow; then of the interfaces.

        Raises:
            LawContradictedError: if the latency is no such sum.
        """
        alone = [index for index, scene in enumerate(cases) if len(scene.sends) == 1]
        lone, lone_values = [cases[i] for i in alone], [values[i] for i in alone]
        found, misfit = closest(self._lone(lone, lone_values), lone, lone_values)
        if misfit > 0:
            raise LawContradictedError(
                f"no interval from flit to flit explains every message; the best one is off by "
                f"{misfit:g} cycles"
            )
        split = [form for known in found for form in _splits(known)]
        if closest(split, cases, values)[1] > 0:  # those that cross follow each other at outputs
            split = forms(split, turnaround_cycles=range(1 + LONGEST_TURNAROUND_CYCLES))
        found = self.choose(split, cases, values, "request, acknowledge and data of a message")
        known = found[0]
        late = {}
        if self.mesh.timing.return_cycles not in [form.return_cycles for form in found]:
            late["return_cycles"] = common(found, lambda f: f.return_cycles, "cycles/flit")
        whole = [(scene, value) for scene, value in zip(cases, values, strict=True) if scene.whole]
        flits = [[sum(scene.parts) - 1] for scene, _ in whole]
        rests = [value - known.head_cycles(scene.hops) for scene, value in whole]
        return {
            "channel": kind(found, "channel", CHANNELS),
            "request_cycles": common(found, lambda f: f.request_cycles, "cycles/message"),
            "acknowledge_cycles": common(found, lambda f: f.acknowledge_cycles, "cycles/message"),
            "data_cycles": common(found, lambda f: f.data_cycles, "cycles/message"),
            "ejection_cycles": exact(known.ejection_cycles, "cycles"),
            "hop_cycles": exact(known.hop_cycles, "cycles/hop"),
            "link_interval_cycles": common(found, lambda f: f.link_interval_cycles, "cycles/flit"),
            **late,
            **self.law({"serialisation_cycles": "cycles/flit"}, flits, rests),
        }

    def _lone(self, cases: Sequence[Scene], values: Sequence[float]) -> list[NocTiming]:
        """Forms by the law of messages of a flit, and of tails, for each interval of a link."""
        measured = list(zip(cases, values, strict=True))
        single = [(scene.hops, value) for scene, value in measured if scene.parts == [1]]
        tails = [(scene.hops, value) for scene, value in measured if scene.from_tail]
        own, hop = solve_exactly([(1, 3 * hops) for hops, _ in single], [v for _, v in single])
        (last,) = solve_exactly([[1]] * len(tails), [value - hop * hops for hops, value in tails])
        found: list[NocTiming] = []
        for interval in range(1, 1 + LONGEST_INTERVAL_CYCLES):
            ejection = last - (interval - 1)
            try:
                known = replace(
                    self.mesh.timing,
                    channel=self.mesh.channel,
                    hop_cycles=hop,
                    ejection_cycles=ejection,
                    link_interval_cycles=interval,
                    acknowledge_cycles=own - 3 * ejection - 2,
                )
            except InputError:
                continue
            found += forms([known], return_cycles=range(1 + LONGEST_RETURN_CYCLES))
        if not found:
            raise LawContradictedError(
                f"no router is so fast: {hop} cycles a hop, {last} at the end"
            )
        return found


class LockedContention(Contention):
    """One message a tile is on its way at most: few outputs are blocked unless receivers are."""

    def situation(self, case: Scene) -> str:
        """What the case is about, in messages."""
        return _AS_MESSAGES.get(case.situation, case.situation)

    def fit_cases(self) -> list[Scene]:
        """The same, and bursts to two tiles."""
        return [*super().fit_cases(), *self._rushes(self.mesh.fit, range(_FIT_RUSHES))]

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """The same, and other bursts."""
        numbers = range(_FIT_RUSHES, _FIT_RUSHES + _CHECK_RUSHES)
        sizes = self.mesh.check_sizes(quick=quick)
        rushes = [scene for size in sizes for scene in self._rushes(size, numbers)]
        return [*super().check_cases(quick=quick), *rushes]

    def _rushes(self, size: Size, numbers: range) -> Iterator[Scene]:
        """Far more messages from everywhere to two tiles than these can take."""
        nodes, longest = size[0] * size[1], min(_RUSH_FLITS, self.mesh.packet_flits)
        for number in numbers:
            rng = np.random.default_rng([self.seed, number])
            ends = rng.choice(nodes, 2, replace=False).tolist()
            sends: list[Send] = []
            for _ in range(_RUSH_MESSAGES):
                source, end = int(rng.integers(nodes)), ends[int(rng.integers(2))]
                flits, cycle = int(rng.integers(1, longest + 1)), int(rng.integers(_RUSH_CYCLES))
                if source != end:
                    sends.append((cycle, source, TileSet.tile(*divmod(end, size[1])), flits))
            sends.sort(key=lambda send: send[0])
            label = f"{size[0]}x{size[1]}: rush {number} to {ends[0]} and {ends[1]}"
            yield Scene(size, label, tuple(sends), situation="a rush of messages to two tiles")


def _splits(known: NocTiming) -> Iterator[NocTiming]:
    """The form with its interfaces' cycles divided in every way."""
    total = known.request_cycles + known.acknowledge_cycles + known.data_cycles
    for request in range(1, total - 1):
        for data in range(1, total - request):
            yield replace(
                known,
                request_cycles=request,
                acknowledge_cycles=total - request - data,
                data_cycles=data,
            )
