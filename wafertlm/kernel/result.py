"""What came of a kernel's run: its cycles, what they went into, their error and their origin."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from tlm.calibrated import level_error_pct
from tlm.engines.outcome import Outcome
from tlm.files import whole_file
from wafertlm.kernel.setup import Setup
from wafertlm.output import complete
from workloads.kernels.catalogue import Choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a level has to say of a run.

    Attributes:
        cycles: Of the whole run.
        matrix_cycles: In which the matrix engine of the tile that ends last worked.
        computed_cycles: In which its matrix or its vector engine did.
        memory_cycles: By which the run would be shorter if off-chip memory cost nothing.
        alone: Whether jobs took as long as by themselves.
        network: What the result says of a network in Verilog.
        memory: What it says of off-chip memory.
        maps: Arrays over the tiles.
    """

    cycles: int
    matrix_cycles: int
    computed_cycles: int
    memory_cycles: int = 0
    alone: bool = False
    network: dict[str, Any] | None = None
    memory: dict[str, Any] | None = None
    maps: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, outcome: Outcome, link_flits: Mapping[str, Any], **more: Any) -> Self:
        """What an engine's outcome says."""
        maps = {
            "finish_cycle": outcome.finish_cycle,
            "matrix_busy_cycles": outcome.matrix_busy_cycles,
            "wait_cycles": outcome.wait_cycles,
        }
        maps |= {f"link_flits_{direction}": flits for direction, flits in link_flits.items()}
        return cls(
            cycles=outcome.cycles,
            matrix_cycles=int(outcome.matrix_busy_cycles[outcome.last_tile]),
            computed_cycles=int(outcome.compute_busy_cycles[outcome.last_tile]),
            maps=maps,
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResult:
    """A kernel's figures.

    Attributes:
        setup: What ran.
        cycles: Cycles of the chip's clock, of the whole run.
        seconds: The same in seconds.
        utilization: Unpadded multiply-accumulates over those of all matrix engines at their peak.
        breakdown_cycles: What the cycles of the tile that ends last went into; they sum up to all.
        error: ``level_pct``, of the levels used against our RTL, and ``profile_pct``, of the chip's
            profile; None where nothing was compared.
        network: Which network in Verilog it was; None of others.
        memory: What off-chip memory did; None if its time was not counted.
        tiles: What the table of tiles cost; None without.
        maps: Arrays over the tiles, shape (rows, columns); empty at level `perf`. With a table of
            tiles from the first tile that is used to the last; those out of use have no times.
    """

    setup: Setup
    cycles: int
    seconds: float
    utilization: float
    breakdown_cycles: dict[str, int]
    error: dict[str, float | None]
    network: dict[str, Any] | None
    memory: dict[str, Any] | None
    tiles: dict[str, Any] | None
    maps: dict[str, Any]

    @classmethod
    def of(cls, setup: Setup, ran: Ran) -> Self:
        """The figures of a run."""
        target, chip = setup.target, setup.chip
        peak = ran.cycles * target.rows * target.cols * target.matrix.macs_per_cycle
        # Nothing of a foreign chip was ever held against our RTL.
        level_pct = _level_pct(setup, ran) if chip.calibration else None
        return cls(
            setup=setup,
            cycles=ran.cycles,
            seconds=ran.cycles / chip.clock_hz,
            utilization=setup.macs / peak,
            breakdown_cycles=_breakdown(setup, ran),
            error={"level_pct": level_pct, "profile_pct": None},
            network=ran.network,
            memory=ran.memory,
            tiles=None if setup.unequal is None else setup.unequal.figures(),
            maps=ran.maps,
        )

    def record(self, times: Mapping[str, float]) -> dict[str, Any]:
        """The result as ``wafertlm kernel --json`` prints it.

        Args:
            times: What it cost: ``Stopwatch.times``.
        """
        figures: dict[str, Any] = {
            "cycles": self.cycles,
            "seconds": self.seconds,
            "utilization": self.utilization,
            "breakdown_cycles": self.breakdown_cycles,
            "error": self.error,
        }
        parts = {"network": self.network, "memory": self.memory, "tiles": self.tiles}
        figures |= {name: part for name, part in parts.items() if part is not None}
        options, (calibration, rtl_hash) = self.setup.recorded_options(), self.setup.origin()
        return complete(
            "kernel", options, figures, times, rtl_hash=rtl_hash, calibration=calibration
        )

    def store_maps(self, path: Path) -> None:
        """Write the maps as a compressed ``.npz``.

        Raises:
            InputError: naming the path, if it cannot be written.
        """
        with whole_file(path) as scratch, scratch.open("wb") as file:
            np.savez_compressed(file, **self.maps)


def _breakdown(setup: Setup, ran: Ran) -> dict[str, int]:
    """On the tile that ends last: ideal cycles of its products, the engine's rest, and waiting.

    Waiting is for memory as far as the run would be shorter if that cost nothing. Vector passes
    count as compute while the matrix engine stands still.
    """
    waiting = ran.cycles - ran.computed_cycles
    memory = min(max(ran.memory_cycles, 0), waiting)
    ideal = min(ran.matrix_cycles, round(setup.plan.tile_macs / setup.target.matrix.macs_per_cycle))
    return {
        "compute": ideal + ran.computed_cycles - ran.matrix_cycles,
        "communication": waiting - memory,
        "memory": memory,
        "overhead": ran.matrix_cycles - ideal,
    }


def _level_pct(setup: Setup, ran: Ran) -> float | None:
    """Error of the levels used; of a user's own network modelled that of its calibration too.

    Levels are compared on the kernels' default variants, on tiles that are all alike, and with the
    memory channels of the tiles in Verilog.
    """
    options, levels = setup.options, setup.levels
    if levels.whole_tiles:
        return 0.0
    if options.choices != Choices() or levels.memory == "perf" or setup.unequal is not None:
        return None
    error = level_error_pct(
        options.kernel,
        options.dtype,
        levels.noc,
        levels.compute,
        setup.plan.balance,
        alone=ran.alone,
        memory=levels.memory is not None,
    )
    if error is None or setup.custom is None or levels.noc == "rtl":
        return error
    return max(error, setup.custom.worst_error_pct)
