"""Two memory channels, and patterns of requests for them."""

from collections.abc import Callable

import numpy as np

from calibration.memory.channel import Requests, RtlMemory
from cosim.memory.channel import Timings

HBM2 = RtlMemory()
# Another shape, short queues, and times each of which can be the one that decides.
SMALL = RtlMemory(
    bank_groups=8,
    banks_per_group=2,
    row_width=4,
    col_width=3,
    data_width=37,
    queue_depth=6,
    response_depth=3,
    pass_limit=4,
    timings=Timings(
        t_rcd_rd=5, t_rcd_wr=3, t_rp=4, t_ras=9, t_rc=15, t_rrd_s=2, t_rrd_l=3, t_faw=12, t_ccd_s=1,
        t_ccd_l=3, t_rtw=6, t_wtr_s=5, t_wtr_l=8, t_rtp=3, t_wtp=7, t_rfc=20, t_refi=300,
        rl=4, wl=2, bl=1,
    ),
)  # fmt: skip
MEMORIES = {"hbm2": HBM2, "small": SMALL}
#: (1 for a write, address) of so many requests.
Items = list[tuple[int, int]]
Pattern = Callable[[RtlMemory, np.random.Generator, int], Items]


def sequential(memory: RtlMemory, rng: np.random.Generator, count: int) -> Items:
    """All addresses from the first on: written, then read."""
    half = count // 2
    return [(int(n < half), n % half) for n in range(count)]


def strided(memory: RtlMemory, rng: np.random.Generator, count: int) -> Items:
    """A stride that stays in a bank and changes its row: written, then read."""
    half, row = count // 2, memory.banks << memory.col_width
    return [(int(n < half), (n % half) * row % memory.bursts) for n in range(count)]


def random_places(memory: RtlMemory, rng: np.random.Generator, count: int) -> Items:
    """Places anywhere; every second request comes back to one that was written."""
    items: Items = []
    written: list[int] = [0]
    for _ in range(count):
        if rng.random() < 0.5:
            written.append(int(rng.integers(memory.bursts)))
            items.append((1, written[-1]))
        else:
            items.append((0, written[int(rng.integers(len(written)))]))
    return items


def alternating(memory: RtlMemory, rng: np.random.Generator, count: int) -> Items:
    """A write, then a read of what was written a while ago, in turn."""
    lag = 12
    return [(1 - n % 2, n // 2 if n % 2 == 0 else max(n // 2 - lag, 0)) for n in range(count)]


def few_rows(memory: RtlMemory, rng: np.random.Generator, count: int) -> Items:
    """Two rows of two banks in two groups, in any order and direction."""
    columns = 1 << memory.col_width
    draws = rng.integers([2, 2, 2, 2, columns], size=(count, 5)).tolist()
    return [(write, memory.address(row, bank, g, col)) for write, row, bank, g, col in draws]


def same_address(memory: RtlMemory, rng: np.random.Generator, count: int) -> Items:
    """Three addresses of one bank, two of them in one row."""
    places = [memory.address(1), memory.address(1, column=1), memory.address(2)]
    return [(int(rng.integers(2)), places[int(rng.integers(3))]) for _ in range(count)]


PATTERNS: dict[str, Pattern] = {
    p.__name__: p for p in (sequential, strided, random_places, alternating, few_rows, same_address)
}


def requests_of(name: str, memory: RtlMemory, count: int = 600, seed: int = 3) -> Requests:
    """A pattern by its name, offered as fast as it is taken but for a pause now and then."""
    rng = np.random.default_rng(seed)
    items = PATTERNS[name](memory, rng, count)
    cycles = np.cumsum(rng.integers(0, 40, count) * (rng.random(count) < 0.05)).tolist()
    return Requests.of((cycle, *item) for cycle, item in zip(cycles, items, strict=True))
