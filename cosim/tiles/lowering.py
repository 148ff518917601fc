"""Programs on tiles in Verilog: descriptors for every queue, blocks in every scratchpad."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from cosim.tiles.blocks import Block, decode, encode
from cosim.tiles.descriptors import (
    BURST_WORDS,
    CREDITS,
    TRANSFER_TOKENS,
    Credit,
    Descriptor,
    Job,
    Transfer,
    TransferKind,
    Wait,
    Words,
    memory_request,
)
from cosim.tiles.image import TileImage
from cosim.tiles.machine import TileMachine, TileRun
from cosim.tiles.model import TileModel
from cosim.tiles.tokens import TokenPlan, plan_tokens
from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.offchip.edge import numbers_at_channels
from tlm.program import OffChip, Program, Reduce
from tlm.program.data import Buffer, Gemm, Vector
from tlm.program.functional import TileBlocks
from tlm.program.operations import Engine, Tile
from tlm.program.steps import Step, TransferStep, WorkStep, expand
from tlm.tiles.jobs import matrix_jobs, vector_job
from tlm.tiles.layout import SUM_BITS, WORD_BITS, BufferPlace, Order, place_buffers, used_words

_LEAST_WAIT_CYCLES = 2


class EdgeBlocks:
    """Where blocks lie in the memory channels below the columns of tiles.

    There where models have them (`tlm.offchip.edge.Blocks`).

    Args:
        program: Whose blocks.
        model: The tiles; a channel a column.
        places: The buffers; those not in the tile are laid out.

    Raises:
        InputError: if a channel does not hold them.
    """

    def __init__(self, program: Program, model: TileModel, places: dict[str, BufferPlace]) -> None:
        columns = [range(col, col + 1) for col in range(model.cols)]
        self._numbers = numbers_at_channels(program, columns)
        self._places = {name: place for name, place in places.items() if not place.in_tile}
        self._offsets: dict[str, int] = {}
        self._tile_words = 0
        for name, place in self._places.items():
            self._offsets[name] = self._tile_words
            self._tile_words += ceil_div(place.sent_words, BURST_WORDS) * BURST_WORDS
        needed = self._tile_words * (int(self._numbers.max()) + 1)
        if needed > model.channel_words:
            raise InputError(
                f"off-chip buffers: found {needed} words of a memory channel; "
                f"allowed: {model.channel_words}"
            )

    def address(self, tile: Tile, name: str) -> int:
        """First word of a tile's block."""
        return int(self._numbers[tile]) * self._tile_words + self._offsets[name]

    def blocks(self) -> Iterator[tuple[Tile, str, BufferPlace]]:
        """All blocks of all tiles that have some."""
        rows, cols = np.nonzero(np.diff(self._numbers, axis=0, prepend=-1))
        for tile in zip(rows.tolist(), cols.tolist(), strict=True):
            for name, place in self._places.items():
                yield tile, name, place


@dataclass(slots=True)
class LoweredProgram:
    """A program as the tiles of a model run it.

    Attributes:
        images: Queues and tokens of every tile, by its number; their memories are empty.
        places: Where the buffers lie, the same in all tiles.
        operations: By tile and engine, the number of each descriptor's operation.
        edge: Where blocks in off-chip memory lie, if the program loads or stores any.
    """

    images: dict[int, TileImage]
    places: dict[str, BufferPlace]
    operations: dict[tuple[int, Engine], list[int]] = field(default_factory=dict)
    edge: EdgeBlocks | None = None


def run_lowered(lowered: LoweredProgram, memory: TileBlocks, machine: TileMachine) -> TileRun:
    """Run a program on tiles of its model, on the blocks in ``memory``, which then has its results.

    Raises:
        HangError: if it stands still.
        SimulationError: if the Verilog stops.
    """
    cols = machine.model.cols
    # Parts come and go with what they are parts of, whose lines may have gaps between them.
    whole = {
        name: place
        for name, place in lowered.places.items()
        if place.in_tile and place.buffer.within is None
    }
    for tile, image in lowered.images.items():
        at = divmod(tile, cols)
        image.memory |= {
            place.address: encode(place, memory[name][at]) for name, place in whole.items()
        }
    edge = lowered.edge
    if edge is not None:
        for at, name, place in edge.blocks():
            machine.write_memory(at[1], edge.address(at, name), edge_words(place, memory[name][at]))
    run = machine.run(lowered.images)
    for tile in lowered.images:
        at = divmod(tile, cols)
        for name, place in whole.items():
            memory[name][at] = decode(place, machine.read(tile, place.address, place.words))
    if edge is not None:
        for at, name, place in edge.blocks():
            words = machine.read_memory(at[1], edge.address(at, name), place.sent_words)
            padding = np.zeros(place.words - len(words), np.uint64)
            memory[name][at] = decode(place, np.concatenate([words, padding]))
    return run


def edge_words(place: BufferPlace, block: Block) -> Words:
    """The words of a block in a memory channel: those that transfers carry."""
    return encode(place, block)[: place.sent_words]


def lower(program: Program, model: TileModel) -> LoweredProgram:
    """Descriptors and places of a program.

    A transfer is as long as the words of its block: those of operands fill the array's panels, and
    a column has a word a row. Without a block it is as long as the operation says.

    Raises:
        InputError: for a program that the tiles cannot run, naming what and where.
    """
    if (program.rows, program.cols) != (model.tile_rows, model.cols):
        raise InputError(
            f"program: found {program.rows}x{program.cols} tiles; "
            f"allowed: {model.tile_rows}x{model.cols}, those of the model"
        )
    places = place_buffers(program, model.operand_bits, model.banks, model.memory_words)
    if used_words(places) > model.memory_words:
        raise InputError(
            f"buffers: found {used_words(places)} words of a tile's scratchpad; "
            f"allowed: {model.memory_words}"
        )
    steps = list(expand(program))
    tokens = plan_tokens(program, steps)
    images = {tile: TileImage() for tile in range(program.rows * program.cols)}
    edge = (
        None
        if all(place.in_tile for place in places.values())
        else EdgeBlocks(program, model, places)
    )
    lowered = LoweredProgram(images, places, edge=edge)
    jobs = _Jobs(model, places, edge)
    for index, step in enumerate(steps):
        tile = step.tile[0] * model.cols + step.tile[1]
        descriptors = list(_descriptors(index, step, jobs, tokens))
        lowered.images[tile].queues.setdefault(step.engine, []).extend(descriptors)
        numbers = lowered.operations.setdefault((tile, step.engine), [])
        numbers += [step.number] * len(descriptors)
    for tile, image in images.items():
        image.memory = jobs.requests(tile)
    for at, units in tokens.initial.items():
        images[at[0] * model.cols + at[1]].tokens = units
    return lowered


def _descriptors(index: int, step: Step, jobs: "_Jobs", tokens: TokenPlan) -> Iterator[Descriptor]:
    """Of one step: the first of its jobs takes, the last one gives, and waits give what is left."""
    own = jobs.of(step, tokens.arrivals[index])
    credits = [Credit(row, col, token) for (row, col), token in tokens.credits[index]]
    groups = [tuple(credits[n : n + CREDITS]) for n in range(0, len(credits), CREDITS)] or [()]
    own += [Wait(_LEAST_WAIT_CYCLES)] * (len(groups) - 1)
    ends = len(own) - len(groups)
    for place, job in enumerate(own):
        yield Descriptor(
            job,
            takes=tokens.takes[index] if place == 0 else frozenset(),
            gives=tokens.local[index] if place == ends else frozenset(),
            credits=groups[place - ends] if place >= ends else (),
            label=step.operation.label,
        )


class _Jobs:
    """Jobs of steps."""

    def __init__(
        self, model: TileModel, places: dict[str, BufferPlace], edge: EdgeBlocks | None
    ) -> None:
        self._model = model
        self._places = places
        self._edge = edge
        self._spare = used_words(places)  # where words without a buffer come from and go to
        self._spare_words = 0  # of the longest transfer of such words so far
        self._requests: dict[Tile, list[int]] = {}

    def requests(self, tile: int) -> dict[int, Words]:
        """Words of requests to memory nodes, by their address; the last of the scratchpad."""
        words = self._requests.get(divmod(tile, self._model.cols), [])
        free = self._model.memory_words - self._spare - self._spare_words
        if len(words) > free:
            raise InputError(
                f"tile {tile}: found {len(words)} words of requests; allowed: {free}, the words of "
                "a scratchpad that neither a buffer nor a transfer has"
            )
        last = self._model.memory_words - 1
        return {last - n: np.array([word], dtype=np.uint64) for n, word in enumerate(words)}

    def of(self, step: Step, arrivals: tuple[int, ...]) -> list[Job]:
        """The jobs of a step, one after the other."""
        if isinstance(step, TransferStep):
            if isinstance(step.operation, OffChip):
                return self._offchip(step, step.operation, arrivals)
            return [self._transfer(step, arrivals)]
        assert isinstance(step, WorkStep)
        task = getattr(step.operation, "task", None)
        if isinstance(task, Gemm):
            _check_product(task, self._places, self._model.array_size)
            return [*matrix_jobs(task, self._places, self._model.array_size)]
        if isinstance(task, Vector):
            _check_pass(task, self._places)
            return [vector_job(task, self._places)]
        return [Wait(max(step.cycles, _LEAST_WAIT_CYCLES))]

    def _transfer(self, step: TransferStep, arrivals: tuple[int, ...]) -> Transfer:
        operation = step.operation
        source, target = getattr(operation, "source", None), getattr(operation, "target", None)
        if len(arrivals) > TRANSFER_TOKENS:
            raise InputError(
                f"operation {step.number}: found {len(arrivals)} tokens on arrival; "
                f"allowed: at most {TRANSFER_TOKENS} of a transfer"
            )
        kind = TransferKind.UNICAST if len(step.members) == 1 else TransferKind.MULTICAST
        row, col = step.members.rows[0], step.members.cols[0]
        carry = True
        if step.root is not None and not isinstance(operation, Reduce):
            raise InputError(
                f"{operation.called(step.number)}: allowed on tiles in Verilog: Send, Multicast, "
                "Reduce, Load, Store, Work, and relays as messages (tlm.program.relays)"
            )
        if isinstance(operation, Reduce):
            if operation.neutral:
                raise InputError(
                    f"operation {step.number}: neutral: found {list(operation.neutral)}; allowed: "
                    "none, as tiles in Verilog contribute what is in their scratchpads"
                )
            assert step.root is not None
            kind = TransferKind.SUM if operation.operation == "sum" else TransferKind.MAXIMUM
            row, col = step.root
            carry = len(step.arrivals) > 0
        here = self._spare_place(step) if source is None else self._places[source]
        there = self._spare_place(step) if target is None else self._places[target]
        rows, words = here.sent
        return Transfer(
            kind, words, here.address, there.address, rows=rows, source_row=here.row_words,
            target_row=there.row_words, row=row, col=col, row_mask=_mask(step.members.rows),
            col_mask=_mask(step.members.cols), tokens=arrivals, carry=carry,
        )  # fmt: skip

    def _offchip(
        self, step: TransferStep, operation: OffChip, arrivals: tuple[int, ...]
    ) -> list[Job]:
        """A request to the node below the column; of a store, the block before it."""
        if self._edge is None or not self._model.memory:
            raise InputError(
                f"operation {step.number}: found a load or store; allowed with memory channels, of "
                "buffers"
            )
        loads = operation.loads
        here = self._places[(operation.target if loads else operation.source) or ""]
        rows, words = here.sent
        there, edge_row = self._edge.address(step.tile, operation.block), self._model.rows - 1
        request = memory_request(there, rows * words, *step.tile, loads=loads)
        own = self._requests.setdefault(step.tile, [])
        if request not in own:
            own.append(request)
        place = self._model.memory_words - 1 - own.index(request)
        if rows > 1 and here.row_words != words:
            raise InputError(
                f"operation {step.number}: found rows of {words} words, {here.row_words} apart; "
                "allowed: a block without gaps"
            )
        # The word that a block is kept comes where its request was, which is the same.
        asks = Transfer(
            TransferKind.UNICAST, 1, place, here.address if loads else place, row=edge_row,
            col=step.tile[1], tokens=arrivals, request=True,
        )  # fmt: skip
        if loads:
            return [asks]
        block = Transfer(
            TransferKind.UNICAST, rows * words, here.address, there, row=edge_row,
            col=step.tile[1],
        )  # fmt: skip
        return [block, asks]

    def _spare_place(self, step: TransferStep) -> BufferPlace:
        """Where the words of a transfer without a block come from, and go to."""
        left = self._model.memory_words - self._spare
        if step.flits > left:
            raise InputError(
                f"operation {step.number}: found a transfer of {step.flits} flits; allowed: "
                f"{left}, the words of a scratchpad that no buffer has"
            )
        self._spare_words = max(self._spare_words, step.flits)
        elements = step.flits * WORD_BITS // SUM_BITS
        block = Buffer(1, elements, SUM_BITS)
        return BufferPlace(block, Order.SUMS, self._spare, block.shape, step.flits)


def _check_product(task: Gemm, places: dict[str, BufferPlace], size: int) -> None:
    a = places[task.a]
    if a.order is not Order.LEFT and a.buffer.columns % size:
        raise InputError(
            f"buffer '{task.a}': found rows of {a.buffer.columns} elements; allowed: multiples of "
            f"{size} for a product of what the vector engine has made"
        )


def _check_pass(task: Vector, places: dict[str, BufferPlace]) -> None:
    a, out = places[task.a], places[task.out]
    elements = WORD_BITS // SUM_BITS
    if a.order is not Order.COLUMN and a.buffer.columns % elements:
        raise InputError(
            f"buffer '{task.a}': found rows of {a.buffer.columns} elements; allowed: multiples "
            f"of {elements}, or 1, for the vector engine"
        )
    packed = out.order is Order.PACKED
    quantizes = task.operation in ("scale", "quantize")
    if packed and (not quantizes or out.padded != out.buffer.shape):
        raise InputError(
            f"buffer '{task.out}': found '{task.operation}' of rows of {out.buffer.columns}; "
            f"allowed: quantize, of multiples of {WORD_BITS // out.buffer.bits}"
        )


def _mask(indices: range) -> int:
    return int(np.bitwise_or.reduce([1 << index for index in indices]))
