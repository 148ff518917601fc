"""Relays among SimPy processes: every word is a packet, and a tile waits for it as it comes."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from simpy import Event

from tlm.interconnect.packets import TileSet
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.lockstep import Moment, SteppedEnvironment, go_on
from tlm.program.operations import Tile
from tlm.program.steps import RelayStep

_Left = Callable[[int], object]


class Relays:
    """The streams of a run.

    Args:
        env: Its clock.
        network: Its network.
        cols: Columns of the grid.
    """

    def __init__(self, env: SteppedEnvironment, network: SimpyNetwork, cols: int) -> None:
        self._env, self._network, self._cols = env, network, cols
        self._words: dict[tuple[int, Tile, Tile], list[Moment]] = {}
        self._told: defaultdict[tuple[int, Tile], list[_Left]] = defaultdict(list)

    def start(self, step: RelayStep, arrived: list[_Left], left: _Left) -> None:
        """A tile takes part from now on.

        Args:
            step: Its part.
            arrived: Called with the root's number when that has added the last word.
            left: Called with the tile's when its last word has left; the root's has then come.
        """
        self._told[step.number, step.root] += arrived
        go_on(self._stream(step, left))

    def _stream(self, step: RelayStep, left: _Left) -> Iterator[Event]:
        relay, root, tile, env = step.operation, step.root, step.tile, self._env
        outer, inner = relay.neighbours(tile, root)
        comes = [self._come(step.number, source, tile, step.flits) for source in outer]
        goes = [] if inner is None else self._come(step.number, tile, inner, step.flits)
        leaves = env.now - 1
        for word in range(step.flits):
            for come in comes:
                yield come[word]
            come_at = max((int(come[word].value or 0) for come in comes), default=0)
            leaves = max(leaves + 1, come_at + relay.stage_cycles if comes else 0)
            last = word + 1 == step.flits
            if inner is not None:
                go_on(self._send(tile, inner, leaves, goes[word], left if last else _nothing))
        if inner is None:
            if leaves > env.now:
                yield env.after(leaves - env.now)
            for tell in (*self._told.pop((step.number, root)), left):
                tell(self._node(root))

    def _send(
        self, tile: Tile, inner: Tile, time: int, come: Moment, left: _Left
    ) -> Iterator[Event]:
        """Send a word at some time to the next tile inwards."""
        yield self._env.after(time - self._env.now)

        def arrive(_node: int) -> None:
            come.happen(self._env.now)

        goal = TileSet.tile(*inner)
        self._network.send(self._node(tile), goal, 1, left, {self._node(inner): arrive})

    def _come(self, number: int, source: Tile, tile: Tile, flits: int) -> list[Moment]:
        """What happens when each word has come from a tile to another."""
        key = (number, source, tile)
        if key not in self._words:
            self._words[key] = [Moment() for _ in range(flits)]
            return self._words[key]
        return self._words.pop(key)  # both ends know it now

    def _node(self, tile: Tile) -> int:
        return tile[0] * self._cols + tile[1]


def _nothing(_node: int) -> None:
    """Of the words that leave the last one matters."""
