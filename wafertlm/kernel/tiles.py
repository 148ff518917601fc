"""Kernels on tiles in Verilog: whole ones, or their products alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from cosim.errors import SimulationError
from cosim.tiles.blocks import decode, encode
from cosim.tiles.descriptors import Descriptor
from cosim.tiles.functional import held_equal
from cosim.tiles.image import TileImage
from cosim.tiles.lowering import LoweredProgram, lower
from cosim.tiles.machine import TileMachine, TileRun
from cosim.tiles.model import TileModel, tile_model
from cosim.verilog import EDGE_FILES, TILE_SOURCES
from tlm.calibrated import combined_hash, source_hashes
from tlm.chips import Chip
from tlm.engines.outcome import Outcome
from tlm.program import Program
from tlm.program.arithmetic import wrap
from tlm.program.data import Gemm, buffer_names
from tlm.program.functional import TileBlocks
from tlm.program.operations import COMPUTING, Engine, Tile
from tlm.tiles.jobs import matrix_jobs
from tlm.tiles.layout import place_buffers
from tlm.trace import EngineSpan, Recorder
from wafertlm.kernel.setup import Execution, Setup
from wafertlm.verilog import failing_checks

_SEED = 1
#: Tiles of the mesh on one of which products run alone.
_ALONE = (2, 2)


def run_on_tiles(setup: Setup, execution: Execution) -> tuple[Outcome, dict[str, Any]]:
    """Run a kernel on tiles in Verilog, on random blocks, and say which ones these were.

    All buffers of all tiles are held against those of the functional interpreter, bit for bit.

    Raises:
        InputError: for a program that the tiles cannot run.
        CheckFailedError: if the Verilog hangs, stops, or computes something else; says where.
    """
    program, waves = setup.program, execution.waves
    memory = setup.place.offchip is not None
    model = tile_model(setup.chip, setup.span, waves=waves is not None, memory=memory)
    lowered = lower(program, model)  # refuses what does not fit before anything is built
    with _machine(model, execution) as machine:
        run = held_equal(program, lowered, TileBlocks(program, _SEED), machine)
    if execution.recorder is not None:
        _tell(execution.recorder, lowered, model.cols, run)
    return _outcome(program, run), _provenance(model, run.cycles)


def rtl_products(program: Program, machine: TileMachine) -> Callable[[Gemm], int]:
    """Cycles of a program's products, each run by itself on a tile in Verilog and checked there.

    Args:
        program: Whose products.
        machine: `lone_tiles` of the chip.

    Returns:
        A function that raises SimulationError if the Verilog stops or computes something else.
    """
    model, memory = machine.model, TileBlocks(program, _SEED)
    places = place_buffers(program, model.operand_bits, model.banks, model.memory_words)

    @cache
    def cycles(product: Gemm) -> int:
        jobs = matrix_jobs(product, places, model.array_size)
        blocks = {name: memory[name][0, 0] for name in buffer_names(product)}
        words = {places[name].address: encode(places[name], blocks[name]) for name in blocks}
        queue = {Engine.MATRIX: [Descriptor(job) for job in jobs]}
        run = machine.run({0: TileImage(queue, memory=words)})
        found = decode(c := places[product.c], machine.read(0, c.address, c.words))
        kept = blocks[product.c] if product.accumulate else 0
        wanted = wrap(blocks[product.a] @ blocks[product.b] + kept, c.buffer.bits)
        if (found != wanted).any():
            raise SimulationError(f"{model.name}: {product}: not the product of its operands")
        return sum(span.cycles for span in run.spans)

    return cycles


@contextmanager
def lone_tiles(chip: Chip, execution: Execution) -> Iterator[TileMachine]:
    """A few tiles of a chip in Verilog, without a wave.

    Raises:
        CheckFailedError: if the Verilog cannot be built, hangs, stops, or computes something else.
    """
    with _machine(tile_model(chip, _ALONE), replace(execution, waves=None)) as machine:
        yield machine


@contextmanager
def _machine(model: TileModel, execution: Execution) -> Iterator[TileMachine]:
    with failing_checks():
        with execution.building():
            model.build()
        with TileMachine(model, waves=execution.waves) as machine:
            yield machine


def _outcome(program: Program, run: TileRun) -> Outcome:
    shape = (program.rows, program.cols)
    ends = np.zeros((len(Engine), *shape), dtype=np.int64)
    arrived, busy, computed = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    computed_until = np.zeros(shape, dtype=np.int64)
    for span in sorted(run.spans, key=lambda span: span.start_cycle):
        tile, end = divmod(span.tile, program.cols), span.end_cycle + 1
        ends[span.engine][tile] = max(ends[span.engine][tile], end)
        if span.engine is Engine.MATRIX:
            busy[tile] += span.cycles
        if span.engine in COMPUTING:
            computed[tile] += max(0, end - max(span.start_cycle, computed_until[tile]))
            computed_until[tile] = max(end, computed_until[tile])
    for number, cycle in run.arrivals:
        arrived[divmod(number, program.cols)] = cycle + 1
    last = divmod(int(np.maximum(ends.max(axis=0), arrived).argmax()), program.cols)
    arrived[last] = max(arrived[last], run.cycles)  # words that come after the last token
    return Outcome(ends, arrived, busy, computed)


def _tell(recorder: Recorder, lowered: LoweredProgram, cols: int, run: TileRun) -> None:
    """Operations as a recorder takes them."""
    for span in run.spans:
        tile: Tile = divmod(span.tile, cols)
        number = lowered.operations[span.tile, span.engine][span.number]
        lasted = span.start_cycle, span.end_cycle + 1
        recorder.operation(EngineSpan(number, span.label, span.engine, tile, *lasted))


def _provenance(model: TileModel, cycles: int) -> dict[str, Any]:
    rtl_hash = combined_hash(source_hashes((*TILE_SOURCES, *(EDGE_FILES if model.memory else ()))))
    return {"mesh": model.name, "rtl_hash": rtl_hash, "clocked_cycles": cycles}
