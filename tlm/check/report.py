"""What a static check of a program finds."""

from dataclasses import dataclass

from tlm.chips import Chip

Tile = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold.

    Attributes:
        rule: ``token``, ``cycle``, ``order``, ``memory`` or ``routing``.
        message: One line for people.
        operation: Number of the operation, in program order; None if it is the program's.
        label: Its label.
        tile: Row and column of the first tile concerned.
        token: The token concerned.
    """

    rule: str
    message: str
    operation: int | None = None
    label: str | None = None
    tile: Tile | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class TileLimits:
    """What a tile and its router hold; None: no limit.

    Attributes:
        tile_bytes: Local memory of a tile.
        routing_paths: Distinct routes that a router can hold.
    """

    tile_bytes: int | None = None
    routing_paths: int | None = None


def chip_limits(chip: Chip) -> TileLimits:
    """Limits of a chip's tiles."""
    return TileLimits(int(chip.tile.sram_kib * 1024), chip.limits.routing_paths)


@dataclass(frozen=True, slots=True)
class Parallelism:
    """P, massive parallelism.

    Attributes:
        tiles: Tiles of the grid.
        busy_share: Share of them whose matrix or vector engine works at all.
        balance: Mean over greatest number of cycles that a tile's two engines work; 0 if none does.
        products: Most operations of a tile's matrix engine.
    """

    tiles: int
    busy_share: float
    balance: float
    products: int


@dataclass(frozen=True, slots=True)
class Latency:
    """L, latency of communication.

    Attributes:
        transfers: Operations that move data, summed over their sources (of a reduction: roots).
        longest_hops: Hops of the longest transfer.
        longest_operation: Number of the first operation that has one; None without transfers.
        chain_hops: Hops along the longest chain of transfers that wait for each other.
        chain_stages: Tiles on that chain (of equal chains the most) that receive a message and
            then send one: the routing stages.
    """

    transfers: int
    longest_hops: int
    longest_operation: int | None
    chain_hops: int
    chain_stages: int


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """M, local memory.

    Attributes:
        peak_bytes: Of the fullest tile: all buffers that operations touch there.
        tile: That tile.
        limit_bytes: What a tile has; None: unknown.
    """

    peak_bytes: int
    tile: Tile
    limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class Routing:
    """R, routing resources.

    Attributes:
        most_paths: Distinct routes through the router that has most; routes are told apart by
            their source and destinations, and those that begin or end there count.
        at_least: Whether there may be more: some tile has more destinations than are told apart.
        tile: That router's tile.
        limit_paths: What a router can hold; None: no limit.
    """

    most_paths: int
    at_least: bool
    tile: Tile
    limit_paths: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """The four properties of a program on a chip, and what does not hold.

    Of each token one finding is listed, the first that may hang if one does; ``more`` counts the
    operations with others.
    """

    operations: int
    parallelism: Parallelism
    latency: Latency
    memory: MemoryUse
    routing: Routing
    findings: tuple[Finding, ...]
    more: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.findings
