"""Several DRAM channels behind one address space, taken in turn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlm.errors import check_range
from tlm.memory.dram.address_map import interleave
from tlm.memory.dram.channel import BurstRequests, ChannelRun, DramChannel

_MOST_CHANNELS = 4096


@dataclass(frozen=True, slots=True)
class InterleavedChannels:
    """Equal channels; consecutive addresses stay in one for a while and go on in the next.

    The channels know nothing of each other: a requester has a port at each of them, and offers each
    channel its requests as fast as that one takes them.

    Attributes:
        channel: What each of them is like.
        count: Channels.
        interleave_bytes: Consecutive bytes in a channel; whole bursts.
    """

    channel: DramChannel
    count: int
    interleave_bytes: int

    def __post_init__(self) -> None:
        check_range("--channels", self.count, 1, _MOST_CHANNELS)
        self.channel.device.in_bursts("--interleave-bytes", self.interleave_bytes)

    def split(self, requests: BurstRequests) -> list[BurstRequests]:
        """Requests by channel, with their addresses in it; some may be empty."""
        grain = self.interleave_bytes // self.channel.device.burst_bytes
        where, burst = interleave(requests.burst, self.count, grain)
        who = np.repeat(np.arange(len(requests.counts)), requests.counts)
        parts = []
        for number in range(self.count):
            own = where == number
            counts = np.bincount(who[own], minlength=len(requests.counts)).tolist()
            parts.append(BurstRequests(requests.tick[own], requests.write[own], burst[own], counts))
        return parts

    def simulate(
        self, requests: BurstRequests, queue_depth: int | None = None
    ) -> Sequence[tuple[BurstRequests, ChannelRun]]:
        """Run every channel that is asked for something; its requests and what became of them.

        Args:
            requests: What is asked, by addresses of all channels together.
            queue_depth: Most requests of a requester that a channel has taken and not answered.

        Raises:
            InputError: for an address that the channels do not have, or a depth below 1.
        """
        return [
            (part, self.channel.simulate(part, queue_depth))
            for part in self.split(requests)
            if len(part)
        ]
