"""The link over which keys and values go from one pool to another."""

from dataclasses import dataclass
from typing import Protocol

from tlm.errors import InputError
from workloads.serving.load.traces import MAX_SPAN_S, PS_PER_S, within_time


class Carrier(Protocol):
    """What keys and values go over."""

    @property
    def busy_ps(self) -> int:
        """Time in which it, or its busiest part, carried anything."""
        ...

    @property
    def carried_bytes(self) -> int:
        """What it carried."""
        ...

    def send(self, size_bytes: int, now_ps: int, way: tuple[int, int]) -> int:
        """Start a transfer; returns when its last byte arrives.

        Args:
            size_bytes: Of the keys and values.
            now_ps: From when on.
            way: Numbers of the replicas for prompts and for decoding.
        """
        ...


@dataclass(slots=True)
class Link:
    """Carries one request's keys and values after the other.

    Attributes:
        bytes_per_s: Its bandwidth.
        latency_s: Time until the first byte arrives; transfers follow each other without it.
        free_ps: When the last transfer has left the sender.
        busy_ps: Time in which it carried anything.
        carried_bytes: What it carried.
    """

    bytes_per_s: float
    latency_s: float = 0.0
    free_ps: int = 0
    busy_ps: int = 0
    carried_bytes: int = 0

    def __post_init__(self) -> None:
        """Refuse a link that cannot be.

        Raises:
            InputError: if the bandwidth is below 1, or the latency negative or over 100 days.
        """
        if not 1 <= self.bytes_per_s < float("inf"):
            raise InputError(
                f"link bandwidth: found {self.bytes_per_s} bytes/s; allowed: 1 or more and finite"
            )
        if not 0 <= self.latency_s <= MAX_SPAN_S:
            raise InputError(
                f"link latency: found {self.latency_s} s; "
                f"allowed: 0 to {MAX_SPAN_S:,.0f} (100 days)"
            )

    def send(self, size_bytes: int, now_ps: int, way: tuple[int, int] = (0, 0)) -> int:
        """Start a transfer as soon as the link is free; returns when its last byte arrives.

        All replicas of pools, which ``way`` tells apart, share the link.

        Raises:
            InputError: if that is past all simulated time.
        """
        takes_ps = max(1, round(size_bytes / self.bytes_per_s * PS_PER_S))
        self.free_ps = max(self.free_ps, now_ps) + takes_ps
        self.busy_ps += takes_ps
        self.carried_bytes += size_bytes
        return within_time(self.free_ps + round(self.latency_s * PS_PER_S))
