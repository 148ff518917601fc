"""The generic payload of TLM-2.0: what a transaction carries (IEEE 1666-2023, clause 14)."""

from dataclasses import dataclass, field
from enum import Enum
from itertools import cycle
from typing import Any, TypeVar

ExtensionT = TypeVar("ExtensionT")


class Command(Enum):
    """What the target is asked to do."""

    READ = "read"
    WRITE = "write"
    IGNORE = "ignore"


class ResponseStatus(Enum):
    """What became of it."""

    INCOMPLETE = "incomplete"
    OK = "ok"
    GENERIC_ERROR = "generic error"
    ADDRESS_ERROR = "address error"
    COMMAND_ERROR = "command error"
    BURST_ERROR = "burst error"
    BYTE_ENABLE_ERROR = "byte enable error"


@dataclass(slots=True, eq=False)
class GenericPayload:
    """One transaction; compared by identity, as it is one object from request to response.

    Attributes:
        command: Read, write or neither.
        address: First byte.
        length_bytes: Bytes moved.
        data: The bytes, where a model carries them; timing models leave it empty.
        byte_enables: 0xff for a byte that moves, 0 for one that does not, again from the start
            behind the last; empty enables all.
        response_status: Set by the target before the response begins.
        dmi_allowed: Set by a target that would give direct access to this address.
        extensions: Typed side data, at most one object of a type.
    """

    command: Command
    address: int
    length_bytes: int
    data: bytearray = field(default_factory=bytearray)
    byte_enables: bytes = b""
    response_status: ResponseStatus = ResponseStatus.INCOMPLETE
    dmi_allowed: bool = False
    extensions: dict[type[Any], Any] = field(default_factory=dict)

    def extend(self, extension: object) -> None:
        """Attach side data; replaces what there is of the same type."""
        self.extensions[type(extension)] = extension

    def extension(self, kind: type[ExtensionT]) -> ExtensionT:
        """The side data of type ``kind``.

        Raises:
            KeyError: if there is none.
        """
        found: ExtensionT = self.extensions[kind]
        return found

    def move(self, memory: memoryview) -> None:
        """Write the data into a memory, or read it from there, as the command says.

        A write without data, of a model of times alone, leaves the memory as it is.

        Args:
            memory: The bytes that the transaction is about.
        """
        if self.command is Command.READ:
            if len(self.data) != len(memory):
                self.data = bytearray(len(memory))
            self._copy(memory, memoryview(self.data))
        elif self.command is Command.WRITE and self.data:
            self._copy(memoryview(self.data), memory)

    def _copy(self, source: memoryview, target: memoryview) -> None:
        if not self.byte_enables:
            target[:] = source
            return
        for place, enable in zip(range(len(target)), cycle(self.byte_enables), strict=False):
            if enable:
                target[place] = source[place]
