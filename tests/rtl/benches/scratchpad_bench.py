"""cocotb bench of the scratchpad: rtl/bench/scratchpads_bench.sv, at most 8 ports and 16 banks.

The plan is a list of streams, one for each scratchpad of the bench in its order; a stream is a list
of requests ``[cycle, port, write, address]``, ``cycle`` being the first in which the port may ask.
A port asks for its requests in their order, each in the cycle after the one before was served, or
later. The outcome is ``{"done": [[cycle, ...], ...], "compared": n, "waits": n}``: for each
request the cycle after the one that served it; words read and compared with what was last written;
cycles that ports waited, added up.

What is written is random, and kept in a plain memory too. A read must show its word in the cycle
after the one that served it, and no port may show one else.
"""

import json
import os
import random
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

_CLOCK_NS = 2
_MAX_PORTS = 8
_WIDTH_BYTES = 2


@dataclass(frozen=True, slots=True)
class Request:
    """A word that a port asks for; ``number`` is its place in its scratchpad's stream."""

    number: int
    cycle: int
    write: bool
    address: int
    data: int


@dataclass(slots=True)
class Port:
    """A port of a scratchpad: what it has yet to ask, and the plain memory behind it.

    Attributes:
        place: Its place in the bench's vectors.
        memory: Words written so far, by address; shared by the ports of a scratchpad.
        done: Where the scratchpad's requests enter the cycle after their service.
        waiting: Requests in order; the first is offered once its cycle has come.
        read: Address of the word that must be shown in this cycle; None for none.
        expected: That word, if it has been written.
    """

    place: int
    memory: dict[int, int]
    done: list[int]
    waiting: deque[Request] = field(default_factory=deque)
    read: int | None = None
    expected: int | None = None

    def offered(self, cycle: int) -> Request | None:
        """The request that the port makes in a cycle."""
        return self.waiting[0] if self.waiting and self.waiting[0].cycle <= cycle else None

    def check_read(self, shown: bool, word: int) -> bool:
        """Hold that the word of the last cycle's read is shown; whether it could be compared."""
        assert shown == (self.read is not None), f"port at {self.place}: read valid is {shown}"
        if self.expected is None:
            return False
        assert word == self.expected, (
            f"port at {self.place}: address {self.read} reads {word}, holds {self.expected}"
        )
        return True

    def serve(self, cycle: int) -> None:
        """The first request is served."""
        request = self.waiting.popleft()
        self.done[request.number] = cycle + 1
        if request.write:
            self.memory[request.address] = request.data
        else:
            self.read, self.expected = request.address, self.memory.get(request.address)


def ports_of(streams: list[list[list[int]]]) -> list[Port]:
    """The ports that occur in the streams."""
    draw = random.Random(cocotb.RANDOM_SEED)
    found: list[Port] = []
    for scratchpad, stream in enumerate(streams):
        memory: dict[int, int] = {}
        done = [0] * len(stream)
        own: dict[int, Port] = {}
        for number, (cycle, port, write, address) in enumerate(stream):
            data = draw.getrandbits(8 * _WIDTH_BYTES)
            place = scratchpad * _MAX_PORTS + port
            known = own.setdefault(port, Port(place, memory, done))
            known.waiting.append(Request(number, cycle, bool(write), address, data))
        found.extend(own.values())
    return found


class Bench:
    """Offers the ports' requests, and tells each port what became of them."""

    def __init__(self, dut: Any, ports: list[Port]) -> None:
        """Bind to the scratchpads, and hold all inputs low."""
        self._dut, self._ports = dut, ports
        self._places = len(dut.valid_i)
        self._addresses = bytearray(self._places)
        self._data = bytearray(self._places * _WIDTH_BYTES)
        self.compared = self.waits = 0
        for name in ("rst_ni", "valid_i", "write_i", "address_i", "data_i"):
            getattr(dut, name).value = 0

    async def run(self) -> None:
        """Serve all requests, and see the last words that were read."""
        await ClockCycles(self._dut.clk_i, 3)
        self._dut.rst_ni.value = 1
        cycle = 0
        while any(port.waiting or port.read is not None for port in self._ports):
            asking = self._offer(cycle)
            await FallingEdge(self._dut.clk_i)
            self._see(asking, cycle)
            await RisingEdge(self._dut.clk_i)
            cycle += 1

    def _offer(self, cycle: int) -> list[Port]:
        """Drive the requests of a cycle; the ports that ask."""
        valid = write = 0
        asking = []
        for port in self._ports:
            if request := port.offered(cycle):
                place = port.place
                valid |= 1 << place
                write |= request.write << place
                self._addresses[place] = request.address
                begin = place * _WIDTH_BYTES
                word = request.data.to_bytes(_WIDTH_BYTES, "little")
                self._data[begin : begin + _WIDTH_BYTES] = word
                asking.append(port)
        self._dut.valid_i.value = valid
        self._dut.write_i.value = write
        self._dut.address_i.value = int.from_bytes(self._addresses, "little")
        self._dut.data_i.value = int.from_bytes(self._data, "little")
        return asking

    def _see(self, asking: list[Port], cycle: int) -> None:
        """Check what was read in the cycle before, and serve what is granted in this one."""
        ready = self._dut.ready_o.value.to_unsigned()
        shown = self._dut.read_valid_o.value.to_unsigned()
        words = self._dut.read_data_o.value.to_unsigned()
        words = words.to_bytes(self._places * _WIDTH_BYTES, "little")
        for port in self._ports:
            begin = port.place * _WIDTH_BYTES
            word = int.from_bytes(words[begin : begin + _WIDTH_BYTES], "little")
            self.compared += port.check_read(bool(shown >> port.place & 1), word)
            port.read = port.expected = None
        served = [port for port in asking if ready >> port.place & 1]
        assert ready == sum(1 << port.place for port in served), "ready without valid"
        self.waits += len(asking) - len(served)
        for port in served:
            port.serve(cycle)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def run_plan(dut: Any) -> None:
    """Run the streams of ``$WAFERTLM_PLAN`` and write the outcome to ``$WAFERTLM_RESULT``."""
    streams = json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text())
    Clock(dut.clk_i, _CLOCK_NS, unit="ns").start()
    ports = ports_of(streams)
    bench = Bench(dut, ports)
    await bench.run()
    done: dict[int, list[int]] = {port.place // _MAX_PORTS: port.done for port in ports}
    outcome = {
        "done": [done[scratchpad] for scratchpad in range(len(streams))],
        "compared": bench.compared,
        "waits": bench.waits,
    }
    Path(os.environ["WAFERTLM_RESULT"]).write_text(json.dumps(outcome))
