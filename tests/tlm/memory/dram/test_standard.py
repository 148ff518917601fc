"""The times of the devices follow from the standard's table."""

import pytest

from tlm.memory.dram.device import Device
from tlm.memory.dram.devices import HBM2, HBM3
from tlm.memory.dram.standard import CONSTRAINTS

# Clocks, or half clocks of HBM3, and what the lengths of the two commands on their buses shift: an
# activate takes two ticks, of HBM3 three, and a column command of HBM3 two.
_TICKS = [
    (HBM2, "t_rcd_rd", 14 + 1), (HBM2, "t_rp", 14 - 1), (HBM2, "t_rc", 48), (HBM2, "t_rtw", 13),
    (HBM2, "t_rfc", 350 - 1), (HBM2, "t_wtp", 5 + 2 + 16), (HBM2, "t_rc_ref", 48 + 1),
    (HBM2, "t_refi", 3900), (HBM3, "t_rcd_rd", 62 + 2 - 1), (HBM3, "t_rp", 52 - 2),
    (HBM3, "t_rtp", 18 + 1), (HBM3, "t_wtr_s", 20 + 4 + 14), (HBM3, "t_rfc", 832 - 2),
]  # fmt: skip


@pytest.mark.parametrize(("device", "time", "ticks"), _TICKS)
def test_times_count_from_the_first_tick_of_a_command_to_that_of_the_next(
    device: Device, time: str, ticks: int
) -> None:
    assert getattr(device, time) == ticks


def test_every_time_between_commands_is_in_the_table() -> None:
    times = {name for name in Device.__slots__ if name.startswith("t_")} - {"t_refi"}
    assert {one.time for one in CONSTRAINTS} == times
