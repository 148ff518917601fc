"""Starts of operations at tiles whose sequencer starts one in a cycle."""

from collections.abc import Generator, Iterable
from typing import Any

from simpy import Event

from tlm.lockstep import SteppedEnvironment
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
        self._waiting: dict[Tile, dict[Engine, Event]] = {}
        self._last: dict[Tile, int] = {}

    def turn(self, tile: Tile, engine: Engine) -> Iterable[Event]:
        """Wait until an engine that could start may."""
        return self._wait(tile, engine) if self._take_turns else ()

    def _wait(self, tile: Tile, engine: Engine) -> Generator[Event, Any, None]:
        waiting = self._waiting.setdefault(tile, {})
        waiting[engine] = self._env.event()
        if len(waiting) == 1:
            self._env.process(self._serve(tile))
        yield waiting[engine]

    def _serve(self, tile: Tile) -> Generator[Event, Any, None]:
        """Let one start a cycle, when all that could in this cycle have asked."""
        waiting = self._waiting[tile]
        while True:
            yield self._settled()
            last = self._last.get(tile, len(Engine) - 1)
            engine = min(waiting, key=lambda asking: (asking - last - 1) % len(Engine))
            self._last[tile] = engine
            waiting.pop(engine).succeed()
            if not waiting:
                return
            yield self._env.timeout(1)
