"""Collectives between the dies of a wafer, alone or behind kernels."""

from typing import Any

from tlm.chips import Chip, find_tiles
from tlm.dies.collectives import Dealt, collective
from tlm.dies.links import TICKS_PER_S, DieMesh, die_mesh
from tlm.dies.perf import collective_ticks, link_loads
from tlm.dies.schedule import DiePhase, in_turns, overlapped
from tlm.dies.simulate import simulate
from tlm.errors import InputError, check_range, choose, hold_least
from tlm.interconnect.packets import TileSet
from tlm.interconnect.traffic import parse_rectangle
from wafertlm.asked.dies import LEVELS, DiesOptions

_LONGEST_KERNEL_S = 1000
_MOST_REPEATS = 10_000


def run_dies(options: DiesOptions, chip: Chip | None = None) -> dict[str, Any]:
    """Figures of a collective between dies.

    Args:
        options: What is run.
        chip: What the options name, if it has been found; None: it is found.

    Raises:
        InputError: for options that do not fit together or to the chip.
    """
    choose("level", options.level, LEVELS)
    _check_run(options)
    mesh = die_mesh(find_tiles(options.chip, options.set) if chip is None else chip)
    group = _group(options.group, mesh)
    dealt = Dealt(piece=options.piece_bytes or 0)
    messages = collective(options.collective, mesh, group, options.bytes, dealt)
    closed = collective_ticks(options.collective, mesh, group, options.bytes, dealt)
    ticks = simulate(messages, mesh).ticks if options.level == "lt" else closed
    busiest = int(link_loads(messages, mesh).max())
    figures: dict[str, Any] = {
        "seconds": ticks / TICKS_PER_S,
        "messages": len(messages),
        "bytes": int(messages.units.sum()),
        "busiest_link_bytes": busiest,
        "busiest_link_utilization": busiest * mesh.ticks_per_unit / ticks,
        # At level perf nothing says how far the closed form is off.
        "perf_error_pct": 100 * (closed - ticks) / ticks if options.level == "lt" else None,
    }
    if options.kernel_s is not None:
        figures["run"] = _run(options, mesh, group, dealt, ticks)
    return figures


def _run(
    options: DiesOptions, mesh: DieMesh, group: TileSet, dealt: Dealt, ticks: int
) -> dict[str, Any]:
    """Kernels with a collective behind each, in turns and overlapped."""
    assert options.kernel_s is not None
    kernel, parts = round(options.kernel_s * TICKS_PER_S), options.micro_batches
    turns = in_turns([DiePhase((kernel,), ticks)] * options.repeat)
    part = -(-options.bytes // parts)
    if options.level == "lt":
        part_messages = collective(options.collective, mesh, group, part, dealt)
        part_ticks = simulate(part_messages, mesh).ticks
    else:
        part_ticks = collective_ticks(options.collective, mesh, group, part, dealt)
    both = overlapped([DiePhase((kernel // parts,), part_ticks)] * options.repeat, parts)
    return {
        "in_turns_s": turns.ticks / TICKS_PER_S,
        "overlapped_s": both.ticks / TICKS_PER_S,
        "kernel_s": turns.kernel_ticks / TICKS_PER_S,
        "collective_s": turns.collective_ticks / TICKS_PER_S,
        "overlapped_collective_s": both.collective_ticks / TICKS_PER_S,
    }


def _check_run(options: DiesOptions) -> None:
    if options.piece_bytes is not None:
        hold_least("--piece-bytes", options.piece_bytes, 1)
        if options.collective != "all-to-all":
            raise InputError(
                f"--piece-bytes: found with --collective {options.collective}; "
                "allowed: with all-to-all"
            )
    if options.kernel_s is not None and not 0 <= options.kernel_s <= _LONGEST_KERNEL_S:
        raise InputError(
            f"--kernel-s: found {options.kernel_s:g}; allowed: 0 to {_LONGEST_KERNEL_S}"
        )
    plain = DiesOptions(chip=options.chip, collective=options.collective, bytes=options.bytes)
    for name, value, alone in (
        ("--repeat", options.repeat, plain.repeat),
        ("--micro-batches", options.micro_batches, plain.micro_batches),
    ):
        check_range(name, value, 1, _MOST_REPEATS)
        if options.kernel_s is None and value != alone:
            raise InputError(f"{name}: found {value} without --kernel-s; allowed: with kernels")


def _group(text: str, mesh: DieMesh) -> TileSet:
    if text == "all":
        return TileSet(range(mesh.rows), range(mesh.cols))
    try:
        return parse_rectangle(text, mesh.rows, mesh.cols)
    except InputError as error:
        raise InputError(f"--group: {error}") from error
