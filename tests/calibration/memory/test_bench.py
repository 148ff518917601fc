"""The judge of the memory channel's record: it sees the lost, doubled, changed and disordered."""

from dataclasses import replace

import pytest

from calibration.benches.memory_bench import Asked, Handshake, judge, judge_commands
from calibration.memory.dram_rules import Command, Kind

# A write, a read of it, and a read of what nobody has written.
PLAN = [Asked(0, True, 5, "a1"), Asked(1, False, 5, "00"), Asked(2, False, 9, "00")]
CYCLES = [(0, 0, 10, 10), (1, 2, 20, 22), (3, 3, 25, 25)]
SHOWN = [("a1", "00"), ("00", "a1"), ("00", "77")]
PARAMETERS = {"bank_groups": 2, "banks_per_group": 2, "col_width": 1}


def good_record() -> list[Handshake]:
    return [
        Handshake(phase, CYCLES[n][phase], n, asked.write, SHOWN[n][phase // 2])
        for n, asked in enumerate(PLAN)
        for phase in range(4)
    ]


def test_a_good_record_is_condensed() -> None:
    assert judge(PLAN, good_record()) == [list(phase) for phase in zip(*CYCLES, strict=True)]


@pytest.mark.parametrize("phase", range(4))
def test_a_lost_and_a_doubled_phase_are_seen(phase: int) -> None:
    record = good_record()
    name = ("request offered", "request taken", "response offered", "response taken")[phase]
    with pytest.raises(AssertionError, match=f"request 1: no {name}"):
        judge(PLAN, record[: 4 + phase] + record[5 + phase :])
    with pytest.raises(AssertionError, match=f"request 1: {name} at .* a second time"):
        judge(PLAN, [*record, record[4 + phase]])


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        (7, {"data": "a3"}, "request 1: response changed while it was refused"),
        (6, {"cycle": 2}, "request 1: phases at 1, 2, 2, 22"),
        (7, {"cycle": 19}, "request 1: phases at 1, 2, 20, 19"),
        (8, {"cycle": 1}, "request 2: offered at 1"),
        (7, {"write": True}, "request 1: response taken at 22 in the wrong direction"),
        (7, {"request": 3}, "request 3: response taken at 22, which nobody asked for"),
    ],
)
def test_a_changed_line_is_seen(line: int, change: dict[str, int | str], message: str) -> None:
    record = good_record()
    record[line] = replace(record[line], **change)
    with pytest.raises(AssertionError, match=message):
        judge(PLAN, record)


@pytest.mark.parametrize(
    ("number", "data", "message"),
    [
        (1, "a0", "request 1: read a0, expected a1"),
        (0, "a1", "request 0: a write is answered with a1"),
    ],
)
def test_wrong_data_are_seen(number: int, data: str, message: str) -> None:
    record = [
        replace(one, data=data) if one.request == number and one.phase >= 2 else one
        for one in good_record()
    ]
    with pytest.raises(AssertionError, match=message):
        judge(PLAN, record)


def good_commands() -> list[Command]:
    # From the low end: group, column, bank, row, a bit each but for the row.
    return [
        Command(1, Kind.WRITE, 1, 1, 0, 0, 0),
        Command(9, Kind.READ, 1, 1, 0, 0, 1),
        Command(12, Kind.READ, 1, 0, 1, 0, 2),
    ]


def test_good_commands_pass() -> None:
    judge_commands(PLAN, good_commands(), PARAMETERS)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (good_commands()[:2], "1 requests without a command"),
        ([*good_commands(), good_commands()[1]], "request 1: served a second time at 9"),
        ([good_commands()[1], good_commands()[0]], "request 0: passed by request 1"),
        ([good_commands()[0]._replace(kind=Kind.READ)], "request 0: got a READ"),
        ([good_commands()[0]._replace(column=1)], "request 0: served at address 7"),
    ],
)
def test_wrong_commands_are_seen(commands: list[Command], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        judge_commands(PLAN, commands, PARAMETERS)
