"""The DRAM channel: every rule obeyed, every request answered once, and nothing skipped in time."""

from collections.abc import Generator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.memory.cases import MEMORIES, PATTERNS, requests_of
from calibration.memory.channel import RtlMemory
from calibration.memory.dram_rules import Command as NotedCommand
from calibration.memory.dram_rules import Kind as CommandKind
from calibration.memory.dram_rules import violations
from calibration.memory.model import bursts_of, memory_model
from cosim.memory.channel import Timings
from tlm.errors import InputError
from tlm.memory.base import MemoryPort, PhaseTimes
from tlm.memory.dram import channel as channel_module
from tlm.memory.dram.channel import BurstRequests, ChannelRun, DramChannel
from tlm.memory.dram.controllers import CONTROLLERS, RTL
from tlm.memory.dram.controllers.controller import Controller
from tlm.memory.dram.controllers.dramsys import Dramsys
from tlm.memory.dram.device import Device
from tlm.memory.dram.devices import DEVICES, HBM2, HBM3, RTL_HBM2
from tlm.memory.dram.layout import port_table
from tlm.memory.dram.standard import DramCommand
from tlm.memory.dram.state import LOG_COLUMNS, Asked, Head, Port
from tlm.memory.dram.target import DramMemory
from tlm.memory.dram.traffic import DramTraffic
from tlm.payload import Command, GenericPayload, ResponseStatus
from tlm.protocol import ProtocolChecker
from tlm.sockets import InitiatorSocket, Phase, Sync

ALL = {**CONTROLLERS, "rtl": RTL}
every_controller = pytest.mark.parametrize("controller", ALL.values(), ids=ALL.keys())
#: Patterns that the large channel is asked for by default, too.
_BOTH = ("random_places", "few_rows")
every_device = pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES.keys())


def mixture(device: Device, seed: int, count: int = 3000, requesters: int = 3) -> BurstRequests:
    """Requesters that walk, jump and meet, in both directions and with pauses."""
    rng = np.random.default_rng(seed)
    near = rng.integers(0, 4 * device.banks << device.column_bits, count)
    walk = np.arange(count)
    kind = rng.integers(0, 3, count)
    anywhere = rng.integers(0, device.bursts, count)
    burst = np.where(kind == 0, walk, np.where(kind == 1, near, anywhere))
    counts = [count // requesters] * (requesters - 1)
    counts.append(count - sum(counts))
    pauses = rng.integers(0, 400, count) * (rng.random(count) < 0.02)
    tick = np.concatenate([np.cumsum(part) for part in np.split(pauses, np.cumsum(counts)[:-1])])
    return BurstRequests(tick, rng.integers(0, 2, count), burst, counts)


def stream(count: int, write: int = 0, step: int = 1) -> BurstRequests:
    burst = np.arange(count) * step
    return BurstRequests(np.zeros(count, dtype=np.int64), np.full(count, write), burst, (count,))


def scattered(device: Device, count: int) -> BurstRequests:
    burst = np.random.default_rng(5).integers(0, device.bursts, count)
    return replace(stream(count), burst=burst)


def bandwidth(device: Device, outcome: ChannelRun) -> float:
    ends = np.sort(outcome.end_resp)
    first, last = len(ends) // 10, len(ends) * 9 // 10
    return float((last - first) * device.bl / (ends[last] - ends[first]))


def timings(device: Device) -> Timings:
    return Timings(**{f.name: getattr(device, f.name) for f in fields(Timings)})


# ---- the Verilog ----


@pytest.mark.rtl
@pytest.mark.parametrize("outstanding", [None, 5], ids=["open", "closed"])
@pytest.mark.parametrize(
    ("memory", "pattern"),
    [
        pytest.param(memory, p, marks=() if name == "small" or p in _BOTH else pytest.mark.slow)
        for name, memory in MEMORIES.items()
        for p in PATTERNS
    ],
    ids=[f"{name}-{p}" for name in MEMORIES for p in PATTERNS],
)
def test_every_phase_and_command_is_that_of_the_verilog(
    memory: RtlMemory, pattern: str, outstanding: int | None
) -> None:
    asked = requests_of(pattern, memory, count=1500, seed=2718)
    truth = memory.simulate(asked, outstanding=outstanding)
    found = memory_model(memory).simulate(bursts_of(asked), outstanding, commands=True)
    assert found.begin_req.tolist() == truth.offered.tolist()
    assert found.end_req.tolist() == truth.taken.tolist()
    assert found.begin_resp.tolist() == truth.appeared.tolist()
    assert found.end_resp.tolist() == truth.answered.tolist()
    last = found.commands[-1, 0]
    expected = sorted(tuple(map(int, c)) for c in truth.commands if c.cycle <= last)
    assert sorted(map(tuple, found.commands.tolist())) == expected


# ---- rules, conservation, order ----


@every_controller
@every_device
def test_commands_obey_every_rule(device: Device, controller: Controller) -> None:
    asked = mixture(device, seed=1)
    outcome = DramChannel.of(device, controller).simulate(asked, 16, commands=True)
    log = [NotedCommand(row[0], CommandKind(row[1]), *row[2:]) for row in outcome.commands.tolist()]
    # Some controllers finish or close one by one before a refresh: its delay is judged below.
    found = violations(log, timings(device), outcome.ticks)
    assert [one for one in found if not one.startswith("tREFI")] == []
    refreshes = [c.cycle for c in log if c.kind is CommandKind.REFRESH]
    due = device.t_refi * np.arange(1, len(refreshes) + 1)
    assert len(refreshes) >= outcome.ticks // device.t_refi - 1 > 0
    longest = 2 * (device.t_rc + device.t_wtp) + device.banks * device.t_ppd
    assert (due <= refreshes).all() and (refreshes <= due + longest).all()
    if controller.half_clocks and device.edge_ticks == 2:
        on_edge = [
            c for c in log if c.kind not in (CommandKind.PRECHARGE, CommandKind.PRECHARGE_ALL)
        ]
        assert all(c.cycle % 2 == 0 for c in on_edge)
    closes = [c.cycle for c in log if c.kind is CommandKind.PRECHARGE]
    assert (np.diff(closes) >= (device.t_ppd if controller.half_clocks else 1)).all()
    row_bus = [c for c in log if c.kind < CommandKind.READ]
    busy = controller.activate_ticks or device.activate_ticks
    for first, then in zip(row_bus, row_bus[1:], strict=False):
        assert then.cycle - first.cycle >= (busy if first.kind is CommandKind.ACTIVATE else 1)


@every_controller
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), depth=st.integers(1, 40), grain=st.integers(1, 9))
def test_every_request_is_answered_once_and_phases_are_ordered(
    controller: Controller, seed: int, depth: int, grain: int
) -> None:
    asked = mixture(HBM3, seed, count=600)
    channel = replace(DramChannel.of(HBM3, controller), grain_requests=grain)
    outcome = channel.simulate(asked, depth, commands=True)
    assert (asked.tick <= outcome.begin_req).all()
    assert (outcome.begin_req <= outcome.end_req).all()
    assert (outcome.end_req < outcome.begin_resp).all()
    assert (outcome.begin_resp == outcome.end_resp).all()
    columns = outcome.commands[outcome.commands[:, 1] >= DramCommand.READ]
    served = columns[:, 6].tolist()
    # What has no command was answered, or absorbed, by a write to the same address that waited.
    assert len(served) == len(set(served))
    for number in set(range(len(asked))) - set(served):
        assert asked.burst[number] in asked.burst[:][asked.write == 1]
        assert outcome.end_resp[number] - outcome.end_req[number] <= HBM3.rl + HBM3.bl
    assert (asked.write[columns[:, 6]] == columns[:, 1] - DramCommand.READ).all()
    if controller is RTL:
        assert len(served) == len(asked)
    # One is taken a tick; of a requester in order, and no more than may be outstanding.
    assert len(set(outcome.end_req.tolist())) == len(asked)
    parts = np.split(np.arange(len(asked)), np.cumsum(asked.counts)[:-1])
    for part in parts:
        assert (np.diff(outcome.end_req[part]) > 0).all()
        ends = np.sort(outcome.end_resp[part])
        # An answer may make room for a request of the same tick.
        side = "left" if controller.offer_after_answer else "right"
        done = np.searchsorted(ends, outcome.end_req[part], side)
        open_at = np.arange(1, len(part) + 1) - done
        assert open_at.max() <= depth


@every_controller
@every_device
def test_time_jumps_over_nothing(device: Device, controller: Controller) -> None:
    """Looking in every tick finds the same commands as looking when something may happen."""
    asked = mixture(device, seed=9, count=500)
    channel = DramChannel.of(device, controller)
    jumped = channel.simulate(asked, 12)
    m = channel.new_state(len(asked.counts))
    stops = np.cumsum(asked.counts)
    ports = port_table(m)
    ports[:, Port.NEXT], ports[:, Port.STOP] = stops - asked.counts, stops
    ports[:, Port.DEPTH] = 12
    requests = channel.table(asked.tick, asked.write, asked.burst)
    m[Head.LEFT] = len(asked)
    tick = 0
    looks = [Head.COLUMN_AT, Head.ACCEPT_AT]
    if controller is CONTROLLERS["dramsim3"]:
        looks.append(Head.MOVE_AT)
    else:
        looks.append(Head.ROW_AT)
    while m[Head.LEFT]:
        m[looks] = tick
        controller.advance(m, requests, tick)
        tick += 1
    assert (requests[:, Asked.END_REQ] == jumped.end_req).all()
    assert (requests[:, Asked.END_RESP] == jumped.end_resp).all()


@every_controller
def test_a_full_log_loses_no_command(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, asked = DramChannel.of(HBM3, controller), mixture(HBM3, seed=2, count=300)
    whole = channel.simulate(asked, 16, commands=True)
    monkeypatch.setattr(channel_module, "_LOG_ROWS", 7)
    pieces = channel.simulate(asked, 16, commands=True)
    assert pieces.commands.tolist() == whole.commands.tolist()
    assert pieces.end_resp.tolist() == whole.end_resp.tolist()
    assert channel.simulate(asked, 16).commands.shape == (0, LOG_COLUMNS)


# ---- laws ----


@every_controller
@every_device
def test_random_reads_come_to_the_activate_ceiling(device: Device, controller: Controller) -> None:
    outcome = DramChannel.of(device, controller).simulate(scattered(device, 30_000), 64)
    refresh = outcome.refresh_ticks / outcome.ticks
    edge = device.edge_ticks
    spacing = -(-device.t_rrd_s // edge) * edge
    ceiling = min(4 / device.t_faw, 1 / spacing) * device.bl * (1 - refresh)
    assert 0.9 * ceiling < bandwidth(device, outcome) <= ceiling * 1.005


@every_controller
@pytest.mark.parametrize("write", [0, 1], ids=["reads", "writes"])
def test_sequences_lose_little_but_refresh(controller: Controller, write: int) -> None:
    outcome = DramChannel.of(HBM2, controller).simulate(stream(30_000, write), 64)
    refresh = outcome.refresh_ticks / outcome.ticks
    assert refresh == pytest.approx(HBM2.t_rfc / HBM2.t_refi, abs=0.02)
    assert 0.97 * (1 - refresh) < bandwidth(HBM2, outcome) <= (1 - refresh) * 1.02


@every_controller
@every_device
def test_unloaded_latencies_are_sums_of_times(device: Device, controller: Controller) -> None:
    """A closed bank, the open row, another row; the queue takes a tick, but in DRAMSys."""
    row = device.banks << device.column_bits
    far = 1000
    asked = BurstRequests(np.arange(3) * far, np.zeros(3, dtype=int), np.array([0, 0, row]), (3,))
    latency = DramChannel.of(device, controller).simulate(asked).latency_ticks()
    queue = 0 if isinstance(controller, Dramsys) else 1
    edge = device.edge_ticks - 1 if controller.half_clocks else 0
    data = device.rl + device.bl
    expected = [device.t_rcd_rd + data, data, device.t_rp + device.t_rcd_rd + data]
    # Commands that need the rising edge wait for it.
    assert all(
        0 <= found - queue - want <= 3 * edge for found, want in zip(latency, expected, strict=True)
    )
    if not edge:
        assert (latency - queue).tolist() == expected


# Ticks from a read's column to that of the next of the row, which is sent when the first has ended.
# Ramulator: callbacks come in the tick of the last beat, send() notes that tick, and the controller
# looks a tick later. DRAMsim3: the same but for ScheduleTransaction, which comes after the commands
# of the tick. DRAMSys: BEGIN_RESP, BEGIN_REQ and the command are events of one time. The Verilog
# shows a response, takes a request and chooses its column in three cycles.
_TURNS = {"ramulator": 1, "dramsim3": 2, "dramsys": 0, "rtl": 2}
# The same of writes to groups in turn: answered by the command, but not two within tCCD_S; a cycle
# after they are taken, at the earliest in every other cycle; at the last beat.
_WRITES = {"ramulator": HBM2.t_ccd_s, "dramsim3": 2, "dramsys": HBM2.wl + HBM2.bl,
           "rtl": HBM2.wl + HBM2.bl + 2}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_a_loop_of_one_request_turns_as_in_the_source(name: str) -> None:
    channel = DramChannel.of(HBM2, ALL[name], "co-bg-ba-ro")
    reads = channel.simulate(stream(9), 1).end_resp
    assert np.diff(reads).tolist() == [HBM2.rl + HBM2.bl + _TURNS[name]] * 8
    channel = DramChannel.of(HBM2, ALL[name])
    writes = channel.simulate(stream(40, write=1), 1).end_resp[8:30]
    assert np.diff(writes).tolist() == [_WRITES[name]] * 21


@every_controller
def test_bandwidth_rises_with_what_is_outstanding(controller: Controller) -> None:
    found = [
        bandwidth(HBM3, DramChannel.of(HBM3, controller).simulate(scattered(HBM3, 8000), depth))
        for depth in (1, 2, 4, 8, 16, 32)
    ]
    assert all(more > less for less, more in zip(found, found[1:], strict=False))


def test_requesters_take_turns_by_the_grain() -> None:
    count = 64
    both = np.concatenate([np.arange(count), np.arange(count)])
    asked = BurstRequests(np.zeros(2 * count, int), np.zeros(2 * count, int), both, (count, count))
    for grain in (1, 4):
        channel = replace(DramChannel.of(HBM2, RTL), grain_requests=grain)
        taken = channel.simulate(asked).end_req
        order = np.argsort(taken) // count
        # Nobody waits while he has the turn: a requester offers one request a tick.
        assert order[: 4 * grain].tolist() == ([0] * grain + [1] * grain) * 2


def test_wrong_input_is_refused() -> None:
    channel = DramChannel.of(HBM2, RTL)
    with pytest.raises(InputError, match="address .* bursts; hbm2 has 0 to"):
        channel.simulate(stream(2, step=HBM2.bursts))
    with pytest.raises(InputError, match="queue_depth: 0; must be at least 1"):
        channel.simulate(stream(2), 0)
    with pytest.raises(InputError, match="counts"):
        BurstRequests(np.zeros(2), np.zeros(2), np.zeros(2), (1,))
    with pytest.raises(InputError, match="grain_requests: 0"):
        replace(channel, grain_requests=0)
    with pytest.raises(InputError, match="t_rp: 0; must be above 0"):
        replace(HBM2, t_rp=0)
    with pytest.raises(InputError, match="bank_groups: 3; must be a power of two"):
        replace(HBM2, bank_groups=3)


# ---- in SimPy ----


def payload(channel: DramChannel, write: int, burst: int, bursts: int = 1) -> GenericPayload:
    size = channel.device.burst_bytes
    return GenericPayload(Command.WRITE if write else Command.READ, burst * size, bursts * size)


def through_simpy(channel: DramChannel, asked: BurstRequests) -> list[PhaseTimes]:
    """The phases of requests that are sent through one port, each at its tick."""
    env = simpy.Environment()
    port, memory = MemoryPort(env), DramMemory(env, channel)
    checker = ProtocolChecker(env, port.socket, memory.socket)
    found: dict[int, PhaseTimes] = {}

    def client(number: int) -> Generator[Any, Any, None]:
        yield env.timeout(int(asked.tick[number]))
        one = payload(channel, int(asked.write[number]), int(asked.burst[number]))
        found[number] = yield from port.access(one)
        assert one.response_status is ResponseStatus.OK

    for number in range(len(asked)):
        env.process(client(number))
    with checker:
        env.run()
    assert checker.completed == len(asked)
    return [found[number] for number in range(len(asked))]


@every_controller
@pytest.mark.parametrize("device", [HBM2, HBM3], ids=["hbm2", "hbm3"])
def test_a_simulation_in_simpy_gives_the_batch(device: Device, controller: Controller) -> None:
    channel = DramChannel.of(device, controller)
    asked = mixture(device, seed=4, count=700, requesters=1)
    # A long pause: refreshes that nobody watches.
    asked = replace(asked, tick=asked.tick + 50_001 * (np.arange(700) > 350))
    batch = channel.simulate(asked)
    times = through_simpy(channel, asked)
    assert [t.end_req for t in times] == batch.end_req.tolist()
    assert [t.begin_resp for t in times] == batch.begin_resp.tolist()


def test_blocking_transport_and_long_transactions() -> None:
    channel = DramChannel.of(RTL_HBM2, RTL)
    env = simpy.Environment()
    port, memory = MemoryPort(env), DramMemory(env, channel)
    checker = ProtocolChecker(env, port.socket, memory.socket)
    ends = []

    def client() -> Generator[Any, Any, None]:
        delay = yield from port.socket.b_transport(payload(channel, 0, 0), 5)
        ends.append(env.now + delay)
        times = yield from port.access(payload(channel, 0, 0, bursts=8))
        ends.append(times.end_resp - times.begin_req)

    env.process(client())
    with checker:
        env.run()
    # 1 + tRCD + L; then eight bursts over four groups, the last of them seven times tCCD_S on, as
    # its rows open one after another: tRRD_S apart.
    assert ends[0] == 5 + 1 + 15 + 16
    alone = channel.simulate(replace(stream(9), burst=np.array([0, *range(8)]),
                                     tick=np.array([5] + [ends[0] + 1] * 8)))  # fmt: skip
    assert ends[1] == alone.end_resp[-1] - ends[0]


def test_a_response_that_is_not_taken_keeps_its_place() -> None:
    controller = replace(RTL, response_depth=2)
    channel = DramChannel.of(RTL_HBM2, controller)
    env = simpy.Environment()
    memory = DramMemory(env, channel)
    seen: list[tuple[int, Phase]] = []

    class Slow:
        def __init__(self) -> None:
            self.socket = InitiatorSocket(self)
            self.left = 4

        def offer(self) -> None:
            if self.left:
                self.left -= 1
                self.socket.nb_transport_fw(payload(channel, 0, self.left), Phase.BEGIN_REQ, 0)

        def nb_transport_bw(self, one: GenericPayload, phase: Phase, delay_cycles: int) -> Any:
            seen.append((int(env.now), phase))
            if phase is Phase.END_REQ:
                self.offer()
            else:
                taken = env.timeout(100)
                assert taken.callbacks is not None
                taken.callbacks.append(
                    lambda _: self.socket.nb_transport_fw(one, Phase.END_RESP, 0)
                )
            return Sync.ACCEPTED, phase, 0

    slow = Slow()
    with ProtocolChecker(env, slow.socket, memory.socket):
        slow.offer()
        env.run()
    answers = [time for time, phase in seen if phase is Phase.BEGIN_RESP]
    first = 1 + 15 + 16
    # The second waits behind the first; the third had no place before the first was taken.
    assert answers[:2] == [first, first + 101]
    assert len(answers) == 4 and (np.diff(answers) >= 101).all()


def test_reads_and_writes_of_the_same_addresses_come_to_an_end() -> None:
    # A full write buffer whose first write waits for a read that has not moved.
    stream = DramTraffic(
        pattern="sequential", requests=5000, requesters=2, write_fraction=0.5, seed=7
    )
    requests = stream.stream(HBM2)
    requests = replace(requests, burst=requests.burst & 0x1FFF)
    for controller in CONTROLLERS.values():
        outcome = DramChannel.of(HBM2, controller).simulate(requests)
        assert (outcome.end_resp > 0).all()
