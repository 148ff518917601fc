"""Off-chip memory in a run of the approximately-timed engine: channels' nodes, and transfers."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Protocol

from simpy import Environment

from tlm.errors import InputError
from tlm.interconnect.packets import TileSet, cut
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.memory.bandwidth_latency import BandwidthLatencyMemory
from tlm.memory.base import MemoryTarget, OfBlock
from tlm.offchip.dram import Histories
from tlm.offchip.dram_node import DramNode
from tlm.offchip.edge import Blocks, Edge
from tlm.offchip.node import Gate, MemoryNode
from tlm.offchip.streamed import StreamedNode, are_streamed
from tlm.offchip.wire import Wire
from tlm.program import Program
from tlm.program.operations import Tile
from tlm.program.steps import OffChipStep

_tile_set = lru_cache(2**12)(TileSet.tile)
#: Makes a channel, at any level.
Channel = Callable[[Environment], MemoryTarget]
#: Sends a part of what a transfer sends; calls back with the node when that has left.
SendPart = Callable[[Callable[[int], object]], object]


class Scratchpads(Protocol):
    """Tiles whose banks hold what is sent, word by word."""

    def answer_address(self, step: OffChipStep) -> int:
        """Word of a tile from which on the answer to a transfer is written."""

    def begin_answer(self, node: int, address: int, words: int) -> None:
        """Say where in a tile a packet is written that a channel's node sends next."""

    def gate(self, node: int) -> Gate:
        """A channel's node at its router."""


class OffChipMemory:
    """The channels of a grid, and what they have moved.

    One is used for one run.

    Args:
        edge: Where they stand.
        channel: Makes one; None: each is the DRAM of a tile that the edge tells.
    """

    def __init__(self, edge: Edge, channel: Channel | None) -> None:
        self.edge = edge
        self._channel = channel
        self._nodes: dict[int, MemoryNode | DramNode | StreamedNode] = {}
        self._histories = None
        if channel is None:
            assert edge.dram is not None
            self._histories = Histories(edge.dram, edge.unit_bytes)
        self._requests: dict[int, Wire] = {}  # from tiles that have a channel of their own

    @property
    def read_bytes(self) -> int:
        """What the channels have read."""
        return sum(node.read_bytes for node in self._nodes.values())

    @property
    def written_bytes(self) -> int:
        """What the channels have written."""
        return sum(node.written_bytes for node in self._nodes.values())

    def attach(
        self,
        env: Environment,
        network: SimpyNetwork,
        program: Program,
        tiles: Scratchpads | None = None,
    ) -> None:
        """Take part in a run.

        Args:
            env: Its clock.
            network: Of as many rows more than the program's grid as `Edge.edge_rows` says.
            program: What is run.
            tiles: Tiles whose banks count.

        Raises:
            InputError: if the grid is another one, a channel does not hold the blocks, or tiles
                whose banks count have channels of their own.
        """
        if (program.rows, program.cols) != (self.edge.rows, self.edge.cols):
            raise InputError(
                f"off-chip memory of {self.edge.rows}x{self.edge.cols} tiles; found a program for "
                f"{program.rows}x{program.cols}"
            )
        if tiles is not None and self.edge.at_tiles:
            raise InputError(
                "off-chip memory: found a channel at each tile; allowed with tiles whose banks "
                "count: channels at the edge"
            )
        self._env, self._network, self._tiles = env, network, tiles
        self._blocks, self._streamed = Blocks(program, self.edge), are_streamed(program, self.edge)

    def start(
        self, step: OffChipStep, arrived: Callable[[int], object], left: Callable[[int], object]
    ) -> None:
        """A tile's transfer begins to leave now.

        Args:
            step: The transfer.
            arrived: Called when the block, or the word that it is kept, has come.
            left: Called when all that the tile sends has left.
        """
        *before, last = self.messages(step, arrived)
        for message in before:
            message(_nothing)
        last(left)

    def messages(self, step: OffChipStep, arrived: Callable[[int], object]) -> list[SendPart]:
        """What a transfer sends, in its order: a request; of a store the block before it.

        ``step`` and ``arrived`` are those of `start`.
        """
        operation, tile, edge = step.operation, step.tile, self.edge
        channel = edge.channel(tile)
        node, place = self._node(channel), edge.place(channel)
        source, there = self._number(tile), self._number(place)
        back = _tile_set(*tile)
        address = self._blocks.address(tile, operation.block)
        told = partial(arrived, source)

        target = 0 if self._tiles is None else self._tiles.answer_address(step)

        send = partial(self._send, channel, source, place)
        if operation.loads:
            asked = partial(node.load, back, address, operation.flits, told, target)
            return [partial(send, 1, asked)]
        if isinstance(node, StreamedNode):  # nothing comes between the block and its end
            return [partial(send, operation.flits + 1, partial(node.store, operation.flits, told))]

        def block(left: Callable[[int], object]) -> None:
            parts = cut(operation.flits, edge.unit_flits)
            of_block = OfBlock(len(parts) * edge.unit_bytes)
            writes = [
                partial(node.write, address + number * edge.unit_bytes, of_block)
                for number in range(len(parts))
            ]
            if self._tiles is not None:
                *before, last = writes
                arrivals: dict[int, Callable[[int], object]] = {there: lambda _: last()}
                goal = _tile_set(*place)
                self._network.send(source, goal, operation.flits, left, arrivals, before)
                return
            for number, (flits, write) in enumerate(zip(parts, writes, strict=True)):
                send(flits, write, left if number + 1 == len(parts) else _nothing)

        return [block, partial(send, 1, partial(node.acknowledge, back, told, target))]

    def _send(
        self,
        channel: int,
        source: int,
        place: Tile,
        flits: int,
        come: Callable[[], object],
        left: Callable[[int], object],
    ) -> None:
        """Send flits to a channel, by its own wire or over the network."""
        if self.edge.at_tiles:
            self._requests[channel].send(flits, partial(left, source), come)
            return
        arrivals: dict[int, Callable[[int], object]] = {self._number(place): lambda _: come()}
        self._network.send(source, _tile_set(*place), flits, left, arrivals)

    def _node(self, channel: int) -> MemoryNode | DramNode | StreamedNode:
        """The node of a channel, which begins its refreshes with the run."""
        if channel not in self._nodes:
            number = self._number(self.edge.place(channel))
            self._requests[channel], answers = Wire(self._env), Wire(self._env)
            unit = self.edge.unit_bytes, self.edge.unit_flits
            if self._channel is None:
                assert self._histories is not None
                self._nodes[channel] = DramNode(self._env, self._histories, *unit)
                return self._nodes[channel]

            def send(
                tile: TileSet,
                target: int,
                flits: int,
                left: Callable[[], object],
                come: Callable[[], object],
            ) -> None:
                if self.edge.at_tiles:
                    answers.send(flits, left, come)
                    return
                if self._tiles is not None:
                    self._tiles.begin_answer(number, target, flits)
                there = tile.nodes(self.edge.cols)[0]
                arrivals = {there: lambda _: come()}
                self._network.send(number, tile, flits, lambda _: left(), arrivals)

            memory = self._channel(self._env)
            if self._streamed and isinstance(memory, BandwidthLatencyMemory):
                self._nodes[channel] = StreamedNode(self._env, memory.timing, *unit)
            else:
                gate = None if self._tiles is None else self._tiles.gate(number)
                self._nodes[channel] = MemoryNode(self._env, memory, send, *unit, gate)
        return self._nodes[channel]

    def _number(self, tile: Tile) -> int:
        return tile[0] * self.edge.cols + tile[1]


def _nothing(_node: int) -> None:
    """Of a block the last flit that leaves matters."""
