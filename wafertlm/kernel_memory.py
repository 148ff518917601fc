"""The off-chip memory of `wafertlm kernel`: channels of a chip, at some level."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from simpy import Environment

from cosim.errors import SimulationError
from cosim.memory.channel import ChannelParameters
from cosim.memory.target import RtlMemoryTarget
from cosim.verilog import MEMORY_SOURCES
from tlm.calibrated import combined_hash, source_hashes
from tlm.chips import Chip
from tlm.chips.parts import offchip_channels
from tlm.errors import InputError
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory
from tlm.memory.base import MemoryTarget
from tlm.memory.dram.calibration import rtl_channel
from tlm.memory.dram.target import DramMemory
from tlm.offchip.edge import Edge
from tlm.offchip.system import Channel, OffChipMemory
from tlm.program import OffChip, Program
from wafertlm.output import CheckFailedError

MEMORY_LEVELS = ("rtl", "at", "perf")
#: Levels of memory that a network's level goes with.
_MIXES = {"rtl": MEMORY_LEVELS, "at": MEMORY_LEVELS, "lt": ("perf",), "perf": ("perf",)}


def check_memory_level(level: str | None, noc: str) -> None:
    """Hold that there is such a level, and that it goes with that of the network.

    Raises:
        InputError: if not.
    """
    if level is not None and level not in MEMORY_LEVELS:
        raise InputError(f"--memory: found '{level}'; allowed: {', '.join(MEMORY_LEVELS)}")
    if level is not None and level not in _MIXES[noc]:
        allowed = ", ".join(_MIXES[noc])
        raise InputError(
            f"--memory: found {level} with the network at level {noc}; allowed: {allowed}"
        )


def chip_edge(chip: Chip, level: str, grid: tuple[int, int]) -> Edge:
    """The channels of a chip's grid, which will run at some level.

    Args:
        chip: The chip.
        level: Of the memory.
        grid: Rows and columns of tiles.

    Raises:
        InputError: for a chip without channels, or if the calibration is missing or stale.
    """
    edge = offchip_channels(chip, *grid)
    if level != "rtl":
        return edge
    # Verilog in this process has fewer rows, which change no time.
    return replace(edge, capacity_bytes=ChannelParameters().bursts * edge.burst_bytes)


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """The off-chip memory of a run.

    Attributes:
        level: Its level.
        edge: Its channels; None: what it holds is in the tiles when asked for.
        channels: The same among the processes of level at.
    """

    level: str = "perf"
    edge: Edge | None = None
    channels: OffChipMemory | None = None

    def figures(self, program: Program) -> dict[str, Any]:
        """What the result says of it, after a run."""
        assert self.edge is not None
        moved = Counter[bool]()
        for operation in program.build():
            if isinstance(operation, OffChip):
                bytes_moved = len(operation.tiles) * operation.flits * self.edge.flit_bytes
                moved[operation.loads] += bytes_moved
        figures: dict[str, Any] = {
            "level": self.level,
            "channels": self.edge.channels,
            "loaded_bytes": moved[True],
            "stored_bytes": moved[False],
        }
        if self.channels is not None:
            figures["read_bytes"] = self.channels.read_bytes
            figures["written_bytes"] = self.channels.written_bytes
        if self.level == "rtl":
            figures["rtl_hash"] = combined_hash(source_hashes(MEMORY_SOURCES))
        return figures


#: What a kernel runs with whose off-chip memory costs nothing.
NO_MEMORY = KernelMemory()


@contextmanager
def memory_of(
    edge: Edge | None,
    level: str | None,
    noc: str,
    building: Callable[[], AbstractContextManager[None]],
) -> Iterator[KernelMemory]:
    """The channels of an edge at some level, each a formula, a model or Verilog in this process.

    Args:
        edge: The channels, if they count.
        level: Theirs.
        noc: Level of the network.
        building: The context in which Verilog is built.

    Raises:
        CheckFailedError: if the Verilog cannot be built, or stops.
    """
    if edge is None or level is None:
        yield NO_MEMORY
        return
    if noc == "lt":
        yield KernelMemory(level, edge)
        return
    timing = edge.timing
    with ExitStack() as stack:

        def verilog(env: Environment) -> MemoryTarget:
            with building():
                return stack.enter_context(RtlMemoryTarget(env, ChannelParameters()))

        channels: dict[str, Channel] = {
            "rtl": verilog,
            "at": lambda env: DramMemory(env, rtl_channel()),
            "perf": lambda env: BandwidthLatencyMemory(env, timing),
        }
        try:
            yield KernelMemory(level, edge, OffChipMemory(edge, channels[level]))
        except SimulationError as error:
            raise CheckFailedError(str(error)) from error
