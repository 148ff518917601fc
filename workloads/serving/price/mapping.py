"""Which kernel runs an operator of a model on a place, and the plan of it.

Kernels run one after another, each over the whole place, with operands and results in off-chip
memory (FlatAttention paper, section III-E).
"""

from collections.abc import Mapping as Mapping_
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

from workloads.kernels.attention.flash_plan import FlashPlan
from workloads.kernels.attention.flash_search import alone_within, in_runs
from workloads.kernels.attention.flat_search import check_group
from workloads.kernels.attention.kernels import find_flats
from workloads.kernels.attention.plan import AttentionPlan
from workloads.kernels.attention.shape import AttentionShape
from workloads.kernels.catalogue import KERNELS, KERNELS_OWN, Choices, Plan, Sizes
from workloads.kernels.gemm.plan import GemmPlan
from workloads.kernels.gemm.stream_plan import StreamPlan
from workloads.kernels.gemm.stream_search import plan_streams
from workloads.kernels.parts.found import Found
from workloads.machine.place import Place
from workloads.models.operators import Attention, Operator, Product, Rows
from workloads.serving.price.kept_weights import Held, Matrix

#: Some choices by name, each made or not.
Made = tuple[tuple[str, bool | float | None], ...]


class Mapped(NamedTuple):
    """An operator on a place.

    Attributes:
        kernel: Name of the kernel.
        sizes: Of its problem, as in ``--shape``.
        plan: The problem cut over the tiles.
        cycles: By the plan's closed form.
    """

    kernel: str
    sizes: Sizes
    plan: Plan
    cycles: int

    @property
    def made(self) -> Made:
        """What the problem has of the choices of attention and of products by blocks."""
        plan = self.plan
        if isinstance(plan, AttentionPlan):
            return ("latent", plan.shape.latent), ("causal", plan.shape.causal)
        if isinstance(plan, GemmPlan):
            return (("skewed", plan.skewed),)
        if isinstance(plan, StreamPlan):
            return ("resident", plan.resident), ("weight_bits", plan.weight_bits)
        return ()

    @property
    def choices(self) -> Choices:
        """The same, as kernels have them."""
        return _choices(self.made)

    def variant(self, choices: Choices, place: Place) -> str:
        """What comparisons of levels know the plan by, where kernels have some choices."""
        own = self.choices
        made = replace(
            choices, causal=own.causal, resident=own.resident, weight_bits=own.weight_bits
        )
        return KERNELS[self.kernel].variant(made, place)


@lru_cache(64)
def _choices(made: Made) -> Choices:
    """Choices of which some are made or not."""
    known: dict[str, Any] = {name: each or None for name, each in made}
    return Choices(**known)


class Mapping:
    """Plans operators on a place.

    Args:
        place: Where they run, with its share of off-chip memory.
        choices: Variants of kernels: each gets those that it has.
        kept: Whether keys and values of decoding requests lie in the tiles that use them.
        held: Where weights lie in the tiles; None: they are in off-chip memory.

    Raises:
        InputError: for a choice that the place does not have.
    """

    def __init__(
        self,
        place: Place,
        choices: Choices = KERNELS_OWN,
        *,
        kept: bool = False,
        held: Mapping_[Matrix, Held] | None = None,
    ) -> None:
        place.method(choices.collective)
        if choices.group is not None:
            check_group(choices.group, place)
        self.place = place
        self.choices = choices
        self._kept, self.held = kept, held
        self._variants: dict[tuple[str, Made], str] = {}

    def variant(self, mapped: Mapped) -> str:
        """What comparisons of levels know the choices of a plan's kernel by."""
        key = mapped.kernel, mapped.made
        if key not in self._variants:
            self._variants[key] = mapped.variant(self.choices, self.place)
        return self._variants[key]

    def of(self, operator: Operator) -> Mapped:
        """The fastest plan of an operator.

        Raises:
            InputError: if none fits the tiles' memory.
        """
        return self.of_all([operator])[0]

    def of_all(self, operators: Sequence[Operator]) -> list[Mapped]:
        """The same of operators that differ in how much there is to do alone.

        That is in the rows and groups of products, the rows of others, the keys of attention.

        Raises:
            InputError: if no plan of one fits the tiles' memory.
        """
        first = operators[0]
        if isinstance(first, Product):
            return self._products(cast(Sequence[Product], operators))
        if isinstance(first, Attention):
            return self._attentions(cast(Sequence[Attention], operators))
        return self._rows(cast(Sequence[Rows], operators))

    def _products(self, products: Sequence[Product]) -> list[Mapped]:
        place, first = self.place, products[0]
        bits, cut = 8 * first.weight_bytes, None
        if self.held is not None:
            cut, own = self.held[Matrix.of(first)]
            groups = max(each.groups for each in products)
            place = replace(place, tile_bytes=place.tile_bytes + groups * own)
        found = plan_streams(
            [(each.rows, each.groups) for each in products],
            (first.columns, first.depth),
            place,
            place.method(self.choices.collective),
            None if bits == place.element_bits else bits,
            resident=cut is not None,
            cut=cut,
        )
        if first.groups == 1:
            return [Mapped("stream-gemm", each.plan.shape, *each) for each in found]
        sizes = [(each.plan.groups, *each.plan.shape) for each in found]
        return [Mapped("grouped-gemm", size, *one) for size, one in zip(sizes, found, strict=True)]

    def _attentions(self, attentions: Sequence[Attention]) -> list[Mapped]:
        first, place = attentions[0], self.place
        sizes = [each[1:8] for each in attentions]
        shapes = [AttentionShape(*each, first.latent, first.causal) for each in sizes]
        # Groups of tiles work on a head together: worth it for many rows, as those of all heads on
        # latent keys, or where heads are so few that runs of tiles leave some idle.
        together: list[Mapped] = []
        worth = first.latent or shapes[0].heads < place.rows
        if first.causal or (worth and not self._kept):
            found = find_flats(shapes, place, self.choices)
            together = [
                Mapped("flat-attention", size, *one) for size, one in zip(sizes, found, strict=True)
            ]
        apart: Sequence[Found[FlashPlan] | None]
        if first.causal:
            apart = alone_within(shapes, place, [each.cycles for each in together])
        else:
            apart = in_runs(shapes, place, place.method(self.choices.collective), whole=self._kept)
        fastest = []
        for number, (size, one) in enumerate(zip(sizes, apart, strict=True)):
            tried = together[number : number + 1]
            if one is not None:
                name = "tile-attention" if first.causal else "decode-attention"
                tried.insert(0, Mapped(name, size, *one))
            fastest.append(min(tried, key=lambda mapped: mapped.cycles))
        return fastest

    def _rows(self, rows: Sequence[Rows]) -> list[Mapped]:
        first = rows[0]
        kernel = KERNELS[first.kind]
        third = {"rotary": first.head_dim, "weighted-sum": first.operands}
        more = (third[first.kind],) if first.kind in third else ()
        sizes = [(each.rows, each.columns, *more) for each in rows]
        found = kernel.found(sizes, self.place, kernel.known(self.choices))
        return [Mapped(first.kind, size, *one) for size, one in zip(sizes, found, strict=True)]
