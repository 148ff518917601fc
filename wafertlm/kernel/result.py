"""What came of a kernel's run: its cycles, what they went into, their error and their origin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from tlm.calibrated import stale_allowed
from tlm.files import whole_file
from tlm.level_errors import (
    Between,
    LevelStep,
    Steps,
    between,
    chip_steps,
    level_error,
    rtl_steps,
)
from wafertlm.asked.kernel import RTL
from wafertlm.kernel.setup import Setup
from wafertlm.output import complete
from wafertlm.plmr import plmr_warnings
from wafertlm.rests_on import subsystem
from workloads.kernels.catalogue import KERNELS_OWN, moves
from workloads.machine.spent import Spent
from workloads.studies.profiles import profile_error


@dataclass(frozen=True, kw_only=True)
class KernelResult:
    """A kernel's figures.

    Attributes:
        setup: What ran.
        ran: What the tile that ends last did.
        waited: Finds by how many cycles the run would be shorter if off-chip memory cost nothing;
            None: ``ran`` tells it already.
        alone: Whether jobs took as long as by themselves.
        network: Which network in Verilog it was; of a model at level `at` whose tiles' banks do
            not count, how long packets stood in line for outputs; None of others.
        memory: What off-chip memory did; None if its time was not counted.
        maps: Arrays over the tiles, shape (rows, columns); empty at level `perf`. With a table of
            tiles from the first tile that is used to the last; those out of use have no times.
    """

    setup: Setup
    ran: Spent
    waited: Callable[[], int] | None = None
    alone: bool = False
    network: dict[str, Any] | None = None
    memory: dict[str, Any] | None = None
    maps: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def error(self) -> dict[str, float | None]:
        """``level_pct``, of the levels used, and ``profile_pct``, of the chip's profile.

        The first is against our RTL, of a foreign chip against level `at` at its constants; None
        where nothing was compared, or only routers that are unlike (`Ground.why_unknown`). Where it
        was, ``nearest_pct`` is that of the case nearest to the run, ``worst_pct`` that of the
        kernel's worst.
        """
        known: dict[str, float | None] = {"level_pct": None}
        with stale_allowed(self.setup.options.allow_stale):
            steps = None if self.setup.why_unknown else self._steps
            if steps is not None:
                found = level_error(steps, self.setup.plan.balance, self.cycles)
                names = ("level_pct", "nearest_pct", "worst_pct")
                known = dict(zip(names, found, strict=True))
            profile = profile_error(self.setup.compared_as or "").pct
        return known | {"profile_pct": profile}

    @property
    def between(self) -> Between | None:
        """Between what the cycles may be by the errors of the levels; None if none is known.

        Where the project's own chips were not held against our RTL, it is against level `at`.
        """
        return None if self.setup.why_unknown else self.between_as_compared

    @property
    def between_as_compared(self) -> Between | None:
        """The same as if routers were like those on which levels were compared."""
        with stale_allowed(self.setup.options.allow_stale):
            steps = self._steps
            steps = self._steps_to_at() if steps is None else steps
        return None if steps is None else between(steps, self.setup.plan.balance, self.cycles)

    @property
    def cycles(self) -> int:
        """Cycles of the chip's clock, of the whole run."""
        return self.ran.all

    @cached_property
    def spent(self) -> Spent:
        """What the tile that ends last did, and what it waited for: a run of its own tells that.

        Who asks for no more than the cycles does not pay for it.
        """
        if self.waited is None:
            return self.ran
        with stale_allowed(self.setup.options.allow_stale):
            return self.ran._replace(for_memory=self.waited())

    def settled(self) -> Self:
        """The same with all found out: it is part of what the result cost."""
        _ = self.spent, self.error
        return self

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
            "received_bytes": self._received_bytes,
            "engine_utilization": self._engine_utilization,
        }

    @property
    def _received_bytes(self) -> float | None:
        """What a tile takes in from the network, on average; None where plans do not count it."""
        plan, place = self.setup.plan, self.setup.place
        if not moves(plan):
            return None
        return plan.moved.delivered / (place.rows * place.cols)

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

    @property
    def rests_on(self) -> dict[str, dict[str, Any]]:
        """Per subsystem the share of the cycles, the level, and the hash of its Verilog."""
        spent, setup, levels = self.spent, self.setup, self.setup.levels
        noc, memory = spent.communication / spent.all, spent.memory / spent.all
        return {
            "noc": subsystem(noc, levels.noc, setup.origin()[1]),
            "memory": subsystem(memory, levels.memory, setup.tile_hash),
            "compute": subsystem(1 - noc - memory, levels.compute, setup.tile_hash),
        }

    @property
    def warnings(self) -> list[str]:
        """Properties of PLMR that the program breaks."""
        return plmr_warnings(self.setup.chip, [self.setup.told])

    def record(self, times: Mapping[str, float]) -> dict[str, Any]:
        """The result as ``wafertlm kernel --json`` prints it.

        Args:
            times: What it cost: ``Stopwatch.times``.
        """
        setup = self.setup
        names = ("cycles", "seconds", "utilization", "breakdown_cycles", "plan", "error")
        figures = {name: getattr(self, name) for name in names} | self.memory_figures
        tiles = None if setup.unequal is None else setup.unequal.figures()
        note = {"note": setup.why_unknown} if setup.why_unknown else {}
        figures["error"] = self.error | {"rests_on": self.rests_on} | note
        parts = {"network": self.network, "memory": self.memory, "tiles": tiles}
        figures |= {name: part for name, part in parts.items() if part is not None}
        figures["warnings"] = self.warnings
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

    @property
    def _steps(self) -> Steps | None:
        """From the levels used to our RTL, or of a foreign chip to level `at`."""
        own = self.setup.chip.calibration is not None
        return self._steps_to_rtl() if own else self._steps_to_at()

    def _steps_to_rtl(self) -> Steps | None:
        """Levels are compared on the kernels' default variants, on tiles that are all alike.

        They were with the memory channels of the tiles in Verilog, and above `at` with the
        project's routers.
        """
        setup, options, levels = self.setup, self.setup.options, self.setup.levels
        if levels.whole_tiles:
            return []
        told = ("collective", "schedule", "group", "heads_per_group", "partition", "placement")
        named = dict.fromkeys(told)
        others = replace(options.choices, **named)
        if self._variant or others != KERNELS_OWN:
            return None
        if levels.memory == "perf" or setup.unequal is not None:
            return None
        if setup.custom is not None and levels.noc not in (RTL, "at"):
            return None
        of = (options.kernel, setup.dtype, levels.noc, levels.compute)
        memory = levels.memory is not None
        return self._with_routers(rtl_steps(*of, alone=self.alone, memory=memory))

    def _steps_to_at(self) -> Steps | None:
        """Nothing of a foreign chip was ever held against our RTL, but custom routers were."""
        setup, levels = self.setup, self.setup.levels
        if setup.unequal or levels.compute != "at" or levels.noc == RTL:
            return None
        if levels.noc == "at":
            return None if setup.custom is None else self._with_routers([])
        memory = setup.place.offchip is not None
        of = setup.compared_as, setup.options.kernel, levels.noc
        return self._with_routers(chip_steps(*of, memory=memory, variant=self._variant))

    @property
    def _variant(self) -> str:
        """What comparisons of levels know the kernel's choices by."""
        return self.setup.kernel.variant(self.setup.options.choices, self.setup.place)

    def _with_routers(self, steps: Steps | None) -> Steps | None:
        """With the error of custom routers' calibration, where they are modelled."""
        custom = self.setup.custom
        if steps is None or custom is None or self.setup.levels.noc == RTL:
            return steps
        return [*steps, LevelStep.anywhere(custom.worst_error_pct)]
