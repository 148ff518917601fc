"""What prices of parts have in common: each part once, with ends by the comparisons of levels."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from tlm.level_errors import EXACT, Between, LevelStep, Steps, between, chip_steps
from workloads.machine.place import Place
from workloads.serving.price.level_runs import LevelRuns
from workloads.serving.price.mapping import Mapped

P = TypeVar("P", bound=Hashable)


class Price(NamedTuple):
    """Of some kernels: cycles, joules (`energy.UNKNOWN`: not known), bytes of experts' weights."""

    cycles: float = 0.0
    joules: float = 0.0
    expert_bytes: float = 0.0


class Where(Protocol):
    """What has the place of a kernel."""

    @property
    def place(self) -> Place:
        """The tiles."""
        ...

    def variant(self, mapped: Mapped) -> str:
        """What comparisons of levels know the kernel's choices by."""
        ...


class ComparedPrices(ABC, Generic[P]):
    """Prices of parts, each once.

    Args:
        compared_as: The shipped chip whose comparisons hold; None: those of all.
        network_pct: Error of the calibration of a network that stands in for the chip's.
        runs: Runs kernels at another level; None: prices are those of level `perf`.
    """

    def __init__(
        self, compared_as: str | None, network_pct: float, runs: LevelRuns | None = None
    ) -> None:
        self._compared_as, self._network_pct, self._runs = compared_as, network_pct, runs
        self._prices: dict[P, Price] = {}
        self._ends: dict[P, tuple[float, float]] = {}

    @abstractmethod
    def plans(self, part: P) -> Sequence[tuple[Where, Mapped]]:
        """Plans of a part's kernels, each as often as it runs."""

    @abstractmethod
    def _price(self, part: P) -> Price:
        """Of a part that has none yet."""

    @abstractmethod
    def _bounds(self, part: P) -> tuple[float, float]:
        """The least and the most cycles of a part that has none yet."""

    @property
    def level(self) -> str:
        """That of the prices."""
        return "perf" if self._runs is None else self._runs.level

    @property
    def not_compared(self) -> list[str]:
        """Kernels that were priced, of whose level no error is known."""
        if self.level == "at":
            return []
        used = {
            (mapped.kernel, where.variant(mapped), where.place.offchip is not None)
            for part in (*self._prices, *self._ends)
            for where, mapped in self.plans(part)
        }
        return sorted({f"{each[0]} {each[1]}".strip() for each in used if not self._steps(*each)})

    def of(self, part: P) -> Price:
        """Price of a part."""
        found = self._prices.get(part)
        if found is None:
            found = self._prices[part] = self._price(part)
        return found

    def ends(self, part: P) -> tuple[float, float]:
        """The least and the most cycles that a part may take at level `at`.

        Raises:
            InputError: if the comparison of the levels is missing or stale.
        """
        if part not in self._ends:
            self._ends[part] = self._bounds(part)
        return self._ends[part]

    def _between(self, where: Where, mapped: Mapped, cycles: float) -> Between:
        """Between what a plan may take at level `at`, as a part of its cycles at the prices' level.

        A plan that was not compared stays where it is, though nobody knows how far off it may be:
        it is among `not_compared`, by which figures with such ends are withheld.
        """
        if self.level == "at":
            return EXACT  # as errors are told against that level
        memory = where.place.offchip is not None
        steps = self._steps(mapped.kernel, where.variant(mapped), memory)
        if steps is None:
            return EXACT
        if self._network_pct:
            steps = [*steps, LevelStep.anywhere(self._network_pct)]
        return between(steps, mapped.plan.balance, cycles)

    def _steps(self, kernel: str, variant: str, memory: bool) -> Steps | None:
        """What is known of a kernel at the prices' level; None if it was not compared."""
        return chip_steps(self._compared_as, kernel, self.level, memory=memory, variant=variant)
