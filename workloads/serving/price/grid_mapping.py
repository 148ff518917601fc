"""Plans of a model's layers on a square grid of tiles that hold all that they need."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from workloads.kernels.catalogue import KERNELS, KERNELS_OWN, Choices
from workloads.kernels.gemm.plan import Shape
from workloads.kernels.gemv.plan import GemvPlan, plan_gemv
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
        """Cycles that an operator takes at least: its product, and the least that a sum takes.

        Of kernels of vectors; of others it is 0. The way along a line is much of a sum, however
        short it is, and hangs on the place alone. With its length nothing but blocks grows, and the
        closed form only adds these up, and takes maxima of them, and the least of what some cuts of
        the blocks take. So no sum takes less than that of one element.
        """
        kernel = operator.kernel
        if kernel not in _OF_VECTORS:
            return 0
        if kernel != "row-sum":
            product = plan_gemv(cast(Shape, operator.sizes), self.place).product_cycles
            return product + self._least_sum(kernel)
        # Summed as a product is.
        collective = self._collective(kernel) or operator.choices.collective
        return self._least_sum("pipeline-gemv" if collective == "pipeline" else "mesh-gemv")

    def _least_sum(self, kernel: str) -> int:
        """Cycles of the sums of a column's products, of one element each."""
        if kernel not in self._least:
            smallest = self.mapped(GridOperator("", kernel, (1, 1, 1)))
            self._least[kernel] = smallest.cycles - cast(GemvPlan, smallest.plan).product_cycles
        return self._least[kernel]

    def _collective(self, kernel: str) -> str | None:
        """What was asked for, where a kernel has it: to a root that moves no trees lead."""
        asked = self._asked.collective
        if kernel == _MOVING_ROOT and asked not in _TO_MOVING_ROOTS:
            return None
        return asked if "collective" in KERNELS[kernel].choices else None
