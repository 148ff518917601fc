"""The network that places of a chip are on: the chip's own, or one that stands in for it."""

from typing import NamedTuple

from tlm.chips import Chip
from tlm.chips.parts import combines_in_network, noc_timing
from tlm.interconnect.zero_load import NocTiming


class Network(NamedTuple):
    """A network.

    Attributes:
        timing: Its timing, by which transfers are cut into packets.
        combines: Whether its routers combine the operands of reductions.
        error_pct: Of its calibration, where it stands in for the chip's.
    """

    timing: NocTiming
    combines: bool
    error_pct: float = 0.0


def chip_network(chip: Chip) -> Network:
    """A chip's own.

    Raises:
        InputError: if the calibration is missing or stale.
    """
    return Network(noc_timing(chip), combines_in_network(chip))
