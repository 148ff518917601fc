"""Address maps are bijections, and spread what they are made to spread."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.errors import InputError
from tlm.memory.dram.address_map import ADDRESS_MAPS, AddressMap, BurstPlaces, interleave
from tlm.memory.dram.device import Device
from tlm.memory.dram.devices import DEVICES, HBM3
from tlm.memory.tables import Int64s

every_map = pytest.mark.parametrize("name", ADDRESS_MAPS)


def bursts(kind: AddressMap, places: BurstPlaces) -> Int64s:
    """The addresses of places."""
    device, row = kind.device, places.row
    group, bank = np.divmod(places.bank, device.banks_per_group)
    if kind.name.endswith("-xor"):
        group = group ^ row % device.bank_groups
        bank = bank ^ row // device.bank_groups % device.banks_per_group
    columns = 1 << device.column_bits
    low = (group, device.bank_groups), (places.column, columns)
    if kind.name.startswith("co"):
        low = low[1], low[0]
    burst = row * device.banks_per_group + bank
    for field, count in reversed(low):
        burst = burst * count + field
    return burst


@every_map
@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES.keys())
def test_an_address_comes_back_from_its_place(name: str, device: Device) -> None:
    found = AddressMap(name, device)
    burst = np.random.default_rng(1).integers(0, found.device.bursts, 20_000)
    burst = np.concatenate([burst, np.arange(4096), found.device.bursts - 1 - np.arange(4096)])
    places = found.places(burst)
    assert (bursts(found, places) == burst).all()
    for values, count in (
        (places.bank, found.device.banks),
        (places.row, 1 << found.device.row_bits),
        (places.column, 1 << found.device.column_bits),
    ):
        assert values.min() >= 0 and values.max() < count


@every_map
def test_no_two_addresses_of_some_rows_share_a_place(name: str) -> None:
    found = AddressMap(name, HBM3)
    count = 64 * HBM3.banks << HBM3.column_bits
    places = found.places(np.arange(count))
    whole = (places.row * HBM3.banks + places.bank << HBM3.column_bits) + places.column
    assert len(np.unique(whole)) == count


def test_fields_from_the_low_end() -> None:
    group_first, column_first = (AddressMap(name, HBM3) for name in ("bg-co-ba-ro", "co-bg-ba-ro"))
    eight = np.arange(8)
    assert group_first.places(eight).bank.tolist() == [0, 4, 8, 12, 0, 4, 8, 12]
    assert group_first.places(eight).column.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert column_first.places(eight).column.tolist() == eight.tolist()
    row = HBM3.banks << HBM3.column_bits
    strided = np.arange(16) * row
    assert set(group_first.places(strided).bank.tolist()) == {0}
    hashed = AddressMap("bg-co-ba-ro-xor", HBM3).places(strided)
    assert sorted(hashed.bank.tolist()) == list(range(16))


@given(st.integers(1, 64), st.integers(1, 128))
def test_channels_share_addresses_out(channels: int, grain: int) -> None:
    burst = np.arange(5000)
    channel, within = interleave(burst, channels, grain)
    assert (channel < channels).all() and len(set(zip(channel, within, strict=True))) == 5000
    assert (channel[:grain] == 0).all()
    for one in range(channels):
        mine = within[channel == one]
        assert mine.tolist() == list(range(len(mine)))


def test_what_there_is_not() -> None:
    with pytest.raises(InputError, match="unknown address map 'ro-ba'; known: bg-co-ba-ro"):
        AddressMap("ro-ba", HBM3)
    with pytest.raises(InputError, match="address -1 bursts"):
        AddressMap("bg-co-ba-ro", HBM3).places(np.array([-1]))
    with pytest.raises(InputError, match="channels: 0; must be at least 1"):
        interleave(np.arange(3), 0, 1)
