"""Starts of operations at tiles whose sequencer starts one in a cycle."""

from collections.abc import Iterable, Iterator

from simpy import Event

from tlm.lockstep import Moment, SteppedEnvironment, go_on
from tlm.program.operations import Engine, Tile


class Starts:
    """Who of a tile's engines starts when several could: one a cycle, in turns.

    Args:
        env: The clock.
        take_turns: False: all start at once.
        behind_models: What an engine waits for may happen in the very cycle in which it starts, in
            a model.
    """

    def __init__(
        self, env: SteppedEnvironment, *, take_turns: bool, behind_models: bool = False
    ) -> None:
        self._env = env
        self._take_turns = take_turns
        self._settled = env.behind_models if behind_models else env.behind_all
        self._waiting: dict[Tile, dict[Engine, Moment]] = {}
        self._last: dict[Tile, int] = {}

    def turn(self, tile: Tile, engine: Engine) -> Iterable[Event]:
        """Wait until an engine that could start may."""
        return self._wait(tile, engine) if self._take_turns else ()

    def _wait(self, tile: Tile, engine: Engine) -> Iterator[Event]:
        waiting = self._waiting.setdefault(tile, {})
        waiting[engine] = starts = Moment()
        if len(waiting) == 1:
            go_on(self._serve(tile))
        yield starts

    def _serve(self, tile: Tile) -> Iterator[Event]:
        """Let one start a cycle, when all that could in this cycle have asked."""
        waiting = self._waiting[tile]
        while True:
            yield self._settled()
            last = self._last.get(tile, len(Engine) - 1)
            engine = min(waiting, key=lambda asking: (asking - last - 1) % len(Engine))
            self._last[tile] = engine
            starts, others = waiting.pop(engine), bool(waiting)
            starts.happen()
            if not others:
                return
            yield self._env.after(1)
