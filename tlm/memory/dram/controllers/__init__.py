"""Memory controllers: how they queue requests and which command they choose, a file each."""

from tlm.memory.dram.controllers.controller import Controller
from tlm.memory.dram.controllers.dramsim3 import Dramsim3
from tlm.memory.dram.controllers.dramsys import Dramsys
from tlm.memory.dram.controllers.ramulator import Ramulator
from tlm.memory.dram.controllers.rtl import Rtl

#: The controller of our own channel in Verilog.
RTL = Rtl()
#: Those of public simulators, by the names of `wafertlm memory --policy`.
CONTROLLERS: dict[str, Controller] = {
    "ramulator": Ramulator(),
    "dramsim3": Dramsim3(),
    "dramsys": Dramsys(),
}
