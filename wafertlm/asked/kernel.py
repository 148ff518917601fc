"""A kernel, where it runs and at which levels, as a user says it."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tlm.errors import InputError
from wafertlm.asked import shared
from wafertlm.options import Flag, parse_group

if TYPE_CHECKING:  # slow to import: only to run
    from workloads.kernels.catalogue import Choices, Sizes

#: Levels that kernels run at: the whole, and of the parts.
RTL = "rtl"
LEVELS = (RTL, "at", "lt", "perf")
COMPUTE_LEVELS = MEMORY_LEVELS = (RTL, "at", "perf")
_NUMBERS = re.compile(r"-?[0-9]{1,18}(,-?[0-9]{1,18})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """A kernel, where it runs and at which levels; None where not given."""

    kernel: str
    chip: shared.Chip
    grid: Annotated[str, "Tiles that it runs on, ROWSxCOLS."]
    shape: Annotated[
        str,
        "M,N,K of C[M,N] = A[M,K] B[K,N]; M,N of rows; B,Hq,Hkv,Sq,Skv,Dqk,Dv of attention; "
        "docs/kernels.md lists the others.",
    ]
    dtype: Annotated[
        str | None, "Type of the elements; needed where the chip computes several."
    ] = None
    level: Annotated[str, "Level of all parts: rtl, at, lt or perf."] = "lt"
    noc: Annotated[str | None, "Level of the network, if another: rtl, at, lt or perf."] = None
    memory: Annotated[
        str | None,
        "Count the time of off-chip memory, at a level: rtl, at (DRAM) or perf (formula).",
    ] = None
    compute: Annotated[
        str | None, "Level of the matrix engine, if another: rtl, at or perf (its roofline)."
    ] = None
    rtl: shared.Network = None
    collective: shared.Collective = None
    groups: Annotated[
        str | None, "Of mesh-gemv: groups of each level of its tree but the last."
    ] = None
    schedule: shared.Schedule = None
    group: shared.Group = None
    heads_per_group: Annotated[
        int | None, "Of flat-attention: heads, or blocks of rows, that a group has under way: 1, 2."
    ] = None
    weight_bits: Annotated[
        float | None, "Of stream-gemm and grouped-gemm: bits of a weight in memory, if others."
    ] = None
    resident: Annotated[
        bool, "Of stream-gemm and grouped-gemm: B lies in the tiles that use it."
    ] = False
    latent: Annotated[bool, "Of attention: values are the first elements of the keys."] = False
    skewed: Annotated[
        bool, "Of mesh-gemm and cannon: A comes skewed, as a product before left it."
    ] = False
    receive_buffers: Annotated[
        int | None, "Of summa: 1 or 2 receive buffers of a tile for panels of each matrix."
    ] = None
    serial: Annotated[bool, "Of summa: panels of B are sent when those of A have come."] = False
    at_root: Annotated[
        bool,
        "Of mesh-gemv and pipeline-gemv: sums stay at the root of a column; of partitioned-gemm: "
        "each tile keeps its part of them.",
    ] = False
    causal: Annotated[
        bool, "Of attention: no row sees the keys of tokens after its own; rows are the last."
    ] = False
    partition: Annotated[str | None, "Of partitioned-gemm: input, mn, k, 2d or auto (default)."] = (
        None
    )
    placement: Annotated[
        str | None, "Of partitioned-gemm: linear (default), interleave, ring or mesh."
    ] = None
    tiles: Annotated[
        str | None,
        "CSV table of the chip's tiles: per cent of the cycles of work, 0 for a disabled tile.",
        Flag(metavar="FILE"),
    ] = None
    allow_stale: shared.AllowStale = False
    set: shared.Set = ()

    @property
    def sizes(self) -> "Sizes":
        """The problem's sizes.

        Raises:
            InputError: if they are not numbers.
        """
        return _whole_numbers("--shape", self.shape, "64,64,64")

    @property
    def choices(self) -> "Choices":
        """The kernel's variant.

        Raises:
            InputError: if the groups, or rows and columns of one, are not numbers.
        """
        from workloads.kernels.catalogue import Choices

        group = parse_group(self.group)
        groups = (
            None if self.groups is None else _whole_numbers("--groups", self.groups, "21 or 100,10")
        )
        return Choices(
            collective=self.collective,
            groups=groups,
            schedule=self.schedule,
            group=group,
            weight_bits=self.weight_bits,
            resident=self.resident or None,
            latent=self.latent or None,
            causal=self.causal or None,
            skewed=self.skewed or None,
            receive_buffers=self.receive_buffers,
            serial=self.serial or None,
            at_root=self.at_root or None,
            heads_per_group=self.heads_per_group,
            partition=self.partition,
            placement=self.placement,
        )


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    from tlm.chips import chip_names
    from workloads.kernels.catalogue import KERNELS
    from workloads.machine.dtypes import DTYPE_BITS

    return {
        "kernels": list(KERNELS),
        "chips": list(chip_names()),
        "levels": list(LEVELS),
        "noc": list(LEVELS),
        "memory": list(MEMORY_LEVELS),
        "compute": list(COMPUTE_LEVELS),
        "dtypes": list(DTYPE_BITS),
        **shared.variant_names(),
        **shared.dealing_names(),
    }


def _whole_numbers(option: str, text: str, example: str) -> "Sizes":
    """Numbers with commas between."""
    if not _NUMBERS.fullmatch(text):
        raise InputError(f"{option}: found '{text}'; write whole numbers, such as {example}")
    return tuple(int(part) for part in text.split(","))
