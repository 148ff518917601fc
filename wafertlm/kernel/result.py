"""What came of a kernel's run: its cycles, what they went into, their error and their origin."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tlm.files import whole_file
from tlm.level_errors import LevelError, chip_error, level_error
from wafertlm.kernel.options import RTL
from wafertlm.kernel.setup import Setup
from wafertlm.output import complete
from workloads.kernels.catalogue import Choices
from workloads.machine.spent import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResult:
    """A kernel's figures.

    Attributes:
        setup: What ran.
        spent: What the tile that ends last did.
        alone: Whether jobs took as long as by themselves.
        network: Which network in Verilog it was; None of others.
        memory: What off-chip memory did; None if its time was not counted.
        maps: Arrays over the tiles, shape (rows, columns); empty at level `perf`. With a table of
            tiles from the first tile that is used to the last; those out of use have no times.
        error: ``level_pct``, of the levels used against our RTL, of a foreign chip against level
            `at` at its constants, and ``profile_pct``, of the chip's profile; None where nothing
            was compared. Where it was, ``nearest_pct`` is that of the case nearest to the run,
            ``worst_pct`` that of the kernel's worst.
    """

    setup: Setup
    spent: Spent
    alone: bool = False
    network: dict[str, Any] | None = None
    memory: dict[str, Any] | None = None
    maps: dict[str, Any] = field(default_factory=dict)
    error: dict[str, float | None] = field(init=False)

    def __post_init__(self) -> None:
        found = self._level_error() if self.setup.chip.calibration else self._error_against_at()
        error: dict[str, float | None] = {"level_pct": found.pct if found else None}
        if found is not None:
            error |= {"nearest_pct": found.nearest_pct, "worst_pct": found.worst_pct}
        object.__setattr__(self, "error", error | {"profile_pct": None})

    @property
    def cycles(self) -> int:
        """Cycles of the chip's clock, of the whole run."""
        return self.spent.all

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.cycles / self.setup.chip.clock_hz

    @property
    def utilization(self) -> float:
        """Unpadded multiply-accumulates over those of all matrix engines at their peak."""
        place = self.setup.place
        peak = self.cycles * place.rows * place.cols * place.matrix.macs_per_cycle
        return self.setup.macs / peak

    @property
    def memory_figures(self) -> dict[str, Any]:
        """Bytes of off-chip memory, and what share of its bandwidth they took; none without it."""
        memory, edge = self.memory, self.setup.place.offchip
        if memory is None or edge is None:
            return {}
        read, written = memory["loaded_bytes"], memory["stored_bytes"]
        most = float(self.cycles * edge.channels * edge.timing.bytes_per_cycle)
        return {
            "memory_bytes": {"read": read, "written": written},
            "memory_utilization": (read + written) / most,
        }

    @property
    def plan(self) -> dict[str, Any]:
        """How the problem is cut, and what memory a tile needs for it."""
        pieces = self.setup.plan.pieces
        return {
            "group": "{}x{}".format(*pieces.group),
            "slice": pieces.slice,
            "blocks": pieces.blocks,
            "tile_bytes": self.setup.program.tile_bytes,
            "engine_utilization": self._engine_utilization,
        }

    @property
    def _engine_utilization(self) -> float | None:
        """Of a tile's matrix engine while it is busy: small slices leave it idle."""
        plan, matrix = self.setup.plan, self.setup.place.matrix
        busy = plan.tile_matrix_cycles * matrix.macs_per_cycle
        return plan.tile_macs / busy if busy else None

    @property
    def breakdown_cycles(self) -> dict[str, int]:
        """What the cycles of the tile that ends last went into; they sum up to all.

        Ideal cycles of its products, the engine's rest, and waiting. Waiting is for memory as far
        as the run would be shorter if that cost nothing. Vector passes count as compute while the
        matrix engine stands still.
        """
        spent, setup = self.spent, self.setup
        ideal = min(spent.matrix, round(setup.plan.tile_macs / setup.place.matrix.macs_per_cycle))
        return {
            "compute": ideal + spent.computed - spent.matrix,
            "communication": spent.communication,
            "memory": spent.memory,
            "overhead": spent.matrix - ideal,
        }

    def record(self, times: Mapping[str, float]) -> dict[str, Any]:
        """The result as ``wafertlm kernel --json`` prints it.

        Args:
            times: What it cost: ``Stopwatch.times``.
        """
        setup = self.setup
        names = ("cycles", "seconds", "utilization", "breakdown_cycles", "plan", "error")
        figures = {name: getattr(self, name) for name in names} | self.memory_figures
        tiles = None if setup.unequal is None else setup.unequal.figures()
        parts = {"network": self.network, "memory": self.memory, "tiles": tiles}
        figures |= {name: part for name, part in parts.items() if part is not None}
        options, (calibration, rtl_hash) = setup.recorded_options(), setup.origin()
        return complete(
            "kernel",
            options,
            figures,
            times,
            rtl_hash=rtl_hash,
            calibration=calibration,
            contents=setup.contents(),
        )

    def store_maps(self, path: Path) -> None:
        """Write the maps as a compressed ``.npz``.

        Raises:
            InputError: naming the path, if it cannot be written.
        """
        with whole_file(path) as scratch, scratch.open("wb") as file:
            np.savez_compressed(file, **self.maps)

    def _level_error(self) -> LevelError | None:
        """Error of the levels used; of a custom network at level `at` its calibration's, too.

        Levels are compared on the kernels' default variants, on tiles that are all alike, with the
        memory channels of the tiles in Verilog, and above `at` with the project's routers.
        """
        setup, options, levels = self.setup, self.setup.options, self.setup.levels
        if levels.whole_tiles:
            return LevelError(0.0, 0.0, 0.0)
        variant = replace(options.choices, group=None)
        if variant != Choices() or levels.memory == "perf" or setup.unequal is not None:
            return None
        if setup.custom is not None and levels.noc not in (RTL, "at"):
            return None
        of = (options.kernel, options.dtype, levels.noc, levels.compute)
        memory = levels.memory is not None
        error = level_error(*of, setup.plan.balance, self.cycles, alone=self.alone, memory=memory)
        if error is None or setup.custom is None or levels.noc == RTL:
            return error
        return LevelError(*(max(pct, setup.custom.worst_error_pct) for pct in error))

    def _error_against_at(self) -> LevelError | None:
        """Error of a level above `at`, and of custom routers that of their calibration.

        Nothing of a foreign chip was ever held against our RTL.
        """
        setup, choices, levels = self.setup, self.setup.options.choices, self.setup.levels
        if setup.unequal or levels.compute != "at" or levels.noc not in ("lt", "perf"):
            return None
        of = setup.compared_as, setup.options.kernel, setup.plan.balance, self.cycles
        memory = setup.place.offchip is not None
        error = chip_error(*of, memory=memory, variant=choices.variant, level=levels.noc)
        if error is None or setup.custom is None:
            return error
        return LevelError(*(pct + setup.custom.worst_error_pct for pct in error))
