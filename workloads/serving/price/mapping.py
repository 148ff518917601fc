"""Which kernel runs an operator of a model on a place, and the plan of it.

Kernels run one after another, each over the whole place, with operands and results in off-chip
memory (FlatAttention paper, section III-E).
"""

from functools import lru_cache
from typing import NamedTuple, cast

from workloads.kernels.catalogue import KERNELS, Choices, MovingPlan, Sizes
from workloads.kernels.gemm.stream_search import plan_stream
from workloads.machine.place import Place
from workloads.models.operators import Attention, Operator, Product

_STREAM = "stream-gemm"
#: Of prompts, and of decoding requests; the fastest by the closed form is taken.
_PROMPT_ATTENTION = ("flat-attention", "flash-attention-3", "flash-attention-2")
_DECODE_ATTENTION = ("decode-attention", "flat-attention")


class Mapped(NamedTuple):
    """An operator on a place.

    Attributes:
        kernel: Name of the kernel.
        sizes: Of its problem, as in ``--shape``.
        groups: Problems of this shape that run in one pipeline.
        plan: The problem cut over the tiles.
        cycles: By the plan's closed form.
    """

    kernel: str
    sizes: Sizes
    groups: int
    plan: MovingPlan
    cycles: int


class Mapping:
    """Plans operators on a place.

    Args:
        place: Where they run, with its share of off-chip memory.
        collective: How reductions are made, and blocks sent to many; None: as kernels do.
        schedule: Of FlatAttention; None: its own.
    """

    def __init__(
        self, place: Place, collective: str | None = None, schedule: str | None = None
    ) -> None:
        self._place = place
        self._collective = collective
        self._schedule = schedule
        self.of = lru_cache(maxsize=1 << 16)(self._of)

    def _of(self, operator: Operator) -> Mapped:
        """The fastest plan of an operator.

        Raises:
            InputError: if none fits the tiles' memory.
        """
        if isinstance(operator, Product):
            return self._product(operator)
        if isinstance(operator, Attention):
            return self._attention(operator)
        third = {"rotary": operator.head_dim, "weighted-sum": operator.operands}
        more = (third[operator.kind],) if operator.kind in third else ()
        return self._mapped(operator.kind, (operator.rows, operator.columns, *more))

    def _product(self, product: Product) -> Mapped:
        place, sizes = self._place, (product.rows, product.columns, product.depth)
        bits = 8 * product.weight_bytes
        plan = plan_stream(
            sizes,
            place,
            place.method(self._collective),
            product.groups,
            None if bits == place.element_bits else bits,
        )
        cycles = KERNELS[_STREAM].closed_form(plan, place.timing)
        return Mapped(_STREAM, sizes, product.groups, plan, cycles)

    def _attention(self, attention: Attention) -> Mapped:
        sizes = attention[1:8]
        names = _PROMPT_ATTENTION if attention.causal else _DECODE_ATTENTION
        found = [self._mapped(name, sizes) for name in names]
        return min(found, key=lambda mapped: mapped.cycles)

    def _mapped(self, name: str, sizes: Sizes) -> Mapped:
        kernel, place = KERNELS[name], self._place
        choices = Choices(
            collective=self._collective if "collective" in kernel.choices else None,
            schedule=self._schedule if "schedule" in kernel.choices else None,
        )
        plan = cast(MovingPlan, kernel.planned(sizes, place, choices))
        return Mapped(name, sizes, 1, plan, kernel.closed_form(plan, place.timing))
