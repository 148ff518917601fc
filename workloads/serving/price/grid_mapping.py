"""Plans of a model's layers on a square grid of tiles that hold all that they need."""

from collections.abc import Iterator
from dataclasses import replace

from workloads.kernels.catalogue import KERNELS, KERNELS_OWN, Choices
from workloads.machine.place import Place
from workloads.models import Model
from workloads.serving.price.grid_layer import GridOperator, grid_operators
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.parts import Part

_MOVING_ROOT, _TO_MOVING_ROOTS = "mesh-gemm-t", ("network", "stream")

#: Kernels of vectors. All that a model has of one of them have the same choices.
_OF_VECTORS = ("mesh-gemv", "pipeline-gemv", "row-sum")


class GridMapping:
    """Plans parts of iterations on a square place, each kernel once.

    Args:
        model: A dense model.
        place: Where its layers run.
        gemv: The kernel of products of a vector.
        choices: Variants of kernels: each gets those that it has.
    """

    def __init__(
        self,
        model: Model,
        place: Place,
        gemv: str = "mesh-gemv",
        choices: Choices = KERNELS_OWN,
    ) -> None:
        self.place, self._model, self._gemv, self._asked = place, model, gemv, choices
        self._plans: dict[GridOperator, Mapped] = {}
        self._cycles: dict[Part, int] = {}
        self._least: dict[str, int] = {}
        self._variants: dict[tuple[str, bool | None], str] = {}

    def of(self, part: Part) -> Iterator[tuple[GridOperator, Mapped]]:
        """Kernels of a part, and their plans.

        Raises:
            InputError: if the place is not square.
        """
        for operator in self.operators(part):
            yield operator, self.mapped(operator)

    def operators(self, part: Part) -> Iterator[GridOperator]:
        """Kernels of a part, which are planned only where they are wanted.

        Raises:
            InputError: if the place is not square.
        """
        return grid_operators(self._model, part, self.place.square_side(), self._gemv)

    def variant(self, mapped: Mapped) -> str:
        """What comparisons of levels know a kernel's choices by."""
        key = mapped.kernel, mapped.choices.skewed
        if key not in self._variants:
            collective = self._collective(mapped.kernel)
            choices = replace(self._asked, skewed=mapped.choices.skewed, collective=collective)
            self._variants[key] = KERNELS[mapped.kernel].variant(choices, self.place)
        return self._variants[key]

    def cycles(self, part: Part) -> int:
        """Cycles of a part by the closed forms of its kernels, one after another."""
        if part not in self._cycles:
            self._cycles[part] = sum(mapped.cycles for _, mapped in self.of(part))
        return self._cycles[part]

    def mapped(self, operator: GridOperator) -> Mapped:
        """Plan of a kernel."""
        key = operator._replace(name="")
        if key not in self._plans:
            kernel = KERNELS[operator.kernel]
            choices, collective = operator.choices, self._collective(operator.kernel)
            if collective is not None:
                choices = replace(choices, collective=collective)
            (found,) = kernel.found([operator.sizes], self.place, choices)
            self._plans[key] = Mapped(operator.kernel, operator.sizes, *found)
        return self._plans[key]

    def least_cycles(self, operator: GridOperator) -> int:
        """Cycles that an operator takes at least: those of the smallest one of its kernel.

        That is much of a kernel of vectors, whose sums go all the way along a line, however short
        they are. Their way hangs on the place alone. With the sizes nothing but work and blocks
        grows, and the closed form only adds these up, and takes maxima of them, and the least of
        what some cuts of the blocks take. So none takes less. Of other kernels it is 0.
        """
        kernel = operator.kernel
        if kernel not in _OF_VECTORS:
            return 0
        if kernel not in self._least:
            smallest = operator._replace(sizes=(1,) * len(operator.sizes))
            self._least[kernel] = self.mapped(smallest).cycles
        return self._least[kernel]

    def _collective(self, kernel: str) -> str | None:
        """What was asked for, where a kernel has it: to a root that moves no trees lead."""
        asked = self._asked.collective
        if kernel == _MOVING_ROOT and asked not in _TO_MOVING_ROOTS:
            return None
        return asked if "collective" in KERNELS[kernel].choices else None
