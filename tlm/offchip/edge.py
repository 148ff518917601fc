"""Where the channels of off-chip memory stand, and where the tiles' blocks lie in them.

Either at the edge of the chip: a row of routers below the last one of tiles has the channels at its
local ports, and a tile's blocks lie in the channel of its column. Or a channel at each tile, which
the tile reaches without the network.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tlm.compute.base import ceil_div
from tlm.errors import InputError, check_range
from tlm.interconnect.lines import hops
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.dram import DramOfTile
from tlm.program import Program
from tlm.program.operations import OffChip, Tile


@dataclass(frozen=True, slots=True)
class Edge:
    """The channels of a rectangle of tiles.

    Attributes:
        rows: Rows of tiles.
        cols: Columns.
        channels: Channels. At the edge at most one a column; each has as many columns as another,
            or one less.
        flit_bytes: Payload of a flit.
        burst_bytes: Least that a channel reads or writes.
        capacity_bytes: What a channel holds.
        timing: A channel's latency and bandwidth.
        at_tiles: Each tile has a channel of its own.
        rows_below: Rows of other tiles between these and the edge.
        dram: What a tile's own channel is made of, if that is known.
        free: What it holds is in the tile when asked for, for the laws of `tlm.offchip.times`.
            Engines run a program without an edge for that.

    Raises:
        InputError: for numbers of channels or rows that cannot be, or flits and bursts of which
            neither is a whole number of the other.
    """

    rows: int
    cols: int
    channels: int
    flit_bytes: int
    burst_bytes: int
    capacity_bytes: int
    timing: ChannelTiming
    at_tiles: bool = False
    rows_below: int = 0
    dram: DramOfTile | None = None
    free: bool = False

    def __post_init__(self) -> None:
        tiles = self.rows * self.cols
        allowed = (tiles, tiles) if self.at_tiles else (1, self.cols)
        check_range("channels", self.channels, *allowed)
        if self.rows_below < 0 or (self.at_tiles and self.rows_below):
            wanted = "0, with a channel at each tile" if self.at_tiles else "0 or more"
            raise InputError(f"rows_below: found {self.rows_below}; allowed: {wanted}")
        if self.unit_bytes % self.flit_bytes or self.unit_bytes % self.burst_bytes:
            raise InputError(
                f"flit_bytes: found {self.flit_bytes} with bursts of {self.burst_bytes} bytes; "
                "allowed: one a whole number of the other"
            )

    def __hash__(self) -> int:
        """Of some fields: laws of blocks are kept by channels, and many are asked for."""
        return hash((self.rows, self.cols, self.channels, self.rows_below))

    def at_no_cost(self) -> "Edge":
        """The same memory if no block cost anything, nor waited for those of another tile."""
        tiles = self.rows * self.cols
        return replace(self, channels=tiles, at_tiles=True, rows_below=0, free=True)

    @property
    def unit_bytes(self) -> int:
        """What a channel is asked for at a time: a burst, or as many as a flit holds."""
        return max(self.flit_bytes, self.burst_bytes)

    @property
    def unit_flits(self) -> int:
        """Flits of as much: a packet."""
        return self.unit_bytes // self.flit_bytes

    @property
    def edge_rows(self) -> int:
        """Rows of routers below the tiles, down to that of the channels."""
        return 0 if self.at_tiles else self.rows_below + 1

    @property
    def fills_links(self) -> bool:
        """Whether each column has a channel that keeps its link busy both ways at once."""
        fast = self.timing.costs is None and self.timing.bytes_per_cycle >= 2 * self.flit_bytes
        return fast and not self.at_tiles and self.channels == self.cols

    def channel(self, tile: Tile) -> int:
        """The channel of a tile."""
        row, col = tile
        return row * self.cols + col if self.at_tiles else col * self.channels // self.cols

    def columns(self, channel: int) -> range:
        """Columns of a channel."""
        if self.at_tiles:
            first = channel % self.cols
            return range(first, first + 1)
        first = ceil_div(channel * self.cols, self.channels)
        return range(first, ceil_div((channel + 1) * self.cols, self.channels))

    def place(self, channel: int) -> Tile:
        """Row and column of the router, or of the tile, at which a channel stands."""
        if self.at_tiles:
            return divmod(channel, self.cols)
        columns = self.columns(channel)
        return self.rows + self.rows_below, columns[len(columns) // 2]

    def number(self, tile: Tile) -> int:
        """Which one of its channel's tiles a tile is."""
        if self.at_tiles:
            return 0
        columns = self.columns(self.channel(tile))
        return tile[0] * len(columns) + tile[1] - columns[0]

    def hops(self, tile: Tile) -> int:
        """Between a tile and its channel."""
        return hops(tile, self.place(self.channel(tile)))

    def units(self, flits: int) -> int:
        """What a block of some flits takes in a channel."""
        return ceil_div(flits, self.unit_flits)


class Blocks:
    """Addresses of a program's blocks in off-chip memory.

    A channel has the blocks of one of its tiles after those of another, of tiles that have some;
    each tile's in the order of the program's buffers. Transfers without a buffer share a block.

    Args:
        program: Whose blocks.
        edge: The channels.

    Raises:
        InputError: if a channel does not hold them.
    """

    def __init__(self, program: Program, edge: Edge) -> None:
        lengths: dict[str, int] = {}
        for operation in program.built():
            if isinstance(operation, OffChip):
                units = edge.units(operation.flits)
                lengths[operation.block] = max(lengths.get(operation.block, 0), units)
        self._offsets: dict[str, int] = {}
        self._tile_bytes = 0
        for name in (*program.buffers, ""):
            if name in lengths:
                self._offsets[name] = self._tile_bytes
                self._tile_bytes += lengths[name] * edge.unit_bytes
        if edge.at_tiles:
            self._numbers = np.zeros((edge.rows, edge.cols), dtype=np.int64)
        else:
            self._numbers = numbers_at_channels(program, [*map(edge.columns, range(edge.channels))])
        needed = self._tile_bytes * (int(self._numbers.max()) + 1)
        if needed > edge.capacity_bytes:
            raise InputError(
                f"--shape: the kernel's blocks take {needed} bytes of a channel of off-chip "
                f"memory; allowed: {edge.capacity_bytes}"
            )

    def address(self, tile: Tile, block: str) -> int:
        """Where the block of a tile begins in the tile's channel, in bytes."""
        return int(self._numbers[tile]) * self._tile_bytes + self._offsets[block]


def numbers_at_channels(program: Program, columns: Sequence[range]) -> NDArray[np.int64]:
    """Which one of its channel's tiles each tile is, of those that load or store.

    Args:
        program: What they do.
        columns: Of each channel.

    Returns:
        Shape (rows, columns of the grid); of other tiles that of one before them, or -1.
    """
    has = np.zeros((program.rows, program.cols), dtype=np.int64)
    loading = (each.tiles for each in program.built() if isinstance(each, OffChip))
    for tiles in set(loading):
        rows, cols = (slice(each.start, each.stop, each.step) for each in (tiles.rows, tiles.cols))
        has[rows, cols] = 1
    for of_channel in columns:
        part = has[:, of_channel.start : of_channel.stop]
        part[:] = part.cumsum().reshape(part.shape) - 1
    return has
