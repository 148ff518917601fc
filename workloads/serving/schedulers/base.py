"""What a scheduler sees and what it decides.

Decoding is not the scheduler's business: in every iteration each decoding request emits a token.
A scheduler chooses the prompt tokens that are computed beside them.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from workloads.serving.request import Request


class Chunk(NamedTuple):
    """Tokens of a request's prompt to compute in an iteration."""

    request: Request
    tokens: int


class Queue(Protocol):
    """The engine as a scheduler sees it."""

    @property
    def decoding(self) -> int:
        """Requests that emit a token in this iteration."""
        ...

    @property
    def prefilling(self) -> Sequence[Request]:
        """Admitted requests whose prompt is not complete, first come first."""
        ...

    def admit(self) -> Request | None:
        """Admit the first waiting request; None if there is none or it must wait longer."""
        ...


class Scheduler(Protocol):
    """Chooses the prompt tokens of an iteration."""

    def plan(self, queue: Queue) -> list[Chunk]:
        """Chunks of admitted requests, at most one each; may admit requests to the queue."""
        ...
