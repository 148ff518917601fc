"""A request on its way through the engine."""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Request:
    """A request and its progress.

    ``to_prefill`` is how many tokens must be computed before the next one can be emitted: the
    prompt and, after a preemption, everything emitted so far (emitted tokens are never withdrawn,
    only their keys and values are computed again).
    """

    index: int
    arrival_ps: int
    prompt_tokens: int
    output_tokens: int
    to_prefill: int = 0
    prefilled: int = 0
    emitted: int = 0
    joined_step: int = 0
    start_ps: int = -1
    first_token_ps: int = -1
    last_token_ps: int = -1
    late_token: bool = False

    def __post_init__(self) -> None:
        """A new request has its prompt to compute."""
        self.to_prefill = self.prompt_tokens

    @property
    def left_to_prefill(self) -> int:
        """Tokens still to be computed before the next one is emitted."""
        return self.to_prefill - self.prefilled

    def restart(self) -> None:
        """Forget what was computed; all but the emission starts over."""
        self.prefilled = 0
        self.to_prefill = self.prompt_tokens + self.emitted
