"""What a scheduler sees and what it decides: a new policy is one file like those beside this one.

Waiting requests are served first come first served: a scheduler decides how many are admitted,
never which.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from workloads.serving.load.request import Request


class Chunk(NamedTuple):
    """Tokens of a request's prompt to compute."""

    request: Request
    tokens: int


class Plan(NamedTuple):
    """What an iteration computes.

    Attributes:
        chunks: Prompt tokens of admitted requests, at most one chunk each.
        layers: The contiguous layers that compute the chunks; None: all. Chunks that pass only a
            part of the layers count as computed once the last layer has been among them.
        decode: Whether the decoding requests emit a token too.
    """

    chunks: Sequence[Chunk] = ()
    layers: range | None = None
    decode: bool = True


class Queue(Protocol):
    """The engine as a scheduler sees it."""

    @property
    def layers(self) -> int:
        """Layers of the model."""
        ...

    @property
    def ranks(self) -> int:
        """Places that requests are dealt out to, each with all budgets: dies of a wafer, or 1."""
        ...

    @property
    def decoding(self) -> int:
        """Requests whose prompt is complete and that emit a token, or more, an iteration."""
        ...

    @property
    def decode_tokens(self) -> int:
        """Tokens that an iteration computes for them: one each, or a draft and one more."""
        ...

    @property
    def prefilling(self) -> Sequence[Request]:
        """Admitted requests whose prompt is not complete, first come first."""
        ...

    def admit(self) -> Request | None:
        """Admit the first waiting request; None if there is none or it must wait longer."""
        ...


class Scheduler(Protocol):
    """Plans iterations.

    Attributes:
        keeps_prompts: Whether prompts under way are safe from preemption.
    """

    keeps_prompts: bool

    def plan(self, queue: Queue) -> Plan:
        """Plan the next iteration; may admit requests to the queue.

        A plan without chunks holds until a request arrives, joins, finishes or is preempted: the
        engine repeats it until then without asking.
        """
        ...
