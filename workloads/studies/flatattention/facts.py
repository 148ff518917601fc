"""What the paper says, figure by figure, and the cases that predict it.

Figures are those of its text; bars and curves of the plots are not given there, and are predicted
all the same. Nothing of this is fitted.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from workloads.studies.flatattention.cases import Case, KernelCase, LineCase, ShareCase

_TWO_STACKS = ("memory.stacks=2", "memory.bandwidth_bytes_per_s=4e12")
_WHOLE = (32, 32)
#: Figures that the plan decides, equal at every level.
PLANNED = ("traffic_gb", "engine_pct", "slice", "tile_kib")


class Fact(NamedTuple):
    """A figure that the study predicts.

    Attributes:
        name: FIGURE/CASE/VARIANT/METRIC.
        case: What it is read from.
        figure: Name of the figure among those of the case.
        unit: Of the figure.
        paper: The published value; None if the text does not state it.
        note: What must be known to judge it.
        over: A case whose figure is divided by this one's: a speed-up, or a saving.
    """

    name: str
    case: Case
    figure: str
    unit: str
    paper: float | None = None
    note: str = "not stated in the paper"
    over: Case | None = None


def facts(*, quick: bool) -> list[Fact]:
    """All rows; ``quick`` prices figure 12 and appendix D by closed forms."""
    level = "perf" if quick else "lt"
    found = [*_shares(), *_collectives(), *_attention(), *_groups(), *_slices()]
    return [*found, *_variants(level), *_exploration(level)]


# Figure 1a ---------------------------------------------------------------------------------------

#: Attention's share of the operations that a model's name stands for, in per cent, when it decodes
#: at a long context. The text does not say how long.
SHARES = {"qwen-7b": 19.0, "deepseek-v3-671b": 71.0}
PHASES, TOKENS = ("prefill", "decode"), (4096, 8192, 16384)


def _shares() -> Iterator[Fact]:
    length = "the length is not stated"
    for model, said in SHARES.items():
        for phase in PHASES:
            for tokens in TOKENS:
                stated = f"the text says {said:g} % at a long context; {length}"
                note = stated if phase == "decode" else length
                case = ShareCase(model, phase, tokens)
                name = f"F1a/{model}/{phase}-{tokens}/attention_share"
                yield Fact(name, case, "attention_pct", "%", None, note)


# Figure 7 ----------------------------------------------------------------------------------------

_SPEEDUPS = {
    ("multicast", "tree"): 5.1,
    ("multicast", "sequential"): 30.7,
    ("sum", "tree"): 10.9,
    ("sum", "sequential"): 67.3,
}
_KIB = (1, 4, 16, 64, 128)


def _collectives() -> Iterator[Fact]:
    for (kind, method), said in _SPEEDUPS.items():
        for kib in _KIB:
            large = kib == _KIB[-1]
            note = "the largest of which a tile holds two" if large else "a smaller block"
            yield Fact(
                f"F7/{kind}/{kib}KiB/{method}_over_network", LineCase(kind, "network", kib),
                "cycles", "x", said if large else None, note, LineCase(kind, method, kib),
            )  # fmt: skip


# Figure 8 ----------------------------------------------------------------------------------------

#: Kernels, and how they run, by the names of the paper. Those in software take minutes at `lt`.
VARIANTS: dict[str, Callable[[tuple[int, ...]], KernelCase]] = {
    "FA-2": lambda shape: KernelCase("flash-attention-2", shape),
    "FA-3": lambda shape: KernelCase("flash-attention-3", shape),
    "FlatSC": lambda shape: KernelCase(
        "flat-attention", shape, "perf", _WHOLE, "sequential", "naive"
    ),
    "FlatTC": lambda shape: KernelCase("flat-attention", shape, "perf", _WHOLE, "tree", "naive"),
    "FlatHC": lambda shape: KernelCase("flat-attention", shape, group=_WHOLE, schedule="naive"),
    "FlatAsync": lambda shape: KernelCase("flat-attention", shape, group=_WHOLE),
}
LENGTHS, DEPTHS = (1024, 2048, 4096), (64, 128)
_SHARES = ("compute_pct", "communication_pct", "memory_pct", "overhead_pct")


def prefill(batch: int, length: int, depth: int) -> tuple[int, ...]:
    """Sizes of attention with 32 heads of their own keys."""
    return batch, 32, 32, length, length, depth, depth


def _attention() -> Iterator[Fact]:
    for depth in DEPTHS:
        for length in LENGTHS:
            shape, at = prefill(2, length, depth), f"F8/D{depth}-S{length}"
            for name, variant in VARIANTS.items():
                case = variant(shape)
                yield Fact(f"{at}/{name}/runtime", case, "runtime_ms", "ms")
                yield Fact(f"{at}/{name}/hbm_use", case, "hbm_use_pct", "%")
                for share in _SHARES:
                    yield Fact(f"{at}/{name}/{share.removesuffix('_pct')}", case, share, "%")
            best = (length, depth) == (4096, 128)
            flat, flash = (VARIANTS[name](shape) for name in ("FlatAsync", "FA-3"))
            for metric, figure, said in (
                ("speedup_over_FA-3", "runtime_ms", 4.1),
                ("traffic_of_FA-3_over", "traffic_gb", 16.0),
            ):
                note = "the best of all" if best else "the text states the best alone"
                paper = said if best else None
                yield Fact(f"{at}/FlatAsync/{metric}", flat, figure, "x", paper, note, flash)
    shape = prefill(2, 4096, 128)
    eight = KernelCase("flat-attention", shape, group=(8, 8), schedule="naive")
    note = "section III-A: 6.6 by its formula for slices of 128; here they have 256 rows"
    flash = VARIANTS["FA-2"](shape)
    yield Fact("IIIA/D128-S4096/8x8/traffic", eight, "traffic_gb", "x", None, note, flash)


# Figure 9 ----------------------------------------------------------------------------------------

_GROUPS = (4, 8, 16, 32)
_USES = {(4096, 16): 92.7, (4096, 32): 92.3}


def _groups() -> Iterator[Fact]:
    for length in (512, *LENGTHS):
        for side in _GROUPS:
            case = KernelCase("flat-attention", prefill(4, length, 128), group=(side, side))
            at, said = f"F9/S{length}/{side}x{side}", _USES.get((length, side))
            note = "stated" if said else "not stated in the paper"
            yield Fact(f"{at}/utilization", case, "utilization_pct", "%", said, note)
            over = (length, side) == (512, 32)
            note = "over-flattening: slices of 16" if over else "not stated in the paper"
            active = 20.0 if over else None
            yield Fact(f"{at}/engine_while_active", case, "engine_pct", "%", active, note)
            yield Fact(f"{at}/slice", case, "slice", "rows")
            yield Fact(f"{at}/runtime", case, "runtime_ms", "ms")


# Figure 11 ---------------------------------------------------------------------------------------


def _slices() -> Iterator[Fact]:
    for side in (16, 32, 64, 128):
        shape = (1, 2, 2, 32 * side, 32 * side, 128, 128)
        case = KernelCase("flat-attention", shape, "perf", _WHOLE)
        best = side == 128
        said, note = (98.0, "up to 98 %, at least 95") if best else (None, "not stated")
        yield Fact(f"F11/slice{side}/engine/utilization", case, "engine_pct", "%", said, note)
        note = "within 384 KiB" if best else "not stated"
        yield Fact(f"F11/slice{side}/L1/occupancy", case, "tile_kib", "KiB", None, note)


# Figure 12 ---------------------------------------------------------------------------------------


def _shapes() -> Iterator[tuple[str, tuple[int, ...], bool]]:
    """Names, sizes, and whether values are taken from the keys."""
    for depth in (64, 128):
        for length in (512, *LENGTHS):
            yield f"prefill-MHA-D{depth}-S{length}", prefill(32, length, depth), False
    for kind, kv_heads in (("MHA", 32), ("GQA", 2)):
        for drafted in (1, 2, 4):
            for keys in (512, *LENGTHS):
                name = f"decode-{kind}-sp{drafted}-kv{keys}"
                yield name, (128, 32, kv_heads, drafted, keys, 128, 128), False
    for keys in (128, 256, 512, *LENGTHS):
        yield f"decode-MLA-sp8-kv{keys}", (128, 128, 1, 8, keys, 576, 512), True


def _variants(level: str) -> Iterator[Fact]:
    for name, shape, latent in _shapes():
        case = KernelCase("flat-attention", shape, level, changes=_TWO_STACKS, latent=latent)
        yield Fact(f"F12/{name}/Flat/utilization", case, "utilization_pct", "%")
        yield Fact(f"F12/{name}/Flat/hbm_use", case, "hbm_use_pct", "%")
        yield Fact(f"F12/{name}/Flat/runtime", case, "runtime_ms", "ms")
        flash = "flash-mla" if latent else "flash-attention-3"
        base = KernelCase(flash, shape, level, changes=_TWO_STACKS)
        note = "the same chip; the paper compares with a GPU"
        yield Fact(
            f"F12/{name}/Flat/speedup_over_{flash}", case, "runtime_ms", "x", None, note, base
        )


# Appendix D --------------------------------------------------------------------------------------

#: Tiles a side, and KiB of a tile's memory.
MESHES = {64: 192, 32: 384, 16: 1536, 8: 6144}
SPATZ, MESHES_LENGTHS = (1, 2, 4), (1024, 4096)


def channels_of(side: int) -> int:
    """Channels of memory of a mesh: at most one a column."""
    return min(side, 32)


def _exploration(level: str) -> Iterator[Fact]:
    """Meshes of equal peak: engines, links, banks and memory go with the size of a tile."""
    for side, l1_kib in MESHES.items():
        scale = 32 / side
        channels = channels_of(side)
        for spatz in SPATZ:
            changes = (
                f"grid.rows={side}", f"grid.cols={side}",
                f"tile.matrix.height={round(32 * scale)}", f"tile.matrix.width={round(16 * scale)}",
                f"tile.vector_flop_per_cycle={round(32 * spatz * scale**2)}",
                f"tile.sram_kib={l1_kib}", f"tile.sram_bytes_per_cycle={round(512 * scale)}",
                f"noc.flit_bytes={round(128 * scale)}", f"memory.channels={channels}",
                *_TWO_STACKS,
            )  # fmt: skip
            for length in MESHES_LENGTHS:
                shape = prefill(4, length, 128)
                case = KernelCase("flat-attention", shape, level, changes=changes)
                at = f"D/{side}x{side}-{spatz}Spatz/MHA-S{length}"
                note = "appendix D is not in the text"
                yield Fact(f"{at}/utilization", case, "utilization_pct", "%", None, note)
