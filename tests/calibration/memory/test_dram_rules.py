"""The checker of DRAM commands: each rule fires a cycle too early, and not in time."""

from collections.abc import Callable

import pytest

from calibration.memory.dram_rules import Command, Kind, earliest, rules, violations
from cosim.memory.channel import Timings
from tlm.errors import InputError

# All times differ, and none is the sum of others, so that each can be the one that is broken.
TIMES = Timings(
    t_rcd_rd=7, t_rcd_wr=5, t_rp=6, t_ras=17, t_rc=30, t_rrd_s=3, t_rrd_l=8, t_faw=40, t_ccd_s=3,
    t_ccd_l=4, t_rtw=9, t_wtr_s=11, t_wtr_l=14, t_rtp=10, t_wtp=19, t_rfc=50, t_refi=500,
    rl=8, wl=4, bl=2,
)  # fmt: skip
Log = list[Command]


def act(cycle: int, group: int = 0, bank: int = 0, row: int = 0) -> Command:
    return Command(cycle, Kind.ACTIVATE, group, bank, row)


def pre(cycle: int, group: int = 0, bank: int = 0) -> Command:
    return Command(cycle, Kind.PRECHARGE, group, bank)


def pre_all(cycle: int) -> Command:
    return Command(cycle, Kind.PRECHARGE_ALL)


def ref(cycle: int) -> Command:
    return Command(cycle, Kind.REFRESH)


def read(cycle: int, group: int = 0, bank: int = 0, row: int = 0) -> Command:
    return Command(cycle, Kind.READ, group, bank, row, 0, 0)


def write(cycle: int, group: int = 0, bank: int = 0, row: int = 0) -> Command:
    return Command(cycle, Kind.WRITE, group, bank, row, 0, 0)


def opened(*columns: Command) -> Log:
    """Two groups with open rows, long ago, and these commands."""
    return [act(0), act(10, 1), act(20, 0, 1), *columns]


# Name of a rule, the cycle from which on its last command is allowed, and the log up to there.
AT_THE_EDGE: list[tuple[str, int, Callable[[int], Log]]] = [
    ("tRCDRD", 7, lambda t: [act(0), read(t)]),
    ("tRCDWR", 5, lambda t: [act(0), write(t)]),
    ("tRAS", 17, lambda t: [act(0), pre(t)]),
    ("tRAS", 17, lambda t: [act(0), pre_all(t)]),
    ("tRC", 30, lambda t: [act(0), pre(17), act(t)]),
    ("tRP", 106, lambda t: [act(0), pre(100), act(t)]),
    ("tRP", 106, lambda t: [act(0), pre_all(100), act(t)]),
    ("tRTP", 110, lambda t: [act(0), read(100), pre(t)]),
    ("tRTP", 110, lambda t: [act(0), act(20, 1), read(100), pre_all(t)]),
    ("tWTP", 119, lambda t: [act(0), write(100), pre(t)]),
    ("tRRD_S", 3, lambda t: [act(0), act(t, 1)]),
    ("tRRD_L", 8, lambda t: [act(0), act(t, 0, 1)]),
    ("tFAW", 40, lambda t: [act(0), act(10, 1), act(20, 2), act(30, 3), act(t, 0, 1)]),
    ("tCCD_S read", 103, lambda t: opened(read(100), read(t, 1))),
    ("tCCD_L read", 104, lambda t: opened(read(100), read(t, 0, 1))),
    ("tCCD_S write", 103, lambda t: opened(write(100), write(t, 1))),
    ("tCCD_L write", 104, lambda t: opened(write(100), write(t, 0, 1))),
    ("tRTW", 109, lambda t: opened(read(100), write(t, 1))),
    ("tWTR_S", 111, lambda t: opened(write(100), read(t, 1))),
    ("tWTR_L", 114, lambda t: opened(write(100), read(t, 0, 1))),
    ("tRP refresh", 506, lambda t: [act(0), pre(500), ref(t)]),
    ("tRC refresh", 515, lambda t: [act(485), pre(505), ref(t)]),
    ("tRFC", 550, lambda t: [ref(500), act(t)]),
    ("tREFI", 500, lambda t: [ref(t)]),
]


@pytest.mark.parametrize(
    ("rule", "allowed", "log"), AT_THE_EDGE, ids=[f"{n}-{c[0]}" for n, c in enumerate(AT_THE_EDGE)]
)
def test_a_rule_fires_one_cycle_early_and_not_in_time(
    rule: str, allowed: int, log: Callable[[int], Log]
) -> None:
    assert violations(log(allowed), TIMES, allowed) == []
    found = violations(log(allowed - 1), TIMES, allowed)
    assert [line.split(":")[0] for line in found] == [rule]
    kind = log(0)[-1].kind
    if rule == "tREFI":
        assert found == ["tREFI: refresh 1 at 499, allowed 500 to 530"]
    else:
        name = "PRECHARGE" if kind is Kind.PRECHARGE_ALL else kind.name
        assert found == [f"{rule}: {name} at {allowed - 1}, allowed from {allowed}"]


def test_every_rule_of_the_table_is_tried() -> None:
    assert {rule.name for rule in rules(TIMES)} | {"tREFI"} == {name for name, _, _ in AT_THE_EDGE}


def test_a_time_of_one_bank_or_group_does_not_bind_others() -> None:
    log = opened(read(100), read(103, 1), write(112, 1), pre(112), act(118), pre(131, 1))
    assert violations(log, TIMES, 140) == []


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ([read(9)], "state: READ at 9 to row 0 of bank (0, 0), open is None"),
        ([act(0, row=1), read(9, row=2)], "state: READ at 9 to row 2 of bank (0, 0), open is 1"),
        (
            [act(0), pre_all(20), write(60)],
            "state: WRITE at 60 to row 0 of bank (0, 0), open is None",
        ),
        ([act(0, row=3), act(40)], "state: ACTIVATE at 40 of bank (0, 0), whose row 3 is open"),
        ([pre(5)], "state: PRECHARGE at 5 of bank (0, 0), which is closed"),
        ([act(0), ref(500)], "state: REFRESH at 500 with 1 rows open"),
        (
            [act(0), act(10, 1), pre(40), pre(40, 1)],
            "command bus: two row commands at 40, or out of order",
        ),
        (
            [act(0), act(10, 1), read(100), write(101, 1)],
            "data bus: burst of WRITE at 101 begins at 105",
        ),
    ],
)
def test_states_and_buses(log: Log, message: str) -> None:
    assert message in violations(log, TIMES, 500)


def test_one_row_and_one_column_command_may_go_together() -> None:
    assert violations([act(0), read(100), act(100, 1)], TIMES, 500) == []


def test_a_refresh_comes_within_the_time_that_closing_rows_takes() -> None:
    # tWTP + tRP = 25 is less than tRC = 30 and than tRAS + tRP = 23, so 30 it is.
    late = TIMES.refresh_delay_cycles()
    assert late == 30
    on_time = [ref(500 + late), ref(1000)]
    assert violations(on_time, TIMES, 1500 + late) == []
    assert violations([ref(501 + late), ref(1000)], TIMES, 1500) == [
        "tREFI: refresh 1 at 531, allowed 500 to 530"
    ]
    assert violations(on_time, TIMES, 1501 + late) == [
        "tREFI: refresh 3 has not come by 1531, allowed to 1530"
    ]


def test_the_rule_that_decides_is_named() -> None:
    decided = [e.decided_by() for e in earliest([act(0), read(7), pre(17), act(31)], rules(TIMES))]
    # The precharge is allowed from 17 by both tRAS and tRTP; the last activate waited for nothing.
    assert decided == [None, "tRCDRD", None, None]


def test_a_time_of_no_cycles_is_refused() -> None:
    with pytest.raises(InputError, match="t_rp: 0 cycles; must be at least 1"):
        Timings(t_rp=0)
