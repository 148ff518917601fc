"""Speculative decoding: drafts that the model verifies, several tokens wide.

A step computes, for each decoding request, its last token and a draft of the next ones. It emits
the drafted tokens up to the first that is rejected, and the model's own token after them. Whether
the draft of a token is right is drawn once for each token of each request, from a seed: it does not
depend on the scheduler, so that schedulers can be compared. What making a draft costs is priced on
wafers of dies alone, of models that tell the layers that draft; elsewhere a head of the model makes
it along with the token before (multi-token prediction), at no cost.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tlm.errors import InputError
from workloads.machine.kv_levels import blocks_of
from workloads.serving.load.request import Request

#: Tokens of a draft at most.
MOST_DRAFTED = 64


@dataclass(frozen=True, slots=True)
class Speculation:
    """Drafts of ``draft_tokens``, each right with probability ``acceptance``, by ``seed``."""

    draft_tokens: int
    acceptance: float
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            InputError: naming the figure, what was found and what is allowed.
        """
        if not 1 <= self.draft_tokens <= MOST_DRAFTED:
            raise InputError(
                f"draft tokens: found {self.draft_tokens}; allowed: 1 to {MOST_DRAFTED}"
            )
        if not 0 <= self.acceptance <= 1:
            raise InputError(f"acceptance: found {self.acceptance}; allowed: 0 to 1")

    def emissions(self, request: Request) -> list[int]:
        """Tokens that each step from here on emits, to the request's end."""
        rng = np.random.default_rng([self.seed, request.index])
        right = rng.random(request.output_tokens) < self.acceptance
        emissions, emitted = [], request.emitted
        while emitted < request.output_tokens:
            draft = right[emitted : emitted + self.draft_tokens]
            accepted = len(draft) if draft.all() else int(draft.argmin())
            emissions.append(min(accepted + 1, request.output_tokens - emitted))
            emitted += emissions[-1]
        return emissions


@dataclass(slots=True)
class _Member:
    request: Request
    stored: int
    blocks: int
    emissions: list[int]  # the next is last
    left: int

    def blocks_for(self, width: int) -> int:
        """Blocks that the next step needs in all."""
        return max(self.blocks, blocks_of(self.stored + min(width, self.left)))


class SpeculativeSet:
    """A ``DecodingSet`` whose members emit one token or more a step."""

    def __init__(self, speculation: Speculation) -> None:
        self.width = speculation.draft_tokens + 1
        self.step = 0
        self.context_tokens = 0
        self._speculation = speculation
        self._members: dict[int, _Member] = {}

    @property
    def sequences(self) -> int:
        """Number of members."""
        return len(self._members)

    @property
    def indices(self) -> Collection[int]:
        """The numbers of the members."""
        return self._members.keys()

    @property
    def last(self) -> Request:
        """The member that joined last."""
        return next(reversed(self._members.values())).request

    def join(self, request: Request) -> None:
        """Add a request whose keys and values are stored and that has tokens left to emit."""
        request.joined_step = self.step
        self.context_tokens += request.to_prefill
        self._members[request.index] = _Member(
            request,
            request.to_prefill,
            blocks_of(request.to_prefill),
            self._speculation.emissions(request)[::-1],
            request.output_tokens - request.emitted,
        )

    def leave(self, request: Request) -> int:
        """Remove a member; returns the blocks it holds and books the tokens it has emitted."""
        member = self._members.pop(request.index)
        self.context_tokens -= member.stored
        request.emitted = request.output_tokens - member.left
        return member.blocks

    @property
    def tokens_due(self) -> int:
        """Tokens that the next step emits."""
        return sum(member.emissions[-1] for member in self._members.values())

    @property
    def due(self) -> Sequence[Request]:
        """The members that need blocks, each as often as it needs one."""
        return [
            member.request
            for member in self._members.values()
            for _ in range(member.blocks_for(self.width) - member.blocks)
        ]

    @property
    def blocks_due(self) -> int:
        """Blocks that the next step needs, drafts included."""
        members = self._members.values()
        return sum(member.blocks_for(self.width) - member.blocks for member in members)

    def blocks_due_in(self, steps: int) -> int:
        """Blocks that the next step needs; steps differ, so they are taken one by one."""
        assert steps == 1
        return self.blocks_due

    def steps_to_finish(self) -> int:
        """Steps that can be taken at once."""
        return 1

    def advance(self, steps: int = 1) -> list[tuple[Request, int]]:
        """Take a step.

        Returns:
            The members that emitted their last token, now removed, and the blocks each held.
        """
        assert steps == 1
        self.step += 1
        for member in self._members.values():
            member.blocks = member.blocks_for(self.width)
            emitted = member.emissions.pop()
            member.stored += emitted
            member.left -= emitted
            self.context_tokens += emitted
        finished = [member.request for member in self._members.values() if not member.left]
        return [(request, self.leave(request)) for request in finished]
