"""Options of `wafertlm kernel`: what they may name, and what goes together."""

from dataclasses import dataclass

from tlm.chips import Chip, chip_names
from tlm.chips.parts import own_tile
from tlm.chips.profile import CalibratedNoc
from tlm.errors import InputError
from wafertlm.kernel_levels import LEVELS, RTL
from wafertlm.kernel_memory import MEMORY_LEVELS, check_memory_level
from wafertlm.options import parse_grid
from workloads.kernels.catalogue import KERNELS, Choices, Sizes
from workloads.kernels.collectives import METHODS
from workloads.kernels.flat_attention import SCHEDULES

#: Bits of an element, and of a sum of products.
ELEMENT_BITS = {
    "int8": (8, 32),
    "int16": (16, 32),
    "fp16": (16, 16),
    "bf16": (16, 16),
    "fp8": (8, 16),
    "fp32": (32, 32),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """Options of the command."""

    kernel: str
    chip: str
    grid: str
    shape: str
    dtype: str
    level: str = "lt"
    noc: str | None = None
    memory: str | None = None
    compute: str | None = None
    rtl: str | None = None
    collective: str | None = None
    groups: str | None = None
    schedule: str | None = None
    tiles: str | None = None
    allow_stale: bool = False

    @property
    def choices(self) -> Choices:
        """The kernel's variant.

        Raises:
            InputError: if the groups are not numbers.
        """
        groups = (
            None if self.groups is None else whole_numbers("--groups", self.groups, "21 or 100,10")
        )
        return Choices(self.collective, groups, self.schedule)


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    return {
        "kernels": list(KERNELS),
        "chips": list(chip_names()),
        "levels": list(LEVELS),
        "noc": list(LEVELS),
        "memory": list(MEMORY_LEVELS),
        "compute": [RTL, "at", "perf"],
        "dtypes": list(ELEMENT_BITS),
        "collectives": list(METHODS),
        "schedules": list(SCHEDULES),
    }


def part_levels(options: KernelOptions, chip: Chip) -> tuple[str, str]:
    """Levels of the network and of the matrix engine.

    Raises:
        InputError: if there are none, or they do not go together.
    """
    mixes = (
        "level rtl alone or with --memory rtl; level at, lt or perf; --noc rtl|at|lt|perf with "
        "--compute at|perf; --noc rtl|at with --compute rtl"
    )
    for name, level in (("--level", options.level), ("--noc", options.noc)):
        if level is not None and level not in LEVELS:
            raise InputError(f"{name}: '{level}' does not run kernels; those that do: {mixes}")
    noc = options.noc or options.level
    compute = options.compute or {"perf": "perf", RTL: RTL}.get(options.level, "at")
    if compute not in (RTL, "at", "perf"):
        raise InputError(f"--compute: found '{compute}'; those that run kernels: {mixes}")
    check_memory_level(options.memory, noc)
    others = options.rtl is not None or options.memory not in (None, RTL)
    if options.level == RTL and ((noc, compute) != (RTL, RTL) or others):
        raise InputError(
            f"--level: found rtl with another level of a part, or --rtl; allowed: {mixes}"
        )
    if compute == RTL and noc not in (RTL, "at"):
        raise InputError(f"--compute: found rtl with the network at level {noc}; allowed: {mixes}")
    if compute == RTL and own_tile(chip) is None:
        raise InputError(
            f"--chip: the tiles of '{chip.name}' are not in Verilog; those that are: rtl-RxC"
        )
    if options.rtl is not None:
        if noc not in (RTL, "at"):
            raise InputError(f"--rtl: found network at level {noc}; allowed: --noc rtl|at")
    elif noc in (RTL, "at") and not isinstance(chip.noc, CalibratedNoc):
        raise InputError(
            f"--chip: the profile of '{chip.name}' has no router to run packets on; "
            "levels that it has: lt, perf"
        )
    return noc, compute


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


def whole_numbers(option: str, text: str, example: str) -> Sizes:
    """Numbers with commas between.

    Raises:
        InputError: naming the option, and an example, if there is anything else.
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{option}: found '{text}'; write whole numbers, such as {example}"
        ) from None
