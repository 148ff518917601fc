"""Whether a descriptor is its engine's, and what it says lies in the mesh and its scratchpads."""

from collections.abc import Iterator

from cosim.tiles.descriptors import BURST_WORDS, JOBS, Descriptor, Job, Transfer, TransferKind, Wait
from cosim.tiles.model import TileModel
from tlm.errors import InputError
from tlm.program.operations import Engine
from tlm.tiles.jobs import MatrixJob, VectorJob

_SUM_BITS = 32
_TWO_OPERANDS = ("add", "maximum", "multiply")


def check_fits(where: str, engine: Engine, descriptor: Descriptor, model: TileModel) -> None:
    """Refuse other engines' jobs, and tiles and words that are not there.

    Args:
        where: The descriptor, for messages.
        engine: Whose queue it is loaded into.
        descriptor: What is loaded.
        model: The mesh.

    Raises:
        InputError: naming the field.
    """
    job = descriptor.job
    if not isinstance(job, JOBS.get(engine, Wait) | Wait):
        own = f"{JOBS[engine].__name__}, " if engine in JOBS else ""
        raise InputError(f"{where}: job: found {type(job).__name__}; allowed: {own}Wait")
    for credit in descriptor.credits:
        _check_tile(f"{where}: credit", credit.row, credit.col, model.tile_rows, model.cols)
    stores = isinstance(job, Transfer) and _goes_to_memory(job, model) and not job.request
    for name, last in _last_words(job, model):
        words = model.channel_words if stores and name == "target" else model.memory_words
        if last >= words:
            raise InputError(
                f"{where}: {name}: found words up to {last}; allowed: up to {words - 1}"
            )
    if isinstance(job, Transfer):
        _check_goal(where, job, model)
        if _goes_to_memory(job, model):
            _check_memory(where, job)
        elif job.request:
            raise InputError(f"{where}: found a request to a tile; allowed: to a memory channel")
    if isinstance(job, VectorJob) and job.pack:
        _check_packed(where, job, _SUM_BITS // model.operand_bits)


def _last_words(job: Job, model: TileModel) -> Iterator[tuple[str, int]]:
    """The last address of everything that a job reads or writes."""
    match job:
        case Wait():
            return
        case Transfer():
            yield "source", _last(job.source, (job.rows, job.source_row), (job.words, 1))
            yield "target", _last(job.target, (job.rows, job.target_row), (job.words, 1))
        case VectorJob():
            yield "a", _last(job.a, (job.rows, job.a_row), (job.words, 1))
            if job.operation in _TWO_OPERANDS:
                yield "b", _last(job.b, (job.rows, job.b_row), (job.words, job.b_step))
            yield "out", _last(job.out, (job.rows, job.out_row), (job.out_words, 1))
        case MatrixJob():
            size, panels = model.array_size, (job.panels_m, job.panels_n)
            steps, rows = job.length, size
            if not job.output_stationary:
                steps, rows = rows, steps
            yield "a", _last(job.a, (panels[0], job.a_panel), (job.length, job.a_step))
            yield "b", _last(job.b, (panels[1], job.b_panel), (steps, 1))
            columns = panels[1] * size * _SUM_BITS // 64
            yield "c", _last(job.c, (panels[0], job.c_panel), (rows, job.c_row), (columns, 1))


def _last(first: int, *levels: tuple[int, int]) -> int:
    """The last address of nested loops, each of which has a count and a distance."""
    return first + sum((count - 1) * distance for count, distance in levels)


def _check_goal(where: str, job: Transfer, model: TileModel) -> None:
    if job.kind is not TransferKind.MULTICAST:
        rows = model.rows if job.kind is TransferKind.UNICAST else model.tile_rows
        _check_tile(where, job.row, job.col, rows, model.cols)
    if job.kind is not TransferKind.UNICAST:
        for name, mask, count in (
            ("row", job.row_mask, model.tile_rows),
            ("column", job.col_mask, model.cols),
        ):
            if not 0 < mask < 1 << count:
                raise InputError(
                    f"{where}: {name} mask: found {mask:#b}; allowed: bits 0 to {count - 1}, "
                    "one at least"
                )


def _goes_to_memory(job: Transfer, model: TileModel) -> bool:
    return model.memory and job.kind is TransferKind.UNICAST and job.row == model.rows - 1


def _check_memory(where: str, job: Transfer) -> None:
    """What a memory node understands: a request, or words of whole bursts (memory_node.sv)."""
    flits = job.words * job.rows
    if job.request and flits != 1:
        raise InputError(f"{where}: words of a request: found {flits}; allowed: 1")
    if job.request:
        return
    if job.tokens:
        raise InputError(
            f"{where}: tokens of words for a memory channel: found {len(job.tokens)}; allowed: 0, "
            "a request behind them gives tokens"
        )
    distances = {"target": job.target}
    if job.rows > 1:
        distances |= {"words": job.words, "target_row": job.target_row}
    for name, value in distances.items():
        if value % BURST_WORDS:
            raise InputError(
                f"{where}: {name} in a memory channel: found {value}; allowed: multiples of "
                f"{BURST_WORDS}, the words of a burst"
            )


def _check_tile(where: str, row: int, col: int, rows: int, cols: int) -> None:
    if not (0 <= row < rows and 0 <= col < cols):
        raise InputError(
            f"{where}: found row {row} and column {col}; "
            f"allowed: rows 0 to {rows - 1}, columns 0 to {cols - 1}"
        )


def _check_packed(where: str, job: VectorJob, together: int) -> None:
    """Words of packed rows: ``together`` words of sums become one of operands."""
    if job.out_words * together != job.words:
        raise InputError(
            f"{where}: words of a row of packed results: found {job.out_words} of {job.words}; "
            f"allowed: one of {together}"
        )
