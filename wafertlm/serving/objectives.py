"""Objectives that no request can attain: how short iterations can be at the least."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from wafertlm.serving.service import Service
from workloads.serving.price.cost import Batch


class Shortest(NamedTuple):
    """The shortest iterations of a load: one request alone, and that with the shortest prompt.

    Attributes:
        prompt_tokens: Of that request.
        prompt_s: Its prompt, in one iteration.
        decode_ms: One token, decoded behind the prompt.
    """

    prompt_tokens: int
    prompt_s: float
    decode_ms: float

    @property
    def told(self) -> str:
        """Both in words."""
        return (
            f"the shortest iterations, of one request with {self.prompt_tokens} tokens: prompt "
            f"{self.prompt_s:.3g} s, decoding {self.decode_ms:.3g} ms"
        )


def shortest_iterations(service: Service) -> Shortest:
    """The shortest iterations of a service's load.

    Raises:
        InputError: if the load cannot be used.
    """
    tokens = int(service.load.requests(service.options.seed).prompt_tokens.min())
    prefill, decode = service.pools[0], service.pools[-1]
    return Shortest(
        tokens,
        prefill.cost(Batch(((tokens, 0),), 0, 0, 1)).seconds,
        1e3 * decode.cost(Batch((), 1, tokens, 1)).seconds,
    )


def missed(service: Service, figures: Mapping[str, Any]) -> list[str]:
    """Notes on objectives that no request attains.

    Args:
        service: What ran.
        figures: What came of it.
    """
    parts = figures["slo_attainment_by_part"]
    never = [f"--slo-{name}" for name, share in parts.items() if share == 0]
    if not never:
        return []
    return [
        f"objectives: no request attains {' and '.join(never)}; {shortest_iterations(service).told}"
    ]
