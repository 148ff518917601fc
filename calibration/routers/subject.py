"""A mesh under calibration: its Verilog, what has been found out of it, and what it cannot be."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from calibration.benches.mesh_bench import Log
from calibration.experiment import LawContradictedError, Parameters
from calibration.routers.findings import in_words
from calibration.routers.found import IDENTIFIED, timing_of
from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.probing import flits_mix, head_leads, messages_mix
from calibration.routers.runs import Runs
from calibration.routers.scenes import Goal, Send, Size
from cosim.errors import HangError, SimulationError, WrongDataError
from cosim.spec.header import FlitLayout
from cosim.spec.mesh import MeshSpec
from cosim.verilated.cache import included_files
from tlm.interconnect.handshake import HandshakeMesh
from tlm.interconnect.packets import PacketKind, Packets, ReductionGoal, TileSet
from tlm.interconnect.zero_load import CHANNELS, NocTiming

#: Longest packet that is tried, where the specification does not say more.
LONGEST_FLITS = 64
_PORTS = 5
_TRIES = 10_000


class Subject(Runs):
    """What experiments share: the meshes, and the timing as far as it is known.

    Attributes:
        spec: What is said of the mesh.
        found: Parameters by experiment; each adds its own.
        not_represented: What no form of the model can be, a line each.
        mesh_type: The harness.
        read: Files that Verilator read for the meshes, unnamed; none before they are built.
        limited_by: What becomes of more than a limit allows, by its name, where trying found it.
    """

    #: Whether a tile may send to itself, which no specification says.
    sends_to_itself = False

    def __init__(
        self,
        spec: MeshSpec,
        found: Mapping[str, Parameters] | None = None,
        mesh_type: type[BlackBoxMesh] = BlackBoxMesh,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.found = dict(found or {})
        self.not_represented: list[str] = []
        self.mesh_type = mesh_type
        self.read: list[Path] = []
        self.limited_by: dict[str, str] = {}
        self._layouts: dict[Size, FlitLayout] = {}

    @property
    def timing(self) -> NocTiming:
        """As far as it has been found out; buffers never fill until their depth is known."""
        return timing_of({name: self.parameters(name) for name in IDENTIFIED}, self.unknown)

    @cached_property
    def unknown(self) -> NocTiming:
        """The timing of which nothing has been found out: cycles that any buffers allow."""
        return NocTiming(
            hop_cycles=2,
            ejection_cycles=2,
            fifo_depth=LONGEST_FLITS,
            multicast_gap_cycles=0,
            flit_bytes=self.spec.field("payload").width(*self.spec.mesh.fit) // 8,
            cut_through=False,
        )

    def parameters(self, experiment: str) -> Parameters:
        """What an experiment has found; nothing, if it was not made."""
        return self.found.get(experiment, {})

    def note(self, line: str) -> None:
        """Note what no form of the model can be."""
        self.not_represented.append(line)

    @property
    def crosses_reductions(self) -> bool:
        """Whether reductions of several groups may be on the way at once.

        Else one that waits for its operands may keep another's from it, in a buffer or a unit.
        """
        whole = self.timing.cut_through and self.timing.unit_choice == "complete"
        return self.reductions and whole and self.operand_limit == _PORTS

    def follows_no_law(self, error: LawContradictedError) -> None:
        """Let it be that lone transfers follow no closed form, which the model does not need."""

    @property
    def fit(self) -> Size:
        """The size on which parameters are identified."""
        return self.spec.mesh.fit

    def check_sizes(self, *, quick: bool) -> list[Size]:
        """The sizes of the checks."""
        return [self.fit] if quick else self.spec.sizes()

    def mesh(self, size: Size) -> BlackBoxMesh:
        """The Verilated mesh."""
        return self.mesh_type(self.spec, *size)

    def sources(self) -> list[Path]:
        """What every measurement rests on."""
        included = included_files(self.spec.include_folders())
        own = [self.spec.file, *self.spec.source_files(), *included]
        return [*own, *(path for path in self.read if path not in own)]

    @property
    def packet_flits(self) -> int:
        """Longest unicast."""
        return self.spec.limits.packet_flits or LONGEST_FLITS

    @property
    def longest_tried_flits(self) -> int:
        """Longest multicast or operand that is tried: a header must be able to count it."""
        most = max(LONGEST_FLITS, self.packet_flits)
        return min(most, self.mesh(self.fit).layout().longest_flits or most)

    @property
    def no_limit_found(self) -> list[str]:
        """Limits of the specification that trying did not find either."""
        if self.mesh(self.fit).layout().longest_flits is not None:
            return []
        tried = {"multicast_flits": self.multicasts, "reduction_flits": self.reductions}
        return [
            name
            for name, there in tried.items()
            if there and getattr(self.spec.limits, name) is None
            if getattr(self, name) == self.longest_tried_flits
        ]

    @property
    def multicasts(self) -> bool:
        """Whether the network forks."""
        return self.spec.features.multicast is not None

    @property
    def reductions(self) -> bool:
        """Whether the network combines."""
        return self.spec.features.reduction is not None

    @cached_property
    def loopback(self) -> bool:
        """Whether a sender among the destinations of its multicast gets a copy."""
        if not self.multicasts:
            return True
        known = self._known("multicast", "loopback")
        return self.tried_loopback if known is None else bool(known)

    def try_neighbours(self) -> None:
        """Find what goes wrong with single flits between neighbours: all else rests on these."""
        cols = self.fit[1]
        packets = Packets.of(
            (0, source, TileSet.tile(*divmod(to, cols)), 1)
            for source, to in ((0, 1), (1, 0), (cols, cols + 1), (cols + 1, 1))
        )
        self.delivered(["single flits between neighbours"], [(self.fit, packets)])

    def _observe(self, label: str, items: list[Send]) -> Log | None:
        """Handshakes on the mesh of the fit, judged by nobody; None if it stops."""
        return self.observe(label, self.fit, items)

    @cached_property
    def tried_loopback(self) -> bool:
        """The same, as the mesh itself shows."""
        pair = TileSet(range(1), range(2))
        log = self._observe("a flit from tile 0,0 to itself and 0,1", [(0, 0, pair, 1)])
        return log is None or bool(((log[:, 0] == 1) & (log[:, 1] == 0)).any())

    @cached_property
    def channel(self) -> str:
        """One of `CHANNELS`, as was found or as the mesh itself shows."""
        if found := self.parameters("unicast"):
            return CHANNELS[round(found["channel"].value) if "channel" in found else 0]
        near, far = head_leads(self._observe, self.packet_flits)
        if near == far:
            return "none"
        return "receiver" if messages_mix(self._observe, self._mixing_flits) else "output"

    @property
    def locks(self) -> bool:
        """Whether a message's data go when the receiver has acknowledged, and lock their way."""
        return self.channel != "none"

    @cached_property
    def set_up_cycles(self) -> int:
        """Cycles more than a flit's by which a lone message's head goes in before what follows."""
        return head_leads(self._observe, self.packet_flits)[0] - 1

    @cached_property
    def flits_mix(self) -> bool:
        """Whether flits of packets from two senders mix on the way into a tile."""
        if self.locks:
            return self.channel == "receiver"
        return flits_mix(self._observe, self._mixing_flits)

    @property
    def _mixing_flits(self) -> int:
        return min(8, self.packet_flits)

    @cached_property
    def multicast_flits(self) -> int:
        """Longest multicast: as the specification says, or that gets through on the fit's mesh."""
        pair = TileSet(range(1), range(2))
        known = self.spec.limits.multicast_flits or self._known("multicast", "multicast_flits")
        return known or self._longest(
            "multicast_flits", lambda flits: [(0, 2 * self.fit[1], pair, flits)]
        )

    @cached_property
    def reduction_flits(self) -> int:
        """Longest operand, found alike."""
        pair = ReductionGoal(TileSet(range(1), range(2)), root=0, kind=self.timed)
        known = self.spec.limits.reduction_flits or self._known("reduction", "reduction_flits")
        return known or self._longest(
            "reduction_flits", lambda flits: [(0, node, pair, flits) for node in (0, 1)]
        )

    def outgrown(self, limit: str) -> Sequence[str]:
        """What is not tried, in words, since a limit allows shorter packets than buffers hold."""
        flits = getattr(self.spec.limits, limit)
        depth = self.timing.fifo_depth + self.timing.output_depth
        if flits is None or not self.timing.cut_through or flits >= depth:
            return ()
        return (f"more flits than limits.{limit} = {flits}: buffers hold packets of {depth}",)

    @property
    def timed(self) -> PacketKind:
        """The reduction whose cycles are measured: the first that the network knows."""
        return PacketKind[self.spec.reductions()[0].upper()]

    @cached_property
    def operand_limit(self) -> int:
        """Most operands that a router combines: as specified, or found by trying."""
        known = self.spec.limits.reduction_operands or self._known("reduction", "operand_limit")
        if known:
            return min(known, _PORTS)
        rows, cols = self.fit
        limit = 1
        for wanted in range(2, _PORTS + 1):
            goal = next(
                (
                    reduce
                    for height in (1, 2, 3, 4)
                    for width in (2, 3, 4)
                    for root in range(rows * cols)
                    if self.can_name(
                        self.fit,
                        reduce := self.reduce(
                            TileSet(range(min(height, rows)), range(min(width, cols))), root
                        ),
                    )
                    and self.meeting(reduce) == wanted
                ),
                None,
            )
            if goal is None:
                continue
            items: list[Send] = [(0, node, goal, 1) for node in goal.operands.nodes(cols)]
            if (failure := self._failure(items)) is not None:
                if limit < 2:
                    raise self._no_reduction(items, failure)
                self.limited_by["operand_limit"] = _more(failure)
                break
            limit = wanted
        return limit

    def _no_reduction(
        self, items: list[Send], failure: HangError | SimulationError
    ) -> LawContradictedError:
        """What is to be said, and a finding: not even two operands get through."""
        if self.findings is not None:
            label = "a reduction of the fewest operands"
            self.failed(label, self.fit, Packets.of(items), failure)
        return LawContradictedError(
            f"no reduction of two operands gets through: {in_words(failure)}; are the operation's "
            "codes and reduction_around as the mesh has them?"
        )

    def reduce(self, operands: TileSet, root: int) -> ReductionGoal:
        """A reduction of the kind that is timed."""
        return ReductionGoal(operands, root, self.timed)

    def meeting(self, goal: ReductionGoal, size: Size | None = None) -> int:
        """Most operands of a reduction that meet in one router."""
        return _most_meeting(size or self.fit, self.timing, goal)

    def can_name(self, size: Size, goal: Goal) -> bool:
        """Whether headers can name a set or a reduction."""
        if size not in self._layouts:
            self._layouts[size] = FlitLayout(self.spec, *size)
        return self._layouts[size].names(goal)

    def any_set(self, size: Size, rng: np.random.Generator, corner: Size | None = None) -> TileSet:
        """Tiles, of a mesh or a corner of it, that headers can name: one, rectangles, strided."""
        for _ in range(_TRIES):
            where = any_group(corner or size, rng)
            if self.can_name(size, where):
                return where
        raise LawContradictedError(f"headers name no set of tiles on {size[0]}x{size[1]}")

    def random_set(self, size: Size, rng: np.random.Generator) -> TileSet:
        """Several such tiles."""
        while len(where := self.any_set(size, rng)) == 1:
            pass
        return where

    def any_reduction(self, size: Size, rng: np.random.Generator) -> ReductionGoal:
        """A reduction of one operand or more that headers can name and routers can combine."""
        for _ in range(_TRIES):
            where = any_group(size, rng)
            goal = self.reduce(where, int(rng.integers(size[0] * size[1])))
            if self.can_name(size, goal) and self.meeting(goal, size) <= self.operand_limit:
                return goal
        raise LawContradictedError(
            f"no reduction of {self.operand_limit} operands a router can be named on "
            f"{size[0]}x{size[1]}"
        )

    def random_reduction(self, size: Size, rng: np.random.Generator) -> ReductionGoal:
        """One of several operands."""
        while len((goal := self.any_reduction(size, rng)).operands) == 1:
            pass
        return goal

    def _known(self, experiment: str, parameter: str) -> int | None:
        """What was found out, without trying it again."""
        found = self.parameters(experiment).get(parameter)
        return None if found is None else round(found.value)

    def _longest(self, limit: str, items: Callable[[int], list[Send]]) -> int:
        """Most flits, by doubling and then halving, with which packets get through."""
        most = self.longest_tried_flits
        good, bad = 1, most + 1
        while bad - good > 1:
            middle = min(2 * good, most) if bad > most else (good + bad) // 2
            if (failure := self._failure(items(middle))) is None:
                good = middle
            else:
                bad, self.limited_by[limit] = middle, _more(failure)
        return good

    def _failure(self, items: list[Send]) -> HangError | SimulationError | None:
        """What goes wrong with packets on the fit's mesh; None if they get through."""
        try:
            self.mesh(self.fit).simulate(
                Packets.of(items), loopback=self.loopback, keep_failures=False
            )
        except (HangError, SimulationError) as error:
            return error
        return None


def _more(failure: HangError | SimulationError) -> str:
    """What becomes of more than a limit allows."""
    if isinstance(failure, HangError):
        return "get stuck"
    return "come out wrong" if isinstance(failure, WrongDataError) else "stop the simulation"


def any_group(size: Size, rng: np.random.Generator) -> TileSet:
    """Tiles of a mesh: one, rectangles and strided sets."""
    return TileSet(*(_places(side, rng) for side in size))


def _places(side: int, rng: np.random.Generator) -> range:
    """Places on a side: one, some next to each other, or every second or third."""
    first, last = sorted(int(value) for value in rng.integers(0, side, 2))
    return range(first, last + 1, int(rng.integers(1, 4)))


@lru_cache(1 << 12)  # experiments draw the same reductions again
def _most_meeting(size: Size, timing: NocTiming, goal: ReductionGoal) -> int:
    return _model(size, timing).most_meeting(goal)


@lru_cache(4)
def _model(size: Size, timing: NocTiming) -> HandshakeMesh:
    return HandshakeMesh(*size, timing)
