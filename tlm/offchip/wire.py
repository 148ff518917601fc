"""A wire between a tile and a memory channel of its own, beside the network."""

from collections.abc import Callable

from simpy import Environment

from tlm.lockstep import call_after


class Wire:
    """Carries flits one way, one a cycle, in the order in which they are sent.

    Args:
        env: The clock.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._free_cycle = 0

    def send(self, flits: int, left: Callable[[], object], come: Callable[[], object]) -> None:
        """Send flits after those before; ``left``, then ``come`` are called after the last one."""
        now = int(self._env.now)
        self._free_cycle = max(now, self._free_cycle) + flits

        def arrive() -> None:
            left()
            come()

        call_after(self._env, self._free_cycle - now, arrive)
