"""What blocks cost on DRAM: streams on the model of its commands, refresh and all.

The tiles of a channel do the same: each loads a block of one operand, then each one of the other,
and now and then each stores one. A channel's node asks for one whole block after the other
(`tlm/offchip/node.py`), so its grain of arbitration is a block. Costs of loads are read off from
loads alone; a store costs what a stream with some takes beside its loads, turns of the data bus
among it. The controller and the address map are those of `wafertlm memory` where none is named.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np

from calibration.store import save_streams
from tlm.errors import InputError
from tlm.memory.block_costs import BlockCosts
from tlm.memory.dram.channel import BurstRequests, DramChannel
from tlm.memory.dram.controllers import CONTROLLERS
from tlm.memory.dram.devices import DEVICES
from tlm.memory.dram.interleaved import InterleavedChannels
from tlm.memory.dram.streams import (
    CONTROLLER,
    FITTED_TILES,
    INTERLEAVE_BYTES,
    DeviceCosts,
    StreamComparison,
    StreamPoint,
    load_streams,
)
from tlm.memory.dram.traffic import figures

_ADDRESS_MAP = "bg-co-ba-ro"
#: Of a block in a pseudo-channel, in bytes.
_LENGTHS = (32, 64, 128, 256, 1024, 4096, 16384, 65536)
_STORES, _SEEDS, _CHECK_SEED = 0.25, (1, 2), 11
# An operand goes on elsewhere after so much of it in each pseudo-channel: a panel of a matrix.
_PANEL_BYTES = 65536
# Long enough for some twenty refreshes.
_BURSTS, _LEAST_OPERATIONS = 80_000, 12
_LOADED, _STORED = 2, 1  # operands


@dataclass(frozen=True, slots=True)
class BlockStream:
    """A stream; as `StreamPoint` has it."""

    device: str
    pseudo_channels: int
    block_bytes: int
    tiles: int
    stores: float
    seed: int
    controller: str = CONTROLLER

    def measured(self) -> float:
        """Share of the pseudo-channels' peak that it gets of the model of DRAM commands."""
        device, count = DEVICES[self.device], self.pseudo_channels
        channel = DramChannel.of(device, CONTROLLERS[self.controller], _ADDRESS_MAP)
        channels = InterleavedChannels(channel, count, INTERLEAVE_BYTES)
        return figures(device, channels.simulate(self._requests()), count).bandwidth_fraction

    def law(self, costs: BlockCosts) -> float:
        """The same by costs of one pseudo-channel."""
        of_all = costs.of_channels(self.pseudo_channels, INTERLEAVE_BYTES)
        load, store = (of_all.busy_bytes(self.block_bytes, writes=each) for each in (False, True))
        return float(self.block_bytes / ((1 - self.stores) * load + self.stores * store))

    def _requests(self) -> BurstRequests:
        """Bursts of the blocks, operation by operation, of each tile in turn."""
        device, count = DEVICES[self.device], self.pseudo_channels
        length = self.block_bytes // device.burst_bytes
        number = np.arange(max(_BURSTS * count // (length * self.tiles), _LEAST_OPERATIONS))
        stored = np.floor((number + 1) * self.stores) > np.floor(number * self.stores)
        loads, stores = np.cumsum(~stored) - 1, np.cumsum(stored) - 1
        operand = np.where(stored, _LOADED, loads % _LOADED)
        block = np.where(stored, stores, loads // _LOADED)  # of the operand
        of_panel = max(1, count * _PANEL_BYTES // self.block_bytes)
        # Blocks of a power of two lie at its multiples.
        grain = min(length & -length, INTERLEAVE_BYTES // device.burst_bytes)
        size = count * device.bursts
        panels = np.random.default_rng(self.seed).integers(
            0, size // grain, (_LOADED + _STORED, len(number) // of_panel + 1, self.tiles)
        )
        first = grain * panels[operand, block // of_panel] + (block % of_panel * length)[:, None]
        burst = (first.ravel()[:, None] + np.arange(length)).ravel() % size
        write = np.repeat(stored.astype(np.int64), length * self.tiles)
        return BurstRequests(np.zeros_like(burst), write, burst, [len(burst)])


def compare_streams(*, force: bool = False) -> StreamComparison:
    """Measure what blocks cost on every device, check it on other streams, and store it.

    What is stored holds as long as its models are those at hand, unless ``force``.
    """
    if not force:
        try:
            return load_streams()
        except InputError:
            pass
    costs, points = [], []
    for device, tiles in product(DEVICES, FITTED_TILES):
        fitted = list(_fit_streams(device, tiles))
        seen = [stream.measured() for stream in fitted]
        costs.append(found := _costs(fitted, seen))
        others = list(_check_streams(device, tiles))
        measured = [*seen, *(stream.measured() for stream in others)]
        for stream, figure in zip([*fitted, *others], measured, strict=True):
            points.append(_point(stream, figure, found, fitted=stream in fitted))
    save_streams(costs, points, address_map=_ADDRESS_MAP)
    return load_streams()


def _fit_streams(device: str, tiles: int) -> Iterator[BlockStream]:
    """Loads alone and a mix, of every length, from some seeds."""
    for length in _LENGTHS:
        for stores in (0.0, _STORES):
            for seed in _SEEDS:
                yield BlockStream(device, 1, length, tiles, stores, seed)


def _check_streams(device: str, tiles: int) -> Iterator[BlockStream]:
    """Other lengths, mixes, tiles and numbers of pseudo-channels, from another seed."""
    for length in (512, 1536, 2048, 8192, 11264, 32768):
        for stores in (0.0, 0.1, 0.25, 0.5):
            yield BlockStream(device, 1, length, tiles, stores, _CHECK_SEED)
    for length in (512, 2048, 8192, 32768):
        yield BlockStream(device, 1, length, tiles, 1.0, _CHECK_SEED)
        if tiles > 1:
            for fewer in (4, 8, 16):
                yield BlockStream(device, 1, length, fewer, 0.0, _CHECK_SEED)
    for controller in CONTROLLERS:
        if controller != CONTROLLER:
            for length in (256, 1024, 4096, 16384, 65536):
                yield BlockStream(device, 1, length, tiles, 0.0, _CHECK_SEED, controller)
    for count in (2, 8):
        for length in (256, 1024, 8192, 65536):
            for stores in (0.0, 0.25):
                yield BlockStream(device, count, length, tiles, stores, _CHECK_SEED)


def _costs(streams: Sequence[BlockStream], measured: Sequence[float]) -> DeviceCosts:
    """Costs of loads alone; of stores what a mix takes beside its loads."""
    took: dict[tuple[int, float], list[float]] = {}
    for stream, figure in zip(streams, measured, strict=True):
        took.setdefault((stream.block_bytes, stream.stores), []).append(stream.block_bytes / figure)
    mean = {which: sum(each) / len(each) for which, each in took.items()}
    loads = tuple(mean[length, 0.0] for length in _LENGTHS)
    stores = tuple(
        (mean[length, _STORES] - (1 - _STORES) * load) / _STORES
        for length, load in zip(_LENGTHS, loads, strict=True)
    )
    return DeviceCosts(
        device=streams[0].device,
        tiles=streams[0].tiles,
        lengths=_LENGTHS,
        loads=loads,
        stores=stores,
    )


def _point(
    stream: BlockStream, measured: float, costs: DeviceCosts, *, fitted: bool
) -> StreamPoint:
    law = stream.law(costs.of_blocks)
    return StreamPoint(**asdict(stream), fitted=fitted, measured=measured, law=law)
