"""What a user says of a kernel's run: what the options may name, and what goes together."""

import re
from dataclasses import dataclass
from typing import Annotated

from tlm.chips import Chip, chip_names
from tlm.chips.parts import own_tile
from tlm.chips.profile import CalibratedNoc
from tlm.errors import InputError, choose
from wafertlm.options import (
    COLLECTIVE_HELP,
    GROUP_HELP,
    NAME_OR_FILE,
    PARTITION_HELP,
    PLACEMENT_HELP,
    SCHEDULE_HELP,
    SET,
    SET_HELP,
    Flag,
    parse_grid,
    parse_group,
)
from workloads.kernels.attention.flat_plan import SCHEDULES
from workloads.kernels.catalogue import KERNELS, Choices, Sizes
from workloads.kernels.gemm.partition_plan import PARTITIONS
from workloads.kernels.parts.collectives import METHODS
from workloads.machine.dtypes import DTYPE_BITS
from workloads.machine.order import PLACEMENTS

RTL = "rtl"
LEVELS = (RTL, "at", "lt", "perf")
COMPUTE_LEVELS = MEMORY_LEVELS = (RTL, "at", "perf")
#: Levels of memory that a network's level goes with.
_NUMBERS = re.compile(r"-?[0-9]{1,18}(,-?[0-9]{1,18})*")
_MEMORY_BESIDE = {RTL: MEMORY_LEVELS, "at": MEMORY_LEVELS, "lt": ("perf",), "perf": ("perf",)}
_MIXES = (
    "level rtl alone or with --memory rtl; level at, lt or perf; --noc rtl|at|lt|perf with "
    "--compute at|perf; --noc rtl|at with --compute rtl"
)


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels of a kernel's parts.

    Attributes:
        noc: Of the network.
        compute: Of the matrix engine.
        memory: Of off-chip memory; None: what it holds is in the tiles when asked for.
        whole_tiles: Whether whole tiles run in Verilog, network and engines together.
    """

    noc: str
    compute: str
    memory: str | None
    whole_tiles: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """A kernel, where it runs and at which levels; None where not given."""

    kernel: str
    chip: Annotated[str, "Chip profile: a shipped one, or a TOML file.", NAME_OR_FILE]
    grid: Annotated[str, "ROWSxCOLS of its tiles."]
    shape: Annotated[
        str,
        "M,N,K of C[M,N] = A[M,K] B[K,N]; M,N of rows; B,Hq,Hkv,Sq,Skv,Dqk,Dv of attention; "
        "docs/kernels.md lists the others.",
    ]
    dtype: Annotated[str | None, "Type of the elements, if the chip computes several."] = None
    level: Annotated[str, "rtl, at, lt or perf."] = "lt"
    noc: Annotated[str | None, "Level of the network, if another: rtl, at, lt or perf."] = None
    memory: Annotated[
        str | None, "Count the time of off-chip memory, at a level: rtl, at or perf (formula)."
    ] = None
    compute: Annotated[
        str | None, "Level of the matrix engine, if another: rtl, at or perf (its roofline)."
    ] = None
    rtl: Annotated[
        str | None, "A custom network, calibrated by its SPEC.toml.", Flag(metavar="SPEC")
    ] = None
    collective: Annotated[str | None, COLLECTIVE_HELP] = None
    groups: Annotated[
        str | None, "Of mesh-gemv: groups of each level of its tree but the last."
    ] = None
    schedule: Annotated[str | None, SCHEDULE_HELP] = None
    group: Annotated[str | None, GROUP_HELP] = None
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
    partition: Annotated[str | None, PARTITION_HELP] = None
    placement: Annotated[str | None, PLACEMENT_HELP] = None
    tiles: Annotated[
        str | None,
        "CSV table of the chip's tiles: per cent of the cycles of work, 0 for a disabled tile.",
        Flag(metavar="FILE"),
    ] = None
    allow_stale: Annotated[bool, "Use measurements that are out of date."] = False
    set: Annotated[tuple[str, ...], SET_HELP, SET] = ()

    @property
    def sizes(self) -> Sizes:
        """The problem's sizes.

        Raises:
            InputError: if they are not numbers.
        """
        return _whole_numbers("--shape", self.shape, "64,64,64")

    @property
    def choices(self) -> Choices:
        """The kernel's variant.

        Raises:
            InputError: if the groups, or rows and columns of one, are not numbers.
        """
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
    return {
        "kernels": list(KERNELS),
        "chips": list(chip_names()),
        "levels": list(LEVELS),
        "noc": list(LEVELS),
        "memory": list(MEMORY_LEVELS),
        "compute": list(COMPUTE_LEVELS),
        "dtypes": list(DTYPE_BITS),
        "collectives": list(METHODS),
        "schedules": list(SCHEDULES),
        "partitions": list(PARTITIONS),
        "placements": list(PLACEMENTS),
    }


def part_levels(options: KernelOptions, chip: Chip) -> Levels:
    """The levels of the parts.

    Raises:
        InputError: if there are none, or they do not go together.
    """
    for name, level in (("--level", options.level), ("--noc", options.noc)):
        if level is not None and level not in LEVELS:
            raise InputError(f"{name}: '{level}' does not run kernels; those that do: {_MIXES}")
    noc = options.noc or options.level
    compute = options.compute or (RTL if options.level == RTL else "at")
    if compute not in COMPUTE_LEVELS:
        raise InputError(f"--compute: found '{compute}'; those that run kernels: {_MIXES}")
    _check_memory(options.memory, noc, chip)
    others = options.rtl is not None or options.memory not in (None, RTL)
    if options.level == RTL and ((noc, compute) != (RTL, RTL) or others):
        raise InputError(
            f"--level: found rtl with another level of a part, or --rtl; allowed: {_MIXES}"
        )
    if compute == RTL and noc not in (RTL, "at"):
        raise InputError(f"--compute: found rtl with the network at level {noc}; allowed: {_MIXES}")
    if compute == RTL and own_tile(chip) is None:
        raise InputError(
            f"--chip: the tiles of '{chip.name}' are not in Verilog; those that are: rtl-RxC"
        )
    if options.rtl is None and noc == RTL and not isinstance(chip.noc, CalibratedNoc):
        raise InputError(
            f"--chip: the router of '{chip.name}' is not in Verilog; levels that it has: at, lt, "
            "perf; allowed with --noc rtl: --rtl, or rtl-RxC"
        )
    return Levels(noc, compute, options.memory, options.level == RTL)


def _check_memory(level: str | None, noc: str, chip: Chip) -> None:
    if level is not None and level not in MEMORY_LEVELS:
        raise InputError(f"--memory: found '{level}'; allowed: {', '.join(MEMORY_LEVELS)}")
    if level is not None and level not in _MEMORY_BESIDE[noc]:
        allowed = ", ".join(_MEMORY_BESIDE[noc])
        raise InputError(
            f"--memory: found {level} with the network at level {noc}; allowed: {allowed}"
        )
    if level in (RTL, "at") and chip.calibration is None:
        raise InputError(
            f"--memory: found {level} with '{chip.name}', whose profile says latency and bandwidth "
            "alone; allowed: perf"
        )


def chip_grid(text: str, chip: Chip) -> tuple[int, int]:
    """Rows and columns of ``--grid``.

    Raises:
        InputError: if it is no grid, or larger than the chip.
    """
    rows, cols = parse_grid("--grid", text)
    if rows > chip.grid.rows or cols > chip.grid.cols:
        raise InputError(
            f"--grid: chip '{chip.name}' has {chip.grid.rows}x{chip.grid.cols} tiles, found {text}"
        )
    return rows, cols


def dtype_on(chip: Chip, dtype: str | None) -> str:
    """Type of the elements: of a chip that computes one alone, that.

    Raises:
        InputError: if it is not given and the chip computes several.
    """
    if dtype is not None:
        return dtype
    only, *others = chip.tile.dtypes
    if others:
        known = ", ".join(chip.tile.dtypes)
        raise InputError(f"--dtype: not given; chip '{chip.name}' computes {known}")
    return only


def chip_of_dtype(chip: Chip, dtype: str) -> Chip:
    """The chip with the matrix engine of its elements.

    Raises:
        InputError: if it computes no such elements.
    """
    choose("dtype", dtype, list(DTYPE_BITS))
    if dtype not in chip.tile.dtypes:
        known = ", ".join(chip.tile.dtypes)
        raise InputError(f"--dtype: chip '{chip.name}' computes {known}, found {dtype}")
    return chip.for_dtype(dtype)


def _whole_numbers(option: str, text: str, example: str) -> Sizes:
    """Numbers with commas between."""
    if not _NUMBERS.fullmatch(text):
        raise InputError(f"{option}: found '{text}'; write whole numbers, such as {example}")
    return tuple(int(part) for part in text.split(","))
