"""Groups of a chip's tiles: tensor-parallel groups, stages of a pipeline, replicas and pools.

A group is a rectangle of as many tiles as share a layer. A pipeline is some groups one behind
another, each with some of the layers; replicas are pipelines that serve requests apart. Groups lie
in the order of a walk over the chip, there and back row by row, so that a stage mostly hands on to
the group beside it. What is left over stands still.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tlm.chips import Chip
from tlm.errors import InputError
from workloads.machine.order import Moves, Tile, footprint, tile_order
from workloads.machine.place import Rectangle

#: How pools of prompts and of decoding lie: pipelines of prompts first, then the others; both in
#: turns; or those of prompts at both sides (NpuSim paper, section 4.3.1).
PD_PLACEMENTS = ("pp-first", "dp-first", "sides")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """How a model is dealt out to tiles.

    Attributes:
        tensor: Tiles of a group, which share each product.
        pipeline: Groups with some layers each, one behind another.
        replicas: Such pipelines; None: as many as there is room for.
        micro_batch: Most decoding requests that pass the stages together; None: a share of all for
            each stage.
        partition: Of products in a group (`workloads.kernels.gemm.partition_plan`).
        placement: Order of a group's tiles (`workloads.machine.order`).
        stage_rows: Rows of a group's tiles; None: as `footprint` has them for the placement.
        of: First part of the names of the options that say so: ``--``, or that of a pool.
    """

    tensor: int = 1
    pipeline: int = 1
    replicas: int | None = None
    micro_batch: int | None = None
    partition: str = "auto"
    placement: str = "linear"
    stage_rows: int | None = None
    of: str = "--"

    def __post_init__(self) -> None:
        """Refuse numbers below 1.

        Raises:
            InputError: naming the option.
        """
        numbers = {
            f"{self.of}tp": self.tensor,
            f"{self.of}pp": self.pipeline,
            f"{self.of}dp": self.replicas,
            "--micro-batch": self.micro_batch,
            "--stage-rows": self.stage_rows,
        }
        for name, found in numbers.items():
            if found is not None and found < 1:
                raise InputError(f"{name}: found {found}; allowed: 1 or more")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Groups of tiles, one behind another.

    Attributes:
        stages: Where each lies.
        placement: Order of the tiles of each.
    """

    stages: tuple[Rectangle, ...]
    placement: str

    @property
    def tiles(self) -> int:
        """Tiles of all groups."""
        return sum(each.rows * each.cols for each in self.stages)

    def order(self, stage: int) -> tuple[Tile, ...]:
        """The tiles of a stage on the chip, in the order of its ring."""
        where = self.stages[stage]
        inside = tile_order(self.placement, where.rows, where.cols)
        return tuple((where.row + row, where.col + col) for row, col in inside)


@dataclass(frozen=True, slots=True)
class Groups:
    """Pipelines on a chip.

    Attributes:
        chip: The chip.
        pipelines: Of each pool, or of the only one.
    """

    chip: Chip
    pipelines: tuple[tuple[Pipeline, ...], ...]

    @property
    def tiles(self) -> int:
        """Tiles of the chip."""
        return self.chip.grid.rows * self.chip.grid.cols

    @property
    def idle_tiles(self) -> int:
        """Tiles that no group has."""
        return self.tiles - sum(each.tiles for pool in self.pipelines for each in pool)


def groups_on(chip: Chip, parallel: Parallel) -> Groups:
    """Replicas on a chip.

    Raises:
        InputError: if there are not as many tiles, or a group has no such placement.
    """
    count = _count(chip, parallel, chip.grid.rows * chip.grid.cols)
    return _laid(chip, [(parallel, count)], PD_PLACEMENTS[0])


def pools_on(
    chip: Chip,
    prefill: Parallel,
    decode: Parallel,
    units: tuple[int | None, int | None],
    placement: str,
) -> Groups:
    """Pools for prompts and for decoding on a chip.

    Args:
        chip: The chip.
        prefill: How prompts are dealt out.
        decode: How decoding requests are.
        units: Tiles of each pool; None: the rest, or half.
        placement: One of `PD_PLACEMENTS`.

    Raises:
        InputError: as `groups_on`.
    """
    tiles = chip.grid.rows * chip.grid.cols
    asked = [
        each.tensor * each.pipeline * each.replicas if found is None and each.replicas else found
        for each, found in zip((prefill, decode), units, strict=True)
    ]
    first, second = asked
    if first is None:
        first = tiles // 2 if second is None else tiles - second
    if second is None:
        second = tiles - first
    if min(first, second) < 1 or first + second > tiles:
        raise InputError(
            f"--prefill-units, --decode-units: found {first} and {second} tiles; allowed on "
            f"'{chip.name}': 1 or more each, {tiles} together"
        )
    counts = [_count(chip, prefill, first), _count(chip, decode, second)]
    return _laid(chip, [*zip((prefill, decode), counts, strict=True)], placement)


def most_tensor(chip: Chip, parallel: Parallel, tiles: int, allowed: Sequence[int]) -> int:
    """The most tiles that a group may have where so many tiles are shared among all groups.

    Args:
        chip: The chip.
        parallel: Stages, replicas and placement; one replica if it does not say how many.
        tiles: To share.
        allowed: Numbers of tiles that a group may have.

    Returns:
        One of ``allowed``, or 1 if there is room for none.
    """
    groups = parallel.pipeline * (parallel.replicas or 1)
    for tensor in sorted(allowed, reverse=True):
        try:
            there = len(_walk(chip, replace(parallel, tensor=tensor)))
        except InputError:  # no such placement
            continue
        if groups * tensor <= tiles and groups <= there:
            return tensor
    return 1


def hand_over_moves(pipelines: Sequence[Pipeline], stage: int) -> Moves:
    """From the tiles of a stage to those of the next one, of all replicas at once."""
    moves = [
        pair
        for each in pipelines
        for pair in zip(each.order(stage), each.order(stage + 1), strict=True)
    ]
    return tuple(moves)


def _count(chip: Chip, parallel: Parallel, there: int) -> int:
    """Pipelines that a number of tiles is enough for, or as many as were asked for.

    Raises:
        InputError: if there are fewer.
    """
    each = parallel.tensor * parallel.pipeline
    wanted = parallel.replicas or 1
    if each * wanted > there:
        of = parallel.of
        raise InputError(
            f"{of}tp, {of}pp, {of}dp: found {parallel.tensor} x {parallel.pipeline} x {wanted} = "
            f"{each * wanted} tiles; allowed on '{chip.name}': {there} tiles together"
        )
    return parallel.replicas or there // each


def _laid(chip: Chip, pools: Sequence[tuple[Parallel, int]], placement: str) -> Groups:
    """Pipelines of some pools, a number of each."""
    free = {(row, col) for row in range(chip.grid.rows) for col in range(chip.grid.cols)}
    found: list[list[Pipeline]] = [[] for _ in pools]
    walks = [iter(_walk(chip, parallel)) for parallel, _ in pools]
    for pool in _turns([count for _, count in pools], placement):
        parallel = pools[pool][0]
        stages: list[Rectangle] = []
        while len(stages) < parallel.pipeline:
            where = next((each for each in walks[pool] if free.issuperset(_tiles(each))), None)
            if where is None:
                break
            free -= _tiles(where)
            stages.append(where)
        if len(stages) < parallel.pipeline:
            if parallel.replicas is None and found[pool]:
                free |= {tile for each in stages for tile in _tiles(each)}
                continue  # what is left over is no whole pipeline
            of = parallel.of
            raise InputError(
                f"{of}tp, {of}pp, {of}dp: found {parallel.tensor} x {parallel.pipeline} x "
                f"{pools[pool][1]}; allowed on the {chip.grid.rows}x{chip.grid.cols} tiles of "
                f"'{chip.name}' with placement {parallel.placement}: {len(found[pool])} such "
                "pipelines beside the other groups"
            )
        found[pool].append(Pipeline(tuple(stages), parallel.placement))
    return Groups(chip, tuple(map(tuple, found)))


def _turns(counts: Sequence[int], placement: str) -> Iterator[int]:
    """Whose pipeline is the next one of the walk."""
    if len(counts) == 1 or placement == "pp-first":
        for pool, count in enumerate(counts):
            yield from [pool] * count
        return
    prefill, decode = counts
    if placement == "sides":
        yield from [0] * (prefill - prefill // 2) + [1] * decode + [0] * (prefill // 2)
        return
    # Each pipeline that decodes comes behind its share of the others.
    places = [((number + 0.5) / prefill, 0) for number in range(prefill)]
    places += [((number + 1) / decode, 1) for number in range(decode)]
    yield from (pool for _, pool in sorted(places))


def _walk(chip: Chip, parallel: Parallel) -> list[Rectangle]:
    """All rectangles of a group side by side, row by row, there and back."""
    grid = chip.grid
    try:
        rows, cols = _shape(chip, parallel)
        tile_order(parallel.placement, rows, cols)
    except InputError as error:
        raise InputError(f"{parallel.of}tp {parallel.tensor}: {error}") from error
    lines = [
        [Rectangle(row, col, rows, cols) for col in range(0, grid.cols - cols + 1, cols)]
        for row in range(0, grid.rows - rows + 1, rows)
    ]
    return [
        where
        for number, line in enumerate(lines)
        for where in (line if number % 2 == 0 else reversed(line))
    ]


def _shape(chip: Chip, parallel: Parallel) -> tuple[int, int]:
    """Rows and columns of a group."""
    grid, rows = chip.grid, parallel.stage_rows
    if rows is None:
        return footprint(parallel.placement, parallel.tensor, grid.cols)
    cols = parallel.tensor // rows
    if rows * cols != parallel.tensor or rows > grid.rows or cols > grid.cols:
        raise InputError(
            f"--stage-rows: found {rows}; allowed: equal rows on {grid.rows}x{grid.cols} tiles"
        )
    return rows, cols


def _tiles(where: Rectangle) -> set[Tile]:
    rows = range(where.row, where.row + where.rows)
    cols = range(where.col, where.col + where.cols)
    return {(row, col) for row in rows for col in cols}
