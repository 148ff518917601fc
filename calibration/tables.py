"""Tables of the documents that say what is stored: errors of the experiments and of the levels."""

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

from tlm.calibrated import REPOSITORY, CalibrationResult, load_result, stored_names
from tlm.comparisons import ChipPoint, LevelPoint, TilePoint, load_chips, load_levels, load_tiles
from tlm.errors import InputError
from tlm.files import whole_file
from tlm.memory.dram.streams import StreamComparison, load_streams
from tlm.spread import by_kernel, spread

_README = REPOSITORY / "README.md"
_TILES = REPOSITORY / "docs" / "tiles.md"
_KERNELS = REPOSITORY / "docs" / "kernels.md"
_OFFCHIP = REPOSITORY / "docs" / "offchip.md"
#: Bytes of blocks whose costs are shown.
_SHOWN = (256, 1024, 4096, 16384, 65536)
_ENGINES = ("matrix", "vector", "transfer")


def error_table(results: Sequence[CalibrationResult]) -> str:
    """Errors by experiment, over what nothing was fitted to."""
    lines = ["| experiment | subject | fitted on | checked on | mean error | worst error |"]
    lines.append("|---|---|---|---|---|---|")
    for result in results:
        errors = f"{result.mean_abs_error_pct:.2g} % | {result.max_abs_error_pct:.3g} %"
        points = f"{len(result.fit)} | {len(result.check)}"
        lines.append(f"| {result.name} | {result.subject} | {points} | {errors} |")
    return "\n".join(lines) + "\n"


def level_table(points: Sequence[LevelPoint]) -> str:
    """Errors by kernel of each level above `at` against the level below it."""
    lines = [
        "| kernel | cases | `lt` against `at`: mean, worst | `perf` against `lt`: mean, worst |"
    ]
    lines.append("|---|---|---|---|")
    for kernel, chosen in by_kernel(points).items():
        lt = spread(chosen, attrgetter("lt_error_pct"))
        perf = spread(chosen, attrgetter("perf_error_pct"))
        lines.append(f"| {kernel} | {len(chosen)} | {lt} | {perf} |")
    return "\n".join(lines) + "\n"


def tile_table(points: Sequence[TilePoint]) -> str:
    """Errors by kernel and variant, and of the cycles in which engines are busy."""
    engines = ", ".join(_ENGINES)
    lines = [f"| kernel | cases | total: mean, worst | {engines} busy: worst | worst case |"]
    lines.append("|---|---|---|---|---|")
    kinds: dict[str, list[TilePoint]] = {}
    wholes: dict[str, list[TilePoint]] = {}
    for point in points:
        where = " with memory" if point.memory else ""
        kinds.setdefault(f"{point.kernel} {point.variant}".strip() + where, []).append(point)
        wholes.setdefault(f"all {point.dtype}{where}", []).append(point)
    for name, chosen in kinds.items():
        total = spread(chosen, attrgetter("error_pct"))
        worst = total.worst
        busy = ", ".join(_busy(chosen, engine) for engine in _ENGINES)
        case = f"{worst.case}: {worst.rtl} and {worst.at}" if worst.error_pct else "-"
        lines.append(f"| {name} | {len(chosen)} | {total} | {busy} | {case} |")
    for name, chosen in wholes.items():
        lines.append(f"| {name} | {len(chosen)} | {spread(chosen, attrgetter('error_pct'))} | | |")
    return "\n".join(lines) + "\n"


def chip_table(points: Sequence[ChipPoint]) -> str:
    """Errors by kernel of the closed forms at the constants of each chip."""
    chips = list(dict.fromkeys(point.chip for point in points))
    lines = [f"| kernel | {' | '.join(chips)} |", "|---" * (len(chips) + 1) + "|"]
    for kernel, chosen in _by_variant(points).items():
        of_chips = [[point for point in chosen if point.chip == chip] for chip in chips]
        errors = (f"{spread(each, attrgetter('error_pct'))}" if each else "-" for each in of_chips)
        lines.append(f"| {kernel} | {' | '.join(errors)} |")
    return "\n".join(lines) + "\n"


def stream_table(streams: StreamComparison) -> str:
    """What blocks get of a pseudo-channel, and how far off that is for others, by situation."""
    situations = list(dict.fromkeys(p.situation for p in streams.points if not p.fitted))
    shown = (f"{each:,}" for each in _SHOWN)
    lines = [f"| device, tiles | {' | '.join((*shown, *situations))} |"]
    lines.append("|---" * (1 + len(_SHOWN) + len(situations)) + "|")
    for costs in streams.costs:
        of_both = zip(costs.lengths, costs.loads, costs.stores, strict=True)
        shares = [
            f"{100 * length / load:.0f}, {100 * length / store:.0f}"
            for length, load, store in of_both
            if length in _SHOWN
        ]
        checked = streams.checks(costs.device, costs.tiles)
        errors = [
            f"{spread(chosen, attrgetter('error_pct'))}" if chosen else "-"
            for chosen in ([p for p in checked if p.situation == each] for each in situations)
        ]
        lines.append(f"| {costs.device}, {costs.tiles} | {' | '.join((*shares, *errors))} |")
    return "\n".join(lines) + "\n"


def chip_at_table(points: Sequence[ChipPoint]) -> str:
    """Errors by kernel of `lt` against `at`, with off-chip memory and without.

    The project's own chips are apart.
    """
    lines = [
        "| kernel | operands in the tiles | in off-chip memory | in the tiles, project's own | "
        "in off-chip memory |",
        "|---|---|---|---|---|",
    ]
    for kernel, chosen in _by_variant([each for each in points if each.at is not None]).items():
        kinds = (
            [each for each in chosen if (each.chip == "rtl", each.memory) == (own, memory)]
            for own in (False, True)
            for memory in (False, True)
        )
        errors = (f"{spread(each, _lt_error_pct)}" if each else "-" for each in kinds)
        lines.append(f"| {kernel} | {' | '.join(errors)} |")
    return "\n".join(lines) + "\n"


def _by_variant(points: Sequence[ChipPoint]) -> dict[str, list[ChipPoint]]:
    """Cases by kernel, those of its variants apart."""
    found: dict[str, list[ChipPoint]] = {}
    for point in points:
        found.setdefault(f"{point.kernel} {point.variant}".strip(), []).append(point)
    return found


def _lt_error_pct(point: ChipPoint) -> float:
    assert point.lt_error_pct is not None
    return point.lt_error_pct


def stored_tables() -> list[tuple[Path, str, str]]:
    """Document, mark and text of every table.

    Raises:
        InputError: if what they show is missing or stale.
    """
    return [
        (_README, "errors", error_table([load_result(name) for name in stored_names()])),
        (_README, "levels", level_table(load_levels().points)),
        (_TILES, "tiles", tile_table(load_tiles().points)),
        (_KERNELS, "chips", chip_table(load_chips().points)),
        (_OFFCHIP, "streams", stream_table(load_streams())),
        (_KERNELS, "chips at", chip_at_table(load_chips().points)),
    ]


def update_documents() -> None:
    """Write the tables of what is stored into the documents, which an installed package has not.

    Raises:
        InputError: if what they show is missing or stale, or a document has no place for it.
    """
    for document, mark, table in stored_tables():
        if not document.is_file():
            continue
        before, old, after = marked(document, mark)
        if old != table:
            with whole_file(document) as scratch:
                scratch.write_text(before + table + after, encoding="utf-8")


def marked(document: Path, mark: str) -> tuple[str, str, str]:
    """What a document has before, between and after ``mark: begin`` and ``mark: end``.

    Raises:
        InputError: if it does not have these marks.
    """
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
    before, found, rest = document.read_text(encoding="utf-8").partition(begin)
    table, closed, after = rest.partition(end)
    if not found or not closed:
        raise InputError(f"{document}: found no '{begin.strip()}' with '{end}'")
    return before + begin, table, end + after


def _busy(points: Sequence[TilePoint], engine: str) -> str:
    pairs = [point.busy[engine] for point in points if engine in point.busy]
    if not pairs:
        return "-"
    return f"{max(abs(100 * (at - rtl) / rtl) for rtl, at in pairs):.2g} %"
