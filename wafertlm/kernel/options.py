"""What of a kernel's options goes together, and with the chip: levels, grid, elements."""

from dataclasses import dataclass

from tlm.chips import Chip
from tlm.chips.parts import own_tile
from tlm.chips.profile import CalibratedNoc
from tlm.errors import InputError, choose
from wafertlm.asked.kernel import COMPUTE_LEVELS, LEVELS, MEMORY_LEVELS, RTL, KernelOptions
from wafertlm.options import parse_grid
from workloads.machine.dtypes import DTYPE_BITS

#: Levels of memory that a network's level goes with.
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
    if chip.calibration is not None or level in (None, "perf"):
        return
    has_own = chip.memory is not None and chip.memory.per_tile
    if has_own and level == "at":
        return
    edge = "perf, as a profile says latency and bandwidth alone of channels at the edge"
    allowed = "perf and at" if has_own else edge
    raise InputError(f"--memory: found {level} with '{chip.name}'; allowed: {allowed}")


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
