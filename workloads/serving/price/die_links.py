"""What dies of a wafer send each other in an iteration, and how long it takes.

A token goes to the dies of its experts, a copy for each, and as much comes back (FlatAttention
paper, section IV). Where copies are merged, a die gets a token once, and sends one sum back. Tokens
go one after the other, so that a die turns to another one with each copy.
"""

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

from tlm.dies.collectives import WHOLE, Dealt, collective
from tlm.dies.links import TICKS_PER_S
from tlm.dies.perf import collective_ticks, worst_pct
from tlm.dies.simulate import simulate
from tlm.level_errors import Between
from workloads.machine.die_groups import DieGroups
from workloads.models import Model
from workloads.serving.price.experts import device_of, expected_loads
from workloads.serving.price.parts import Routed, rounded


@dataclass(frozen=True, slots=True)
class Exchange:
    """All-to-all of a group: tokens to their experts, or results back.

    Attributes:
        back: Whether it is the way back.
        tokens: Of all dies of a group.
        most: Of the die that has the most.
    """

    back: bool
    tokens: int
    most: int

    @property
    def operator(self) -> str:
        """What it is in the model."""
        return "combine" if self.back else "dispatch"


@dataclass(frozen=True, slots=True)
class HandOver:
    """Hidden states on their way to the next group of a pipeline.

    Attributes:
        tokens: Of the die that has the most.
    """

    tokens: int

    @property
    def operator(self) -> str:
        """What it is in the model."""
        return "hand-over"


Link = Exchange | HandOver


class Routing(NamedTuple):
    """How tokens find their experts.

    Attributes:
        popular: Whether experts are as popular as `workloads.serving.price.experts` has them; else
            all get as many tokens, and as many experts as there are copies get one.
        merged: Whether copies of a token for experts of one die are sent once.
    """

    popular: bool = False
    merged: bool = False


class DieLinks:
    """What a model's tokens ask of dies and links.

    Args:
        model: The model.
        groups: The dies.
        routing: How tokens find experts.
        element_bytes: Of what is sent.
        clock_hz: Of the cycles in which times are told.
    """

    def __init__(
        self,
        model: Model,
        groups: DieGroups,
        routing: Routing,
        element_bytes: int,
        clock_hz: float,
    ) -> None:
        self._model, self._groups, self._routing = model, groups, routing
        self._token_bytes = model.hidden * element_bytes
        self._hz = clock_hz
        self._cycles: dict[Link, float] = {}
        self._lt_cycles: dict[Link, float] = {}

    def busiest(self, tokens: int) -> Routed:
        """The experts of the die that gets the most of a group's tokens."""
        experts, dies = self._model.experts, self._groups.dies
        assert experts is not None
        copies = tokens * experts.active
        if not self._routing.popular:
            needed = min(experts.count, copies)
            of_die = -(-needed // dies)
            return Routed(of_die, max(of_die, rounded(-(-copies * of_die // needed))))
        chances, loads = expected_loads(experts.count, experts.active, tokens)
        places = device_of(experts.count, dies)
        found = [(loads[places == die].sum(), chances[places == die].sum()) for die in range(dies)]
        got, needed_there = max(found)
        count = max(1, round(needed_there))
        return Routed(count, max(count, rounded(round(got))))

    def bytes_of(self, link: Link) -> int:
        """Of each message: from a die to another one, in the mean, or to the next group."""
        if isinstance(link, HandOver):
            return link.tokens * self._token_bytes
        pairs = self._groups.dies**2
        return max(1, round(link.tokens * self._copies * self._token_bytes / pairs))

    def cycles(self, link: Link) -> float:
        """Cycles of a link's messages at level `perf`; 0 of a single die or group."""
        if link not in self._cycles:
            self._cycles[link] = self._at_perf(link)
        return self._cycles[link]

    def lt_cycles(self, link: Link) -> float:
        """The same, packet by packet."""
        if link not in self._lt_cycles:
            self._lt_cycles[link] = self._at_lt(link)
        return self._lt_cycles[link]

    def between(self, link: Link) -> Between:
        """Between what they may lie at level `lt`, as parts of their cycles at `perf`."""
        off = worst_pct(self._groups.first) / 100 if self._is_sent(link) else 0.0
        return Between(1 / (1 + off), 1 / (1 - off))

    def name_of(self, link: Link) -> str:
        """Name of its collective."""
        return self._collective(link)[0]

    @property
    def _copies(self) -> float:
        """Messages of a token: its experts, or the different dies on which they are."""
        experts, dies = self._model.experts, self._groups.dies
        assert experts is not None
        if not self._routing.merged:
            return experts.active
        there = -(-experts.count // dies)
        none = comb(experts.count - there, experts.active) / comb(experts.count, experts.active)
        return dies * (1 - none)

    def _is_sent(self, link: Link) -> bool:
        among = self._groups.count if isinstance(link, HandOver) else self._groups.dies
        return among > 1

    def _at_perf(self, link: Link) -> float:
        if not self._is_sent(link):
            return 0.0
        name, size, dealt = self._collective(link)
        mesh, group = self._groups.mesh, self._groups.first
        ticks = collective_ticks(name, mesh, group, size, dealt)
        return self._in_cycles(max(ticks, self._port_ticks(link)))

    def _at_lt(self, link: Link) -> float:
        if not self._is_sent(link):
            return 0.0
        name, size, dealt = self._collective(link)
        mesh, group = self._groups.mesh, self._groups.first
        ticks = simulate(collective(name, mesh, group, size, dealt), mesh).ticks
        return self._in_cycles(max(ticks, self._port_ticks(link)))

    def _collective(self, link: Link) -> tuple[str, int, Dealt]:
        if isinstance(link, HandOver):
            return "hand-over", self.bytes_of(link), WHOLE
        return "all-to-all", self.bytes_of(link), self._dealt(back=link.back)

    def _dealt(self, *, back: bool) -> Dealt:
        """Where experts are unequally popular dies get, and then send back, unequal parts."""
        by_token = Dealt(piece=self._token_bytes)
        if not self._routing.popular:
            return by_token
        experts, dies = self._model.experts, self._groups.dies
        assert experts is not None
        _, loads = expected_loads(experts.count, experts.active, 1)
        places = device_of(experts.count, dies)
        got = tuple(
            float(loads[places == die].sum()) * dies / experts.active for die in range(dies)
        )
        return by_token._replace(sent=got) if back else by_token._replace(got=got)

    def _port_ticks(self, link: Link) -> int:
        """What the die with the most tokens sends, or gets back, goes through its port."""
        if isinstance(link, HandOver):
            return 0
        away = self._groups.dies - 1
        of_one = link.most * self._copies * self._token_bytes * away / self._groups.dies
        return round(of_one * self._groups.mesh.port_ticks_per_unit)

    def _in_cycles(self, ticks: int) -> float:
        return ticks * self._hz / TICKS_PER_S
