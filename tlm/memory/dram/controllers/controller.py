"""What the core of a DRAM channel has to know of a controller; each has a file of its own.

A controller's file opens with its policy in words. It has compiled functions of these names:

- ``has_room(m, requests, request)`` and ``enter(m, requests, t, request, port)``: a place for a
  request, for `ports.accept`, which takes one of requesters in turn; or its own ``accept``.
- ``choose``: the commands of a tick. It sets COLUMN_AT and ROW_AT to the next tick that can see
  another; whatever changes the state elsewhere lowers them. They may be too early, never too late.
- ``refresh``, if `queues.close_and_refresh` is not its way: the next step of one that is due.
- ``tick(m, requests, t)``: all this in its order.
- ``advance``: `clock.run` with its ``tick``; what Python calls.

`ports.accept` and `clock.run` are inlined with the functions that they are given. Numba would not
find on disk what it compiled of functions that another function makes.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import ClassVar, NamedTuple, Protocol

from tlm.memory.dram.device import Device
from tlm.memory.dram.state import Records, Table


class Advance(Protocol):
    """A controller's compiled simulation."""

    def __call__(self, m: Records, requests: Table, until: int, /) -> None:
        """Go to a tick, inclusive, or until no request is left.

        With answers taken by hand it stops after a tick in which a request was taken or an answer
        is shown: TAKEN and SHOWN tell which. It also stops when the log of commands is full.
        """


class QueuePlaces(NamedTuple):
    """How many requests can wait: in all, in one queue of a bank, in one in front of the banks."""

    total: int
    bank: int
    front: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(ABC):
    """A controller and the sizes of its queues.

    Attributes:
        response_depth: Responses under way or not yet taken.
        activate_ticks: Ticks for which an activate holds the row bus; None: the device's.
        half_clocks: Whether the rules of a device with two ticks a clock are kept, the rising edge
            and tPPD. DRAMsim3's and DRAMSys' rules of HBM know neither, whatever table of times
            they are given.
    """

    response_depth: int = 64
    activate_ticks: int | None = None
    half_clocks: bool = True

    advance: ClassVar[Advance]
    #: The controller's own columns; they begin as what it has of their names, or with 0.
    own: ClassVar[type[IntEnum]]
    #: Ticks from a request's taking, and from an answer, to the offer that waited for it.
    offer_after_taken: ClassVar[int] = 1
    offer_after_answer: ClassVar[int] = 1
    #: Ticks from an answer to the next.
    show_after: ClassVar[int] = 0

    def kept(self, device: Device) -> Device:
        """The device with those of its rules that the controller keeps."""
        if not self.half_clocks:
            device = replace(device, edge_ticks=1, t_ppd=1)
        return replace(device, activate_ticks=self.activate_ticks or device.activate_ticks)

    @abstractmethod
    def places(self, banks: int) -> QueuePlaces:
        """Places for requests, with so many banks."""
