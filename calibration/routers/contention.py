"""Who gets an output: the order of routing, the kind of arbiter, its line, when it is held."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from calibration.routers.experiment import SceneExperiment, common, exact, kind
from calibration.routers.found import PORTS
from calibration.routers.scenes import (
    Scene,
    Send,
    Size,
    about,
    best_of,
    by_misfit,
    closest,
    forms,
    shortlist,
)
from calibration.routers.unicast import LONGEST_RETURN_CYCLES
from tlm.calibrated import Parameter
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import ARBITERS, NocTiming

_FIT_CROWDS, _FIT_BURSTS = 8, 6
_CHECK_CROWDS, _CHECK_BURSTS = 25, 6
# So many packets for each flit that a router's port holds: outputs must be blocked for long.
_BURST_PACKETS, _LEAST_PACKETS, _MOST_PACKETS, _BURST_CYCLES = 40, 160, 400, 30
#: What scenes are about.
MEET, CROWD = "packets of all inputs at one output", "a crowd of packets to one tile"
BURST = "bursts of unicasts that fill the buffers"
#: Longest rest of an output between packets that is recognised.
LONGEST_TURNAROUND_CYCLES = 3
#: Forms that are kept to the end where none explains everything.
_NEARLY = 60
#: The four neighbours in line, the tile's own input and the reduction unit behind them.
_ROWS = [(*row, 0, 5) for row in permutations((1, 2, 3, 4))]
#: In a tree the place itself counts, not only who comes before whom.
_TREE_ROWS = [line for line in permutations(range(6)) if line.index(0) < line.index(5)]


class Contention(SceneExperiment):
    """Nothing but arbiters and room decides when packets that meet go on."""

    name = "contention"
    subject = "deliveries of packets that meet at outputs"

    @property
    def untried(self) -> Sequence[str]:
        """Tiles as they may be."""
        return ("tiles that take nothing for a while amid traffic",)

    def fit_cases(self) -> list[Scene]:
        """All neighbours to one tile, all ways into one column, random crowds and bursts."""
        rng = np.random.default_rng(self.seed)
        crowds = [self._crowd(self.mesh.fit, rng, f"fit {i}") for i in range(_FIT_CROWDS)]
        bursts = [self._burst(self.mesh.fit, rng, i) for i in range(_FIT_BURSTS)]
        first = about(MEET, [self._neighbours(), self._column()])
        return [*first, *about(CROWD, crowds), *about(BURST, bursts)]

    def check_cases(self, *, quick: bool) -> list[Scene]:
        """Other crowds, all to one tile, and other bursts, from anywhere to anywhere."""
        crowds, bursts = (np.random.default_rng(self.seed + number) for number in (1, 2))
        scenes = []
        for size in self.mesh.check_sizes(quick=quick):
            crowd = [self._crowd(size, crowds, str(i)) for i in range(_CHECK_CROWDS)]
            burst = [self._burst(size, bursts, _FIT_BURSTS + i) for i in range(_CHECK_BURSTS)]
            scenes += [*about(CROWD, crowd), *about(BURST, burst)]
        return scenes

    def find(self, cases: Sequence[Scene], values: Sequence[float]) -> dict[str, Parameter]:
        """The forms that explain all orders; first those of the neighbours, then of all inputs."""
        rows = self._by_neighbours(cases, values, ARBITERS[:2], _ROWS)
        known = _narrowed(rows, cases, values, most=1)
        if closest(known, cases, values)[1] > 0:
            # What explains no first scene wholly may be the nearest on all.
            trees = self._by_neighbours(cases, values, ("tree",), _TREE_ROWS)
            known += _narrowed(trees, cases, values, most=1)
            known += _narrowed(rows, cases, values, most=_NEARLY)
        found = self.choose(known, cases, values, "order at the outputs")
        if self.mesh.flits_mix and not self.mesh.locks:
            self.mesh.note("flits of packets mix at an output; the model holds it for a packet")
        return {
            "lock_grain": exact(
                int(not self.mesh.flits_mix), "0: an output is a flit's, 1: a packet's"
            ),
            "y_first": common(found, lambda f: int(f.y_first), "1: along columns first"),
            "arbiter": kind(found, "arbiter", ARBITERS),
            "lock_on_transfer": common(
                found, lambda f: int(f.lock_on_transfer), "1: held from the first flit on"
            ),
            "return_cycles": common(found, lambda f: f.return_cycles, "cycles/flit"),
            "turnaround_cycles": common(found, lambda f: f.turnaround_cycles, "cycles/packet"),
            **{f"place_{name}": _place(found, port) for port, name in enumerate(PORTS)},
        }

    def _by_neighbours(
        self,
        cases: Sequence[Scene],
        values: Sequence[float],
        arbiters: Sequence[str],
        lines: Iterable[tuple[int, ...]],
    ) -> list[tuple[float, NocTiming]]:
        """Forms by how far off they are on the neighbours: thousands, so only once."""
        known = forms(
            [self.mesh.timing],
            turnaround_cycles=range(1 + LONGEST_TURNAROUND_CYCLES),
            return_cycles=range(1 + LONGEST_RETURN_CYCLES),
            arbiter=arbiters,
            lock_on_transfer=(False, True),
            line=lines,
        )
        return by_misfit(known, cases[:1], values[:1])

    def _neighbours(self) -> Scene:
        return self._meet("neighbours of 1,1 to it", TileSet.tile(1, 1), _around(1, 1))

    def _column(self) -> Scene:
        """From 1,2 and around it to 2,2; its own packets start when the others' have come."""
        around = {**_around(1, 2), (1, 2): self.mesh.timing.hop_cycles}
        del around[2, 2]
        return self._meet("around 1,2 to 2,2", TileSet.tile(2, 2), around)

    def _meet(self, label: str, to: TileSet, starts: dict[tuple[int, int], int]) -> Scene:
        rows, cols = self.mesh.fit
        flits = min(2, self.mesh.packet_flits)
        sends: list[Send] = [
            (start, row * cols + col, to, flits)
            for (row, col), start in starts.items()
            for _ in range(4)
            if row < rows and col < cols
        ]
        return Scene(self.mesh.fit, f"{rows}x{cols}: {label}, 4 packets each", tuple(sends))

    def _crowd(self, size: Size, rng: np.random.Generator, number: str) -> Scene:
        """Random sources, lengths and starts, all to one tile, which lies anywhere."""
        nodes, longest = size[0] * size[1], min(19, self.mesh.packet_flits)
        target = int(rng.integers(nodes))
        row, col = divmod(target, size[1])
        sends: tuple[Send, ...] = tuple(
            (int(rng.integers(0, 12)), int(node), TileSet.tile(row, col), flits)
            for node in rng.choice(nodes, size=int(rng.integers(2, 7)), replace=False)
            for flits in [int(rng.integers(1, longest + 1))]
            if node != target or self.mesh.sends_to_itself
        )
        label = f"{size[0]}x{size[1]}: crowd {number}, {len(sends)} packets to {row},{col}"
        return Scene(size, label, sends)

    def _burst(self, size: Size, rng: np.random.Generator, number: int) -> Scene:
        """Far more than the mesh can take: requests come while outputs are blocked.

        Every second burst is of short packets: the more heads, the more choices.
        """
        timing = self.mesh.timing
        count = _BURST_PACKETS * (timing.fifo_depth + timing.output_depth)
        count = min(max(count, _LEAST_PACKETS), _MOST_PACKETS)
        longest = min(6 if number % 2 else 2, self.mesh.packet_flits)
        sends: list[Send] = []
        for _ in range(count):
            source, end = rng.choice(size[0] * size[1], 2, replace=False).tolist()
            flits = int(rng.integers(1, longest + 1))
            cycle = int(rng.integers(_BURST_CYCLES))
            sends.append((cycle, source, TileSet.tile(*divmod(end, size[1])), flits))
        label = f"{size[0]}x{size[1]}: burst {number}, {count} packets"
        return Scene(size, label, tuple(sorted(sends, key=lambda send: send[0])))


def _narrowed(
    ranked: Sequence[tuple[float, NocTiming]],
    cases: Sequence[Scene],
    values: Sequence[float],
    most: int,
) -> list[NocTiming]:
    """The forms that explain the neighbours best, and of these the ways into the column."""
    known = forms(best_of(ranked, most), y_first=(False, True))
    known = [form for given in known for form in _with_local(given)]
    return shortlist(known, cases[:2], values[:2], most)


def _with_local(form: NocTiming) -> list[NocTiming]:
    """The form with the tile's own input wherever it may stand among the others."""
    if form.arbiter == "tree":
        swapped = {0: 5, 5: 0}
        return [form, replace(form, line=tuple(swapped.get(port, port) for port in form.line))]
    others = form.line[:4]
    return [replace(form, line=(*others[:place], 0, *others[place:], 5)) for place in range(5)]


def _place(found: Sequence[NocTiming], port: int) -> Parameter:
    return common(found, lambda form: form.line.index(port), "in line")


def _around(row: int, col: int) -> dict[tuple[int, int], int]:
    return dict.fromkeys([(row - 1, col), (row, col + 1), (row + 1, col), (row, col - 1)], 0)
