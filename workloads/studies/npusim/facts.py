"""What the paper prints and plots, and the cases that predict it. Nothing of it is fitted.

Seconds and ratios are the authors' plotted values. What the paper leaves open has readings, each
with rows of its own; a reading's name says what was taken.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from workloads.studies.npusim.cases import PromptCase

#: Bytes a cycle of a link, at 500 MHz. Published inputs of other figures have 8 and 160 GB/s; with
#: 1 GB/s the bytes of table 2 take the seconds of figure 9.
LINKS = {"noc1": 2, "noc8": 16, "noc160": 320}
#: Sums of every product everywhere, as table 2 has it; or each part where it comes together, which
#: is what the next product by K begins with.
SUMS = {"all-reduce": False, "reduce-scatter": True}

# Figure 9 ----------------------------------------------------------------------------------------

LENGTHS = (256, 512, 1024, 2048)
PARTITIONS = {"K": "k", "MN": "mn", "MNK": "2d"}
#: Seconds by model and partition, at `LENGTHS`. By the sizes of their products the models that the
#: paper calls Qwen3-4B and 8B are Qwen3-1.7B and 4B.
SECONDS = {
    ("qwen3-1.7b", "K"): (0.53, 0.94, 1.82, 4.50),
    ("qwen3-1.7b", "MN"): (3.17, 3.37, 3.73, 4.80),
    ("qwen3-1.7b", "MNK"): (2.15, 2.35, 2.79, 3.93),
    ("qwen3-4b", "K"): (0.84, 1.54, 2.98, 7.28),
    ("qwen3-4b", "MN"): (6.10, 6.43, 7.03, 8.72),
    ("qwen3-4b", "MNK"): (4.15, 4.48, 5.25, 6.90),
}
MODELS = ("qwen3-1.7b", "qwen3-4b")
_FOUR, _RING = 4, "ring"
#: Published inputs: 16 layers, and 20 tokens that come out one by one after the prompt. Their links
#: and array are not said: those of other figures, and the least and the most of table 3.
_INPUTS = {
    f"inputs-A{side}": (
        f"tile.matrix.rows={side}",
        f"tile.matrix.cols={side}",
        "tile.matrix.tiles=load-stream-drain",
        "tile.matrix.lane_alus=0",
    )
    for side in (32, 128)
}
_LAYERS, _OUTPUTS = 16, 20


def partition_case(model: str, tokens: int, partition: str, reading: str) -> PromptCase:
    """A prompt of figure 9: four cores, which lie in a ring."""
    cut = PARTITIONS[partition]
    if reading in _INPUTS:
        case = PromptCase(model, tokens, _FOUR, cut, _RING, LINKS["noc8"])
        return case._replace(outputs=_OUTPUTS, layers=_LAYERS, more=_INPUTS[reading])
    link, _, sums = reading.partition("-")
    return PromptCase(model, tokens, _FOUR, cut, _RING, LINKS[link], scattered=SUMS[sums])


# Figure 10 ---------------------------------------------------------------------------------------

PLACEMENTS = ("linear", "interleave", "mesh", "ring")
#: How much faster than interleaved a placement is: lowest and highest of the plotted values.
FASTER = {
    (4, "linear"): (1.00, 1.03), (4, "mesh"): (1.17, 1.18), (4, "ring"): (1.17, 1.18),
    (16, "linear"): (1.14, 1.18), (16, "mesh"): (1.22, 1.25), (16, "ring"): (1.29, 1.32),
}  # fmt: skip
#: Columns of the chip: of 64 cores, as the published inputs have them, and of 256, as the text.
CHIPS = {4: (8,), 16: (8, 16)}
_PLACED_MODEL, _PLACED_TOKENS = "qwen3-4b", 1024
#: Cycles of a router, which are not published: as in the shipped profile, and as routers with a
#: pipeline of route, grant and switch have them.
HOPS = {"hop1": 1, "hop3": 3}


class Group(NamedTuple):
    """What figure 10 leaves open of a group of cores."""

    cores: int
    chip_cols: int
    partition: str
    link: str
    hop: str

    @property
    def name(self) -> str:
        """Of a row."""
        chip = f"{self.chip_cols**2}cores"
        return f"TP{self.cores}-{chip}-{self.partition}-{self.link}-{self.hop}"


def groups(*, quick: bool) -> Iterator[Group]:
    """All readings; ``quick`` leaves out links of 160 GB/s."""
    links = ("noc8",) if quick else ("noc8", "noc160")
    for cores, chips in CHIPS.items():
        yield from (Group(cores, *each) for each in product(chips, PARTITIONS, links, HOPS))


def placement_case(group: Group, placement: str, channel: str) -> PromptCase:
    """A prompt of figure 10."""
    return PromptCase(
        _PLACED_MODEL,
        _PLACED_TOKENS,
        group.cores,
        PARTITIONS[group.partition],
        placement,
        LINKS[group.link],
        channel,
        chip_cols=group.chip_cols,
        more=(f"noc.hop_cycles={HOPS[group.hop]}",),
    )


def figure_9_readings(*, quick: bool) -> list[str]:
    """Links and sums, and published inputs; ``quick`` has links of 8 GB/s alone."""
    links = ("noc8",) if quick else LINKS
    return [*(f"{link}-{sums}" for link in links for sums in SUMS), *_INPUTS]


# Table 2 -----------------------------------------------------------------------------------------

#: Products whose traffic is told: M, N, K. Their sizes are multiples of 16.
PRODUCTS = ((256, 2048, 2048), (2048, 2048, 2048))


def printed_elements(partition: str, shape: tuple[int, int, int], cores: tuple[int, int]) -> float:
    """Total communication of a core as table 2 prints it, in elements; R x C ``cores``."""
    size_m, size_n, size_k = shape
    rows, cols = cores
    tiles = rows * cols
    if partition == "input":
        return 0.0
    if partition == "mn":
        return (tiles - 1) / tiles * size_k * size_n
    if partition == "k":
        return 2 * (tiles - 1) / tiles * size_m * size_n
    sums = 2 * (cols - 1) / cols * size_m * size_n / cols**2
    return (rows - 1) * (sums + size_k * size_n / (cols * rows))


# Table 3 -----------------------------------------------------------------------------------------


class Range(NamedTuple):
    """A parameter of the configuration space.

    Attributes:
        low: Its least value.
        high: Its greatest.
        unit: Of both.
    """

    low: float
    high: float
    unit: str


CONFIGURATIONS = {
    "npusim-large": {
        "cores": Range(64, 64, "cores"),
        "clock": Range(500, 500, "MHz"),
        "array_side": Range(32, 128, "elements"),
        "vector_lanes": Range(32, 128, "lanes of 64"),
        "sram": Range(8, 128, "MB"),
        "noc": Range(16, 480, "GB/s"),
        "hbm": Range(30, 480, "GB/s a core"),
    },
    "npusim-small": {
        "cores": Range(256, 256, "cores"),
        "clock": Range(500, 500, "MHz"),
        "array_side": Range(32, 64, "elements"),
        "vector_lanes": Range(32, 64, "lanes of 64"),
        "sram": Range(8, 48, "MB"),
        "noc": Range(8, 160, "GB/s"),
        "hbm": Range(15, 60, "GB/s a core"),
    },
}
