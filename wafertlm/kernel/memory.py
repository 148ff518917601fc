"""The off-chip memory of a kernel's run: channels of a chip, at some level."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from simpy import Environment

from tlm.calibrated import combined_hash, source_hashes
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory
from tlm.memory.base import MemoryTarget
from tlm.memory.dram.calibration import rtl_channel
from tlm.memory.dram.target import DramMemory
from tlm.offchip.edge import Edge
from tlm.offchip.system import Channel, OffChipMemory
from wafertlm.asked.kernel import RTL
from wafertlm.stopwatch import Building
from workloads.machine.moved import Moved


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

    @property
    def edge_rows(self) -> int:
        """Rows of routers below the tiles, down to that of the channels."""
        return 0 if self.channels is None else self.channels.edge.edge_rows

    def figures(self, moved: Moved) -> dict[str, Any] | None:
        """What the result says of it, after a run; None if its time did not count."""
        if self.edge is None:
            return None
        figures: dict[str, Any] = {
            "level": self.level,
            "channels": self.edge.channels,
            "loaded_bytes": moved.read,
            "stored_bytes": moved.written,
        }
        if self.channels is not None:
            figures["read_bytes"] = self.channels.read_bytes
            figures["written_bytes"] = self.channels.written_bytes
        if self.level == RTL:
            from cosim.verilog import MEMORY_SOURCES  # slow to import

            figures["rtl_hash"] = combined_hash(source_hashes(MEMORY_SOURCES))
        return figures


#: What a kernel runs with whose off-chip memory costs nothing.
NO_MEMORY = KernelMemory()


@contextmanager
def memory_at(
    edge: Edge | None, level: str | None, noc: str, building: Building = nullcontext
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
    channels: dict[str, Channel | None] = {
        "at": None if edge.dram else lambda env: DramMemory(env, rtl_channel()),
        "perf": lambda env: BandwidthLatencyMemory(env, timing),
    }
    with ExitStack() as stack:
        if level == RTL:
            channels[RTL] = _verilog(stack, building)
            edge = _in_this_process(edge)
        yield KernelMemory(level, edge, OffChipMemory(edge, channels[level]))


def _in_this_process(edge: Edge) -> Edge:
    """Channels in Verilog here, which have fewer rows; that changes no time."""
    from cosim.memory.channel import ChannelParameters  # slow to import: only for Verilog

    return replace(edge, capacity_bytes=ChannelParameters().bursts * edge.burst_bytes)


def _verilog(stack: ExitStack, building: Building) -> Channel:
    """Channels in Verilog, each open until the stack is closed."""
    from cosim.memory.channel import ChannelParameters  # slow to import: only for Verilog
    from cosim.memory.target import RtlMemoryTarget
    from wafertlm.verilog import failing_checks

    stack.enter_context(failing_checks())

    def channel(env: Environment) -> MemoryTarget:
        with building():
            return stack.enter_context(RtlMemoryTarget(env, ChannelParameters()))

    return channel
