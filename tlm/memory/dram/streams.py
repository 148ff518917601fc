"""What streams of blocks get of a DRAM channel's bandwidth, measured on the model of its commands.

`wafertlm calibrate` writes it (calibration/memory/streams.py), and channels that are a bandwidth
read it through here.
"""

from fractions import Fraction

from tlm.calibrated import REPOSITORY, Comparison, read_stored
from tlm.memory.block_costs import BlockCosts
from tlm.memory.dram.devices import DEVICES
from tlm.tables import Table

STREAMS_FILE = REPOSITORY / "calibration" / "streams.json"
#: Bytes of a block in a pseudo-channel before it goes on in the next one.
INTERLEAVE_BYTES = 256
#: The controller that costs are measured with.
CONTROLLER = "ramulator"
#: Tiles of a channel of which there are costs: a channel at each tile, and a column of tiles.
FITTED_TILES = (1, 32)


class StreamPoint(Table):
    """Blocks that the tiles of a channel load and store, all of them one after the other.

    Attributes:
        device: The DRAM.
        pseudo_channels: Of it, in turn.
        block_bytes: Of a block.
        tiles: Of the channel.
        stores: Share of blocks that are stored.
        seed: Of where operands lie.
        controller: Of the DRAM.
        fitted: Whether the costs come from it.
        measured: Share of the peak bandwidth, on the model of DRAM commands.
        law: By the costs.
    """

    device: str
    pseudo_channels: int
    block_bytes: int
    tiles: int
    stores: float
    seed: int
    controller: str
    fitted: bool
    measured: float
    law: float

    @property
    def error_pct(self) -> float:
        """How much longer the costs take it to be than the DRAM does, in per cent."""
        return 100.0 * (self.measured / self.law - 1.0)

    @property
    def situation(self) -> str:
        """What it has in common with others."""
        if self.controller != CONTROLLER:
            return f"controller of {self.controller}"
        if self.stores == 1.0:
            return "stores alone"
        if self.pseudo_channels > 1:
            return "several pseudo-channels"
        return "loads and stores" if self.tiles in FITTED_TILES else "other numbers of tiles"

    @property
    def case(self) -> str:
        """The stream in words."""
        return (
            f"{self.device}, {self.pseudo_channels} pseudo-channels, {self.tiles} tiles, "
            f"blocks of {self.block_bytes} bytes, {100 * self.stores:g} % stored, "
            f"controller of {self.controller}"
        )


class DeviceCosts(Table):
    """Costs of blocks in one pseudo-channel of so many tiles, as `BlockCosts` has them."""

    device: str
    tiles: int
    lengths: tuple[int, ...]
    loads: tuple[float, ...]
    stores: tuple[float, ...]

    @property
    def of_blocks(self) -> BlockCosts:
        """The same for channels."""
        return BlockCosts(self.lengths, self.loads, self.stores)


class StreamComparison(Comparison):
    """Costs, and how well they tell what streams take; ``address_map`` is that of all."""

    address_map: str
    costs: list[DeviceCosts]
    points: list[StreamPoint]

    def checks(self, device: str, tiles: int) -> list[StreamPoint]:
        """Streams that the costs of so many tiles were checked on, of fewer tiles, too."""
        of_one = tiles == 1
        return [
            point
            for point in self.points
            if point.device == device and (point.tiles == 1) == of_one and not point.fitted
        ]


def load_streams() -> StreamComparison:
    """What is stored, of the models at hand.

    Raises:
        InputError: if it is missing, cannot be read, or is stale; names the files that changed.
    """
    streams: StreamComparison = read_stored(
        STREAMS_FILE, StreamComparison, "measurement of memory streams"
    )
    return streams


def channel_costs(device: str, bytes_per_s: Fraction, *, at_tiles: bool) -> BlockCosts:
    """Of a channel with some peak bandwidth: as many pseudo-channels of a device as come nearest.

    Raises:
        InputError: as `load_streams`.
    """
    costs, tiles = load_streams().costs, FITTED_TILES[not at_tiles]
    [found] = (each for each in costs if (each.device, each.tiles) == (device, tiles))
    return found.of_blocks.of_channels(pseudo_channels(device, bytes_per_s), INTERLEAVE_BYTES)


def pseudo_channels(device: str, bytes_per_s: Fraction) -> int:
    """How many of a device are nearest to a channel with some peak bandwidth; at least one."""
    model = DEVICES[device]
    of_one = Fraction(model.burst_bytes * 10**9) / (Fraction(model.tick_ns) * model.bl)
    return max(1, round(bytes_per_s / of_one))
