"""The approximately-timed engine: every tile's engines as SimPy processes, every packet on its way.

The network is an `Interconnect` advanced in step with SimPy (`SimpyNetwork`).
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any

import simpy

from tlm.engines.at.credits import Credit, CreditMesh, Credits, UndisturbedCredits
from tlm.engines.at.relay import Relays
from tlm.engines.at.shared_tiles import SharedTiles
from tlm.engines.at.starts import Starts
from tlm.engines.at.times import RunTimes
from tlm.engines.at.units import GivenUnits
from tlm.engines.outcome import Outcome
from tlm.errors import InputError
from tlm.interconnect import packets
from tlm.interconnect.base import Interconnect
from tlm.interconnect.packets import TileSet
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.interconnect.zero_load import NocTiming
from tlm.lockstep import SteppedEnvironment
from tlm.offchip.system import OffChipMemory, SendPart
from tlm.program import Engine, Program
from tlm.program.operations import OffChip, Reduce, Relay, Tile
from tlm.program.steps import ProgramDeadlockError, Step, TransferStep, Unit, WorkStep, held_steps
from tlm.tiles.interconnect import TiledInterconnect
from tlm.tiles.timing import FREE, QueueTiming
from tlm.trace.recorder import EngineSpan, Recorder, TransferSpan

_Process = Generator[simpy.Event, Any, None]


def run_at(
    program: Program,
    timing: NocTiming,
    network: Interconnect,
    recorder: Recorder | None = None,
    queues: QueueTiming = FREE,
    offchip: OffChipMemory | None = None,
) -> Outcome:
    """Run a program packet by packet.

    Args:
        program: What to run.
        timing: Packet bound (``fifo_depth``) and latency of credits.
        network: A network of the program's size, with off-chip memory of `Edge.edge_rows` rows
            more, which have no tiles (`TiledInterconnect.edge_rows`); not yet used. With a
            `TiledInterconnect` work on the program's blocks takes as long as its words, and those
            of transfers, wait for each other at the tiles' banks; else as long as the operations
            say.
        recorder: Is told of every operation and transfer.
        queues: Costs of the tiles' sequencers and network interfaces; by default none.
        offchip: Off-chip memory; None: what it holds is in the tile when asked for.

    Raises:
        InputError: if an operation does not fit the program, its steps do not fit into memory, or
            the network has more or fewer rows without tiles.
        ProgramDeadlockError: if operations wait for ever, naming one of them.
    """
    return _Processes(program, timing, network, recorder, queues, offchip).outcome()


class _Processes:
    """The engines of all tiles, and what they share."""

    def __init__(
        self,
        program: Program,
        timing: NocTiming,
        network: Interconnect,
        recorder: Recorder | None,
        queues: QueueTiming,
        offchip: OffChipMemory | None,
    ) -> None:
        self._program = program
        self._recorder = recorder
        self._queues = queues
        self._env = SteppedEnvironment()
        self._network = SimpyNetwork(self._env, network, timing.fifo_depth)
        self._offchip = offchip
        self._units = GivenUnits(self._env, program)
        edge_rows = 0 if offchip is None else offchip.edge.edge_rows
        self._tiles = (
            SharedTiles(self._env, network, self._network, program, edge_rows=edge_rows)
            if isinstance(network, TiledInterconnect)
            else None
        )
        if offchip is not None:
            offchip.attach(self._env, self._network, program, self._tiles)
        self._starts = Starts(
            self._env, take_turns=queues.starts_take_turns, behind_models=self._tiles is not None
        )
        self._timing = timing
        self._relays = Relays(self._env, self._network, program.cols)
        self._begun: dict[tuple[Tile, Engine], int] = {}
        self._times = RunTimes(self._env, program)

    def outcome(self) -> Outcome:
        """Run to the end."""
        queues: dict[tuple[Tile, Engine], list[Step]] = {}
        steps = held_steps(self._program)
        for step in steps:
            queues.setdefault((step.tile, step.engine), []).append(step)
        self._credits = self._made_credits(steps)
        processes = {
            key: self._env.process(
                self._transfers(key[0], steps)
                if key[1] is Engine.TRANSFER
                else self._engine(*key, steps)
            )
            for key, steps in queues.items()
        }
        self._env.run()
        stuck = [key for key, process in processes.items() if process.is_alive]
        if stuck:
            tile, engine = stuck[0]
            raise ProgramDeadlockError(
                f"operation {self._begun[stuck[0]]} waits for ever at the {engine.name} engine "
                f"of tile {tile}; engines that wait for ever: {len(stuck)}"
            )
        return self._times.outcome()

    def _made_credits(self, steps: list[Step]) -> Credits:
        """Credits of all steps."""
        common = self._env, self._units, self._program, self._timing
        if not self._queues.credit_interval_cycles:
            return UndisturbedCredits(*common)
        return CreditMesh(*common, self._queues, steps)

    def _engine(self, tile: Tile, engine: Engine, steps: list[Step]) -> _Process:
        """An engine does its work in order."""
        for step in steps:
            assert isinstance(step, WorkStep)
            self._begun[tile, engine] = step.number
            yield from self._take(step)
            yield from self._starts.turn(tile, engine)
            start = int(self._env.now)
            self._times.begin_work(tile, engine)
            yield from self._work(tile, engine, step)
            self._times.end_work(tile, engine, start)
            self._end(step, start)
            yield from self._end_rest(step)

    def _work(self, tile: Tile, engine: Engine, step: WorkStep) -> _Process:
        """The work of a step that starts now."""
        jobs = self._tiles.jobs(step) if self._tiles is not None else ()
        if self._tiles is None or not jobs:
            yield self._env.timeout(step.cycles)
            yield from self._credits.end(step)
            return
        for place, job in enumerate(jobs):
            if place > 0:
                yield from self._starts.turn(tile, engine)
            yield self._tiles.begin(self._node(tile), job)
            yield from self._credits.end(step)

    def _transfers(self, tile: Tile, steps: list[Step]) -> _Process:
        """An interface starts its transfers in order, a few before the first has left."""
        under_way: deque[simpy.Process] = deque()
        for step in steps:
            assert isinstance(step, TransferStep)
            if len(under_way) == self._queues.outstanding:
                yield under_way.popleft()
            self._begun[tile, Engine.TRANSFER] = step.number
            yield from self._take(step)
            if self._offchip is None and isinstance(step.operation, OffChip):
                now = int(self._env.now)
                self._end(step, now)
                self._arrive(step, now, tile, step.arrivals[tile], self._node(tile))
                continue
            for unit in step.slots:
                yield from self._credits.learn(unit, tile)
            yield from self._start(step, under_way)
            if len(self._credits.given_by(step)) > 1:
                while under_way:
                    yield under_way.popleft()
                yield from self._end_rest(step)
        yield from under_way

    def _start(self, step: TransferStep, under_way: deque[simpy.Process]) -> _Process:
        """Start what a step sends, until the next step's words may be read."""
        yield from self._starts.turn(step.tile, Engine.TRANSFER)
        start, node = int(self._env.now), self._node(step.tile)
        if self._tiles is None:
            message = self._message(step, start)
            under_way.append(self._env.process(self._send(step, start, message, [*under_way])))
            if self._queues.outstanding > 1:
                yield self._env.timeout(step.flits)
            return
        messages = [self._message(step, start)]
        if self._offchip is not None and isinstance(step.operation, OffChip):
            messages = self._offchip.messages(step, self._arrivals(step, start)[node])
        for message, words in zip(messages, self._tiles.transfers(step), strict=True):
            if message is not messages[0]:
                if len(under_way) == self._queues.outstanding:
                    yield under_way.popleft()
                yield from self._starts.turn(step.tile, Engine.TRANSFER)
            words_read = self._tiles.read(node, words)
            last = message is messages[-1]
            sent = self._send(step, start, message, [*under_way], last=last)
            under_way.append(self._env.process(sent))
            yield words_read

    def _take(self, step: Step) -> Iterable[simpy.Event]:
        return self._awaited(step.takes) if step.takes else ()

    def _awaited(self, units: list[Unit]) -> _Process:
        for unit in units:
            awaited = self._units.awaited(unit)
            if awaited is not None:
                yield awaited

    def _send(
        self,
        step: TransferStep,
        start: int,
        message: SendPart,
        before: list[simpy.Process],
        *,
        last: bool = True,
    ) -> _Process:
        """Queue the packets of a transfer that starts now, and wait until it ends.

        It does not before the last packet has left, and those ``before`` it have ended.
        """
        left = self._env.event()
        if self._queues.launch_cycles and self._tiles is None:
            yield self._env.timeout(self._queues.launch_cycles)
        message(left.succeed)
        yield left
        for transfer in before:
            if transfer.is_alive:
                yield transfer
        yield from self._credits.end(step)
        if last:
            self._end(step, start)

    def _message(self, step: TransferStep, start: int) -> SendPart:
        """What sends all of a transfer."""
        node, arrivals = self._node(step.tile), self._arrivals(step, start)
        if isinstance(step.operation, Relay):
            if self._tiles is not None:
                called = step.operation.called(step.number)
                raise InputError(
                    f"{called}: tiles whose banks count run relays as messages (tlm.program.relays)"
                )
            return partial(self._relays.start, step, [*arrivals.values()])
        if isinstance(step.operation, OffChip):
            assert self._offchip is not None
            return partial(self._offchip.start, step, arrivals[node])
        goal = self._goal(step)
        return lambda left: self._network.send(node, goal, step.flits, left, arrivals)

    def _arrivals(self, step: TransferStep, start: int) -> dict[int, Callable[[int], object]]:
        """By node, what happens when a transfer has been written there."""
        return {
            self._node(tile): partial(self._arrive, step, start, tile, units)
            for tile, units in step.arrivals.items()
        }

    def _end(self, step: Step, start: int) -> None:
        end = int(self._env.now)
        self._times.ends[step.engine, step.tile] = end
        if self._recorder is not None:
            label = step.operation.label
            span = EngineSpan(step.number, label, step.engine, step.tile, start, end)
            self._recorder.operation(span)
        self._units.give(step.gives)
        self._credits.send(step, self._credits.given_by(step)[0])

    def _end_rest(self, step: Step) -> Iterable[simpy.Event]:
        """Give the credits that are too many for a step's own end, by waits behind it."""
        rest = self._credits.given_by(step)[1:]
        return self._give_credits(step, rest) if rest else ()

    def _give_credits(self, step: Step, rest: list[list[Credit]]) -> _Process:
        for credits in rest:
            yield from self._starts.turn(step.tile, step.engine)
            yield self._env.timeout(self._queues.least_work_cycles)
            yield from self._credits.end(step)
            self._times.ends[step.engine, step.tile] = int(self._env.now)
            self._credits.send(step, credits)

    def _goal(self, step: TransferStep) -> TileSet | packets.ReductionGoal:
        operation = step.operation
        if step.root is None or not isinstance(operation, Reduce):
            return step.members
        root = self._node(step.root)
        kind = packets.PacketKind[operation.operation.upper()]
        return packets.ReductionGoal(step.members, root, kind)

    def _node(self, tile: Tile) -> int:
        return tile[0] * self._program.cols + tile[1]

    def _arrive(
        self, step: TransferStep, start: int, tile: Tile, units: list[Unit], _node: int
    ) -> None:
        """A transfer has been written at a tile."""
        self._times.arrived[tile] = int(self._env.now)
        if self._recorder is not None:
            way = step.number, step.operation.label, step.tile, tile, step.flits
            self._recorder.transfer(TransferSpan(*way, start, int(self._env.now)))
        self._units.give(units)
