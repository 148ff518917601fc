"""What a kernel is: its sizes, its choices, and its three faces at the levels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeGuard

from tlm.errors import InputError
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Program
from workloads.kernels.parts.found import Found
from workloads.kernels.parts.pieces import Pieces
from workloads.machine.moved import Moved
from workloads.machine.place import Place

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """What the sizes of a problem mean.

    Attributes:
        text: Their names, in order.
        example: Sizes to write.
    """

    text: str
    example: str

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.text.split(","))


GEMM = Form("M,N,K", "64,64,64")
ROWS = Form("M,N", "64,64")
HEADS = Form("M,N,D", "64,64,16")
SUMS = Form("M,N,K", "64,64,8")
GROUPS = Form("G,M,N,K", "4,64,64,64")
ATTENTION = Form("B,Hq,Hkv,Sq,Skv,Dqk,Dv", "1,4,4,64,64,16,16")
#: The same on a latent cache: one head of keys, which are values in their first elements.
LATENT = Form(ATTENTION.text, "1,4,1,64,64,24,16")


@dataclass(frozen=True, slots=True)
class Choices:
    """Variants of kernels; None is what a kernel does by itself.

    Attributes:
        collective: How reductions are made (`workloads.kernels.parts.collectives`), and blocks
            of operands sent to many (`workloads.kernels.parts.broadcast`).
        groups: Groups of each level but the last of a K-tree.
        schedule: Of FlatAttention: ``naive`` or ``async``.
        group: Rows and columns of its groups of tiles.
        weight_bits: Of an element of B in memory and network, if others than of A.
        resident: Whether B lies in the tiles that use it.
        latent: Of attention: values are the first elements of the keys.
        skewed: Of products by compute and shift: A comes skewed, as one before left it.
        receive_buffers: Of SUMMA: of a tile for panels of each matrix, 1 or 2.
        serial: Of SUMMA: whether panels of B wait for those of A.
        at_root: Of products of a vector: whether sums stay at the roots. Of partitioned ones:
            whether each tile keeps the part that comes together there.
        causal: Of attention: no row sees the keys of tokens after its own.
        heads_per_group: Of FlatAttention: streams that a group has under way.
        partition: Of partitioned products (`workloads.kernels.gemm.partition_plan`).
        placement: Of the same: the order of the tiles (`workloads.machine.order`).
    """

    collective: str | None = None
    groups: tuple[int, ...] | None = None
    schedule: str | None = None
    group: tuple[int, int] | None = None
    weight_bits: float | None = None
    resident: bool | None = None
    latent: bool | None = None
    skewed: bool | None = None
    receive_buffers: int | None = None
    serial: bool | None = None
    at_root: bool | None = None
    causal: bool | None = None
    heads_per_group: int | None = None
    partition: str | None = None
    placement: str | None = None


_CHOICES = tuple(field.name for field in fields(Choices))
#: Kernels as they are by themselves.
KERNELS_OWN = Choices()


class Plan(Protocol):
    """A problem cut over tiles."""

    @property
    def pieces(self) -> Pieces:
        """What tiles work on."""

    @property
    def balance(self) -> float:
        """Cycles of a step's work over the flits of its transfers."""

    @property
    def tile_macs(self) -> int:
        """Multiply-accumulates of a tile, those of padding among them."""

    @property
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's products."""

    @property
    def tile_vector_cycles(self) -> int:
        """Cycles of the vector passes that every tile makes."""


class MovingPlan(Plan, Protocol):
    """The plan of a kernel whose operands lie in off-chip memory."""

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves."""


def moves(plan: Plan) -> TypeGuard[MovingPlan]:
    """Whether a kernel's operands lie in off-chip memory."""
    return hasattr(type(plan), "moved")


def moved_of(plan: Plan) -> Moved:
    """Bytes that a program moves; none of a kernel whose operands lie in the tiles."""
    return plan.moved if moves(plan) else Moved()


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel at every level.

    Attributes:
        form: What its sizes mean.
        macs: Multiply-accumulates of a problem, without padding and what a mask leaves out.
        plan: Cuts a problem over tiles.
        program: Builds its program.
        closed_form: Its cycles at level `perf`.
        choices: Names of the `Choices` that it has.
        without_memory: The same plan for the closed form, with what lies in off-chip memory there
            when asked for.
        search: Plans, with their cycles, of problems that differ in one size alone: the first, or
            of attention the keys.
        collective: What it does without a choice of one.
    """

    form: Form
    macs: Callable[[Sizes, Choices], int]
    plan: Callable[[Sizes, Place, Choices], Any]
    program: Callable[[Any], Program]
    closed_form: Callable[[Any, NocTiming], int]
    choices: tuple[str, ...] = ()
    without_memory: Callable[[Any], Any] = lambda plan: plan
    search: Callable[[Sequence[Sizes], Place, Choices], list[Found[Any]]] | None = None
    collective: Callable[[Place], str] = lambda place: place.method(None)

    def known(self, choices: Choices) -> Choices:
        """Those of some choices that the kernel has."""
        return Choices(**{name: getattr(choices, name) for name in self.choices})

    def variant(self, choices: Choices, place: Place) -> str:
        """What comparisons of levels know choices by, beside the kernel; empty: its own."""
        known = self.known(choices)
        own = self.collective(place)
        parts = (
            known.schedule if known.schedule != "async" else None,
            known.collective if known.collective != own else None,
            f"groups of {known.groups}" if known.groups else None,
            "narrow weights" if _widens(known, place) else None,
            "resident" if known.resident else None,
            "skewed" if known.skewed else None,
            "one buffer" if known.receive_buffers == 1 else None,
            "serial" if known.serial else None,
            "at the root" if known.at_root else None,
            "causal" if known.causal else None,
            known.partition if known.partition != "auto" else None,
            known.placement if known.placement != "linear" else None,
            "1 head a group" if known.heads_per_group == 1 and known.schedule != "naive" else None,
        )
        return ", ".join(part for part in parts if part is not None)

    def planned(self, sizes: Sizes, place: Place, choices: Choices = KERNELS_OWN) -> Plan:
        """A plan for some sizes.

        Raises:
            InputError: if their number, the grid or a choice does not fit.
        """
        if len(sizes) != self.form.count:
            text = ",".join(map(str, sizes))
            raise InputError(
                f"--shape: found '{text}'; write {self.form.text}, such as {self.form.example}"
            )
        for name in _CHOICES:
            if getattr(choices, name) is not None and name not in self.choices:
                known = ", ".join(map(_option, self.choices)) or "none"
                raise InputError(f"{_option(name)}: this kernel has other choices: {known}")
        plan: Plan = self.plan(sizes, place, choices)
        return plan

    def found(
        self, problems: Sequence[Sizes], place: Place, choices: Choices = KERNELS_OWN
    ) -> list[Found[Any]]:
        """`planned`, with the cycles, of problems as `search` takes them."""
        if self.search is not None:
            return self.search(problems, place, choices)
        plans = [self.planned(sizes, place, choices) for sizes in problems]
        return [Found(plan, self.closed_form(plan, place.timing)) for plan in plans]


def by_network(_: Place) -> str:
    """Operands go by the network, whatever combines sums there."""
    return "network"


def product_macs(sizes: Sizes, _: Choices) -> int:
    """Multiply-accumulates of a product, or of several: all sizes multiplied."""
    return math.prod(sizes)


def no_macs(_: Sizes, __: Choices) -> int:
    """Of a kernel without products."""
    return 0


def without_memory(plan: Any) -> Any:
    """The same plan if off-chip memory cost nothing."""
    edge = plan.place.offchip
    return replace(plan, place=replace(plan.place, offchip=edge.at_no_cost())) if edge else plan


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _widens(choices: Choices, place: Place) -> bool:
    """Whether tiles widen weights: of those that they keep nobody waits for that."""
    bits = choices.weight_bits
    return bits is not None and bits < place.element_bits and not choices.resident
