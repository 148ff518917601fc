"""How an address, counted in bursts, falls apart into bank, row and column, and over channels."""

from dataclasses import dataclass

import numpy as np

from tlm.errors import InputError, choose
from tlm.memory.dram.device import Device
from tlm.memory.tables import Int64s

# Fields from the low end: bank group, column, bank, row.
_ORDERS = {"bg-co-ba-ro": ("bg", "co", "ba", "ro"), "co-bg-ba-ro": ("co", "bg", "ba", "ro")}
ADDRESS_MAPS = tuple(order + hashed for order in _ORDERS for hashed in ("", "-xor"))


@dataclass(frozen=True, slots=True)
class BurstPlaces:
    """Where requests go; shapes (n,).

    Attributes:
        bank: Number of the bank: group times banks of a group, plus bank in the group.
        row: Row.
        column: Column, in bursts.
    """

    bank: Int64s
    row: Int64s
    column: Int64s


@dataclass(frozen=True, slots=True)
class AddressMap:
    """A bijection between bursts of a pseudo-channel and its places.

    A name lists the fields from low to high bits. ``-xor`` hashes, so that addresses a power of two
    apart do not meet in one bank. Bank group and bank are XORed with the low bits of the row, the
    group with the lowest.

    Attributes:
        name: One of ADDRESS_MAPS.
        device: Whose fields.
    """

    name: str
    device: Device

    def __post_init__(self) -> None:
        choose("address map", self.name, ADDRESS_MAPS)

    def places(self, burst: Int64s) -> BurstPlaces:
        """Where addresses lie.

        Args:
            burst: Shape (n,): addresses in bursts.

        Raises:
            InputError: for an address that the device does not have.
        """
        bad = np.nonzero((burst < 0) | (burst >= self.device.bursts))[0]
        if len(bad):
            raise InputError(
                f"address {burst[bad[0]]} bursts; {self.device.name} has 0 to "
                f"{self.device.bursts - 1}"
            )
        groups, banks = self.device.bank_groups, self.device.banks_per_group
        counts = {
            "bg": groups,
            "ba": banks,
            "co": 1 << self.device.column_bits,
            "ro": 1 << self.device.row_bits,
        }
        found: dict[str, Int64s] = {}
        rest = burst
        for field in _ORDERS[self.name.removesuffix("-xor")]:
            found[field] = rest & (counts[field] - 1)
            rest = rest >> counts[field].bit_length() - 1
        group, bank, row = found["bg"], found["ba"], found["ro"]
        if self.name.endswith("-xor"):
            group = group ^ (row & (groups - 1))
            bank = bank ^ (row >> groups.bit_length() - 1 & banks - 1)
        return BurstPlaces(group * banks + bank, row, found["co"])


def interleave(burst: Int64s, channels: int, grain_bursts: int) -> tuple[Int64s, Int64s]:
    """Spread addresses over channels, ``grain_bursts`` in a row to each in turn.

    Args:
        burst: Shape (n,): addresses in bursts.
        channels: Channels.
        grain_bursts: Consecutive bursts that stay in a channel.

    Returns:
        The channel, and the address in it, of each; shapes (n,).

    Raises:
        InputError: if a count is below 1.
    """
    for name, count in (("channels", channels), ("grain_bursts", grain_bursts)):
        if count < 1:
            raise InputError(f"{name}: {count}; must be at least 1")
    block, within = burst // grain_bursts, burst % grain_bursts
    return block % channels, (block // channels) * grain_bursts + within
