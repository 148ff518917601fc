"""The memory channel in Verilog: the right data, the rules of DRAM, and no cycle lost to them.

Every run is judged by calibration/benches/memory_bench.py, commands by the rules of DRAM; what the
runs must show beyond that stands here.
"""

from collections import Counter
from functools import cache
from math import ceil

import numpy as np
import pytest

from calibration.memory.cases import HBM2, MEMORIES, PATTERNS, SMALL, requests_of
from calibration.memory.channel import Answers, Outcome, Requests, RtlMemory
from calibration.memory.dram_rules import Kind, earliest, rules
from tests.rtl.memory_coverage import coverage, passes
from tlm.errors import InputError

pytestmark = pytest.mark.rtl

both = pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES.keys())
#: The small channel meets all that there is to get right.
channels = pytest.mark.parametrize(
    "channel", ["small", pytest.param("hbm2", marks=pytest.mark.slow)]
)
READ, WRITE = 0, 1


@both
@pytest.mark.parametrize("write", [READ, WRITE], ids=["read", "write"])
def test_zero_load_latencies(memory: RtlMemory, write: int) -> None:
    t = memory.timings
    far = t.t_rc + t.t_wtp + t.t_rp + t.t_wtr_l + t.rl + 50
    rows, ways = [1, 1, 2, 2], ["closed", "hit", "conflict", "hit"]
    starts = [10 + n * far for n in range(len(rows))]
    assert starts[-1] + t.t_rc < t.t_refi  # a refresh would close the row
    requests = Requests.of(
        (start, write, memory.address(row)) for start, row in zip(starts, rows, strict=True)
    )
    burst = t.bl + (t.wl if write else t.rl)
    opening = t.t_rcd_wr if write else t.t_rcd_rd
    extra = {"hit": 0, "closed": opening, "conflict": t.t_rp + opening}
    outcome = memory.simulate(requests)
    assert outcome.latency_cycles().tolist() == [1 + extra[way] + burst for way in ways]


# The rule that is to decide, and what is asked: (cycle, write, row, bank, group, column). Requests
# at 100 find the rows open that those at 10 opened. None: just before the first refresh.
Asked = tuple[int | None, int, int, int, int, int]
OPEN_THREE: list[Asked] = [(10, READ, 0, 0, group, 0) for group in range(3)]
DECIDERS: dict[str, list[Asked]] = {
    "tRCDRD": [(10, READ, 0, 0, 0, 0)],
    "tRCDWR": [(10, WRITE, 0, 0, 0, 0)],
    "tRAS": [(10, READ, 0, 0, 0, 0), (10, READ, 1, 0, 0, 0)],
    "tRC": [(10, READ, 0, 0, 0, 0), (10, READ, 1, 0, 0, 0)],
    "tRP": [(10, READ, 0, 0, 0, 0), (100, READ, 1, 0, 0, 0)],
    "tRTP": [(10, READ, 0, 0, 0, 0), (100, READ, 0, 0, 0, 1), (100, READ, 1, 0, 0, 0)],
    "tWTP": [(10, WRITE, 0, 0, 0, 0), (10, READ, 1, 0, 0, 0)],
    "tRRD_S": [(10, READ, 0, 0, 0, 0), (10, READ, 0, 0, 1, 0)],
    "tRRD_L": [(10, READ, 0, 0, 0, 0), (10, READ, 0, 1, 0, 0)],
    "tFAW": [(10, READ, 0, 0, group, 0) for group in range(4)] + [(10, READ, 0, 1, 0, 0)],
    "tCCD_S read": [*OPEN_THREE, *((100, int(g == 0), 0, 0, g, 1) for g in range(3))],
    "tCCD_L read": [*OPEN_THREE, *((100, int(c == 0), 0, 0, min(c, 1), c) for c in range(3))],
    "tCCD_S write": [*OPEN_THREE, *((100, int(g > 0), 0, 0, g, 1) for g in range(3))],
    "tCCD_L write": [*OPEN_THREE, *((100, int(c > 0), 0, 0, min(c, 1), c) for c in range(3))],
    "tRTW": [*OPEN_THREE, (100, READ, 0, 0, 0, 1), (100, WRITE, 0, 0, 1, 1)],
    "tWTR_S": [*OPEN_THREE, (100, WRITE, 0, 0, 0, 1), (100, READ, 0, 0, 1, 1)],
    "tWTR_L": [*OPEN_THREE, (100, WRITE, 0, 0, 0, 1), (100, READ, 0, 0, 0, 2)],
    "tRP refresh": [(10, READ, 0, 0, 0, 0)],
    "tRC refresh": [(None, READ, 0, 0, 0, 0)],
    "tRFC": [(None, READ, 0, 0, 0, 0)],
}
# HBM2's tRAS + tRP is its tRC, its tRRD_L its tRRD_S, and four of these are more than its tFAW.
NEVER_ALONE = {"tRC", "tRC refresh", "tRRD_L", "tFAW"}


@pytest.mark.parametrize(
    ("channel", "rule"),
    [
        *(("small", rule) for rule in DECIDERS),
        *(
            pytest.param("hbm2", rule, marks=pytest.mark.slow)
            for rule in DECIDERS
            if rule not in NEVER_ALONE
        ),
    ],
)
def test_a_command_waits_for_its_rule_and_not_a_cycle_more(channel: str, rule: str) -> None:
    memory = MEMORIES[channel]
    late = memory.timings.t_refi - 2
    requests = Requests.of(
        (late if cycle is None else cycle, write, memory.address(*place))
        for cycle, write, *place in DECIDERS[rule]
    )
    needs_refresh = "refresh" in rule or rule == "tRFC"
    outcome = memory.simulate(requests, least_cycles=needs_refresh * (memory.timings.t_refi + 200))
    waited = [
        one.command.cycle
        for one in earliest(outcome.commands, rules(memory.timings))
        if one.decided_by() == rule
    ]
    # All requests had been there for a cycle: it was the rule that held the command back.
    assert waited
    assert waited[-1] > outcome.taken.max() + 1


def test_every_rule_is_shown_to_decide() -> None:
    assert {rule.name for rule in rules(SMALL.timings)} == set(DECIDERS)


@both
def test_first_ready_then_first_come(memory: RtlMemory) -> None:
    place = memory.address
    # Row 1 twice, between them row 2 of the bank; then rows of other groups, not in their order.
    addresses = [
        place(1),
        place(2),
        place(1, column=1),
        *(place(1, group=group) for group in (3, 1, 2)),
    ]
    outcome = memory.simulate(Requests.of((10, READ, address) for address in addresses))
    opened = [(c.row, c.group) for c in outcome.commands if c.kind is Kind.ACTIVATE]
    assert opened == [(1, 0), (1, 3), (1, 1), (1, 2), (2, 0)]
    columns = np.argsort(outcome.served()).tolist()
    assert columns.index(0) < columns.index(2) < columns.index(1) == 5
    # Reads of one open row, all ready at once: in their order.
    reads = [(10, READ, place(1, column=n)) for n in range(6)]
    served = memory.simulate(Requests.of(reads)).served()
    assert np.diff(served).tolist() == [memory.timings.t_ccd_l] * 5


@cache
def run(channel: str, pattern: str, stall: float) -> Outcome:
    memory = MEMORIES[channel]
    answers = Answers(stall_fraction=stall, seed=7)
    return memory.simulate(requests_of(pattern, memory), answers=answers)


STALLS = (0.0, 0.6)


@channels
def test_patterns_give_the_right_data_under_the_rules(channel: str) -> None:
    for pattern in PATTERNS:
        for stall in STALLS:
            outcome = run(channel, pattern, stall)
            refused = int((outcome.answered > outcome.appeared).sum())
            assert (refused > 0) == (stall > 0)


@both
def test_no_more_requests_are_outstanding_than_allowed(memory: RtlMemory) -> None:
    requests = requests_of("random_places", memory, count=300)
    outcome = memory.simulate(requests, outstanding=5, answers=Answers(stall_fraction=0.2))
    changes = [(cycle, 1) for cycle in outcome.taken] + [(cycle, -1) for cycle in outcome.answered]
    assert np.cumsum([change for _, change in sorted(changes)]).max() == 5


# Met in the runs together at least so often; on HBM2, four tRRD_S are longer than tFAW.
LEAST = {
    "hit": 500,
    "closed": 50,
    "conflict": 200,
    "READ to WRITE, same group": 20,
    "READ to WRITE, other group": 20,
    "WRITE to READ, same group": 20,
    "WRITE to READ, other group": 20,
    "activate that tFAW decides": 20,
    "refresh, queue full": 5,
    "queue full": 500,
    "request refused": 500,
    "response refused": 500,
    "read waits for a write of its address": 50,
    "write waits for a read of its address": 50,
    "read waits for a read of its address": 50,
    "write waits for a write of its address": 50,
    "oldest becomes urgent": 5,
}


@channels
def test_the_patterns_meet_what_a_channel_has_to_get_right(channel: str) -> None:
    seen: Counter[str] = Counter()
    for pattern in PATTERNS:
        requests = requests_of(pattern, MEMORIES[channel])
        for stall in STALLS:
            outcome = run(channel, pattern, stall)
            seen += coverage(MEMORIES[channel], requests, outcome)
    least = LEAST | ({"activate that tFAW decides": 0} if channel == "hbm2" else {})
    short = {what: (seen[what], count) for what, count in least.items() if seen[what] < count}
    assert not short, f"seen too seldom: {short}"


@both
def test_refused_responses_hold_back_commands_and_then_requests(memory: RtlMemory) -> None:
    hold = memory.timings.t_refi * 2 // 3
    total = memory.queue_depth + memory.response_depth
    requests = Requests.of((10, n % 2, n) for n in range(2 * total))
    outcome = memory.simulate(requests, answers=Answers(hold_cycles=hold))
    assert (outcome.served() < hold).sum() == memory.response_depth
    assert (outcome.appeared < hold).sum() == 1
    assert (outcome.taken < hold).sum() == total
    assert outcome.answered.min() == hold


@both
@pytest.mark.parametrize("what", ["conflict", "direction"])
def test_the_oldest_request_is_passed_so_often_and_no_more(memory: RtlMemory, what: str) -> None:
    columns = 1 << memory.col_width
    hits = [(10, WRITE, memory.address(1, column=n % columns)) for n in range(400)]
    # Another row of the bank; or the only read of the open row among writes.
    hits[3] = (10, READ, memory.address(2 if what == "conflict" else 1, column=3))
    outcome = memory.simulate(Requests.of(hits))
    assert passes(outcome).max() == memory.pass_limit
    t = memory.timings
    between = max(t.t_ccd_l, t.t_wtr_l, t.t_rtw)
    service = max(t.t_ras, t.t_wtp) + max(t.t_rp + t.t_rcd_rd, between)
    refresh = t.refresh_delay_cycles() + t.t_rfc + t.t_rcd_wr
    bound = (memory.pass_limit + 4) * t.t_ccd_l + service + refresh
    assert outcome.served()[3] - outcome.taken[3] <= bound


@both
def test_a_refresh_every_interval_idle_or_busy(memory: RtlMemory) -> None:
    interval, intervals = memory.timings.t_refi, 6
    least_cycles = intervals * interval + interval // 2
    idle = memory.simulate(Requests.of([(0, 0, 0)]), least_cycles=least_cycles)
    # The row that the one request opened is closed before the first refresh.
    due = interval * np.arange(1, intervals + 1)
    waits = np.array([memory.timings.t_rp] + [0] * (intervals - 1))
    assert refreshes(idle) == (due + waits).tolist()
    count = 3 * interval // memory.timings.t_ccd_s
    busy = memory.simulate(Requests.of((0, 0, n % memory.bursts) for n in range(count)))
    late = memory.timings.refresh_delay_cycles()
    assert len(refreshes(busy)) >= 3
    assert all(0 <= cycle % interval <= late for cycle in refreshes(busy))


def refreshes(outcome: Outcome) -> list[int]:
    return [command.cycle for command in outcome.commands if command.kind is Kind.REFRESH]


@pytest.mark.parametrize("write", [READ, WRITE], ids=["read", "write"])
def test_sequential_bursts_fill_the_data_bus(write: int) -> None:
    t = HBM2.timings
    count = 6000
    outcome = HBM2.simulate(Requests.of((0, write, n) for n in range(count)))
    pauses = len(refreshes(outcome)) * (t.refresh_delay_cycles() + t.t_rfc + t.t_rcd_rd)
    assert count * t.t_ccd_s <= outcome.answered.max() <= 1.01 * count * t.t_ccd_s + pauses


def test_random_reads_come_near_the_rate_of_activates() -> None:
    t = HBM2.timings
    count = 4000
    rng = np.random.default_rng(5)
    addresses = rng.integers(HBM2.bursts, size=count).tolist()
    outcome = HBM2.simulate(Requests.of((0, READ, address) for address in addresses))
    share = 1 - t.t_rfc / t.t_refi
    ceiling = count * max(t.t_rrd_s, ceil(t.t_faw / 4)) / share
    assert ceiling * 0.99 <= outcome.answered.max() <= ceiling * 1.06


@both
def test_one_request_at_a_time_sees_no_load(memory: RtlMemory) -> None:
    t = memory.timings
    requests = Requests.of((0, READ, n * memory.bank_groups) for n in range(8))
    outcome = memory.simulate(requests, outstanding=1)
    hit = 1 + t.rl + t.bl
    assert outcome.latency_cycles().tolist() == [hit + t.t_rcd_rd] + [hit] * 7
    assert np.diff(outcome.taken).tolist() == (outcome.latency_cycles()[:-1] + 1).tolist()


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((0, 0, -1), "request 0: address -1; must be 0 to 2047"),
        ((0, 0, 2048), "request 0: address 2048; must be 0 to 2047"),
    ],
)
def test_an_address_that_is_not_there_is_refused(item: tuple[int, int, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SMALL.simulate(Requests.of([item]))
