"""The generic payload of TLM-2.0: what a transaction carries (IEEE 1666-2023, clause 14)."""

from dataclasses import dataclass, field
from enum import Enum
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
    ADDRESS_ERROR = "address error"
    COMMAND_ERROR = "command error"
    BURST_ERROR = "burst error"


@dataclass(slots=True, eq=False)
class GenericPayload:
    """One transaction; compared by identity, as it is one object from request to response.

    Attributes:
        command: Read, write or neither.
        address: First byte.
        length_bytes: Bytes moved.
        data: The bytes, where a model carries them; timing models leave it empty.
        byte_enables: One bit a byte, repeated; empty enables all.
        response_status: Set by the target before the response begins.
        extensions: Typed side data, at most one object of a type.
    """

    command: Command
    address: int
    length_bytes: int
    data: bytearray = field(default_factory=bytearray)
    byte_enables: bytes = b""
    response_status: ResponseStatus = ResponseStatus.INCOMPLETE
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
