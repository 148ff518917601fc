"""What the paper says, table by table, and the cases that predict it.

Values are those of its tables. Where a value is not at hand, the row is predicted all the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from workloads.kernels.catalogue import Choices
from workloads.studies.waferllm.cases import (
    Case,
    EnergyCase,
    KernelCase,
    LayerCase,
    RequestCase,
    RoomCase,
)

#: Models by the names of the paper.
MODELS = {
    "LLaMA3-8B": "llama3-8b",
    "LLaMA2-13B": "llama2-13b",
    "CodeLLaMA-34B": "codellama-34b",
    "QWen2-72B": "qwen2-72b",
}
FITTED, PREDICTED, NOT_SCORED = "fitted", "predicted", "not scored"
_NOT_AT_HAND = "no published figure at hand"
CONTEXT = 4096


class Fact(NamedTuple):
    """A figure that the study predicts, or says that it does not.

    Attributes:
        name: TABLE/MODEL/CASE/METRIC.
        unit: Of the figure.
        case: What it is read from; None: nothing here models it.
        figure: Name of the figure among those of the case.
        paper: The published value; None if it is not at hand.
        fit: ``fitted``, ``predicted`` or ``not scored``.
        note: What must be known to judge it.
    """

    name: str
    unit: str
    case: Case | None
    figure: str = ""
    paper: float | None = None
    fit: str = PREDICTED
    note: str = ""


def facts(*, quick: bool) -> list[Fact]:
    """All rows; without ``quick`` some kernels run at level `lt`, too."""
    found = [*_requests(), *_prefills(), *_decodes(), *_room(), *_gemv(), *_energy()]
    return [*found, *_gemms(), *_gemvs(), *([] if quick else _samples())]


# Table 2 -----------------------------------------------------------------------------------------

_LENGTHS = ((2048, 128), (4096, 128), (2048, 2048), (4096, 4096))
_REQUESTS = {
    ("LLaMA3-8B", 660, 360): (764.4, 604.4, 2370.3, None),
    ("LLaMA2-13B", 750, 375): (None, None, None, None),
}
_OTHERS = {
    ("LLaMA3-8B", "T10"): (4.6, 4.5, 58.3),
    ("LLaMA3-8B", "Ladder"): (1.2, 1.1, 7.4),
    ("LLaMA3-8B", "SGLang-1xA100"): (34.8, 31.1, 36.5),
    ("LLaMA3-8B", "SGLang-8xA100"): (117.2, 109.0, 128.4),
    ("LLaMA3-8B", "SGLang-2x8xA100"): (73.7, 70.2, 79.3),
    ("LLaMA2-13B", "T10"): (2.6, 2.5, 35.0),
    ("LLaMA2-13B", "Ladder"): (0.7, 0.7, 4.9),
}


def _requests() -> Iterator[Fact]:
    for (model, prefill, decode), values in _REQUESTS.items():
        for (prompt, output), value in zip(_LENGTHS, values, strict=True):
            case = RequestCase(MODELS[model], prefill, decode, prompt, output)
            name = f"T2/{model}/{prompt}-{output}/end_to_end"
            scored = FITTED if model == "LLaMA3-8B" else NOT_SCORED
            note = f"prompt on {prefill}x{prefill}, decoding on {decode}x{decode} tiles"
            yield Fact(name, "token/s", case, "tokens_per_s", value, scored, note)
    for (model, system), others in _OTHERS.items():
        for (prompt, output), value in zip(_LENGTHS, others, strict=False):
            name = f"T2/{model}/{prompt}-{output}/{system}_end_to_end"
            yield Fact(name, "token/s", None, "", value, NOT_SCORED, _no_mechanism(system))


def _no_mechanism(system: str) -> str:
    if system.startswith("SGLang"):
        return "GPUs as measured; nothing here predicts them"
    return "the paper states no mechanism that its time could be computed from"


# Table 3 -----------------------------------------------------------------------------------------

_PREFILL_SIDES, DECODE_SIDES = (480, 600, 720), (420, 540, 660)
_PREFILL = {
    "LLaMA3-8B": (20320.6, 25037.2, 27686.5),
    "LLaMA2-13B": (13685.1, 16854.2, 17498.3),
}
_OTHER_PREFILL = {
    ("LLaMA3-8B", "T10"): (175.0, 156.6, 132.8),
    ("LLaMA3-8B", "Ladder"): (61.8, 42.3, 31.3),
    ("LLaMA2-13B", "T10"): (121.3, 100.6, 81.3),
    ("LLaMA2-13B", "Ladder"): (47.3, 33.1, 24.2),
}


def _prefills() -> Iterator[Fact]:
    yield from _layers("T3", "prefill", _PREFILL_SIDES, _PREFILL)
    yield from _unmodelled("T3", "prefill", _PREFILL_SIDES, _OTHER_PREFILL)


def _layers(
    table: str, phase: str, sides: tuple[int, ...], published: Mapping[str, Sequence[float]]
) -> Iterator[Fact]:
    for model, name in MODELS.items():
        values: Sequence[float | None] = published.get(model) or (None,) * len(sides)
        for side, value in zip(sides, values, strict=True):
            case = LayerCase(name, phase, side, CONTEXT)
            fit = FITTED if model == "LLaMA3-8B" else PREDICTED
            note = "" if value is not None else _NOT_AT_HAND
            row = f"{table}/{model}/{side}x{side}/{phase}"
            yield Fact(row, "token/s", case, "tokens_per_s", value, fit, note)


def _unmodelled(
    table: str,
    phase: str,
    sides: tuple[int, ...],
    published: Mapping[tuple[str, str], Sequence[float]],
) -> Iterator[Fact]:
    for (model, system), values in published.items():
        for side, value in zip(sides, values, strict=True):
            row = f"{table}/{model}/{side}x{side}/{system}_{phase}"
            yield Fact(row, "token/s", None, "", value, NOT_SCORED, _no_mechanism(system))


# Table 4 -----------------------------------------------------------------------------------------

_DECODE = {
    "LLaMA3-8B": (2699.9, 2501.5, 2243.3),
    "LLaMA2-13B": (2039.2, 1899.4, 1739.8),
}
_T10 = {
    "LLaMA3-8B": (418.3, 339.4, 265.1),
    "LLaMA2-13B": (341.8, 270.8, 233.7),
}
_LADDER = {
    ("LLaMA3-8B", "Ladder"): (14.6, 13.1, 11.4),
    ("LLaMA2-13B", "Ladder"): (11.0, 9.9, 9.0),
}


def _decodes() -> Iterator[Fact]:
    yield from _layers("T4", "decode", DECODE_SIDES, _DECODE)
    for model, name in MODELS.items():
        values: Sequence[float | None] = _T10.get(model) or (None,) * len(DECODE_SIDES)
        for side, value in zip(DECODE_SIDES, values, strict=True):
            case = LayerCase(name, "decode", side, CONTEXT, "T10")
            note = "ten all-reductions to the end of a line, tile by tile"
            row = f"T4/{model}/{side}x{side}/T10_decode"
            fit = FITTED if model == "LLaMA3-8B" else PREDICTED
            yield Fact(row, "token/s", case, "tokens_per_s", value, fit, note)
    yield from _unmodelled("T4", "decode", DECODE_SIDES, _LADDER)


# Table 5 -----------------------------------------------------------------------------------------

_ROOM = {("LLaMA3-8B", 360): (382, 137548), ("LLaMA2-13B", 375): (16, 6168)}


def _room() -> Iterator[Fact]:
    for (model, side), values in _ROOM.items():
        for policy, value in zip(("concat", "shift"), values, strict=True):
            case, row = RoomCase(MODELS[model], side), f"T5/{model}/{side}x{side}/{policy}"
            fit = NOT_SCORED if model != "LLaMA3-8B" else FITTED
            note = "regions are not stated: as many as there are tiles for"
            yield Fact(row, "token", case, f"{policy}_tokens", value, fit, note)


# Tables 6 to 8 -----------------------------------------------------------------------------------

_16K, _32K = (1, 16384, 16384), (1, 32768, 32768)
GEMV_SIDE = 900
_GEMV_NOTE = f"assumed: {GEMV_SIDE}x{GEMV_SIDE} tiles, sums at their roots; neither is stated"


def _gemv() -> Iterator[Fact]:
    for name, shape, value, fit in (
        ("16K", _16K, 0.0012, PREDICTED),
        ("32K", _32K, None, NOT_SCORED),
    ):
        case = KernelCase("mesh-gemv", shape, GEMV_SIDE, Choices(at_root=True))
        yield Fact(f"T6/GEMV-{name}/MeshGEMV/latency", "ms", case, "ms", value, fit, _GEMV_NOTE)


_BOXES = {1: "1xA100", 8: "8xA100", 16: "2x8xA100"}
#: Time of each number of GPUs over that of the wafer, and the printed ratio of energies.
RATIOS: dict[str, dict[int, tuple[float, float]]] = {
    "T6/GEMV-16K": {
        1: (0.336 / 0.0012, 7.47), 8: (0.253 / 0.0012, 44.97), 16: (0.340 / 0.0012, 120.88),
    },
    "T7/LLaMA3-8B": {
        1: (27686 / 13988, 0.05), 8: (27686 / 17361, 0.34), 16: (27686 / 13994, 0.84),
    },
    "T7/LLaMA2-13B": {1: (17498 / 7805, 0.06), 8: (17498 / 12287, 0.30)},
    "T8/LLaMA3-8B": {1: (2700 / 78, 0.92), 8: (2700 / 260, 2.22), 16: (2700 / 164, 7.02)},
    "T8/LLaMA2-13B": {1: (2039 / 48, 1.13), 8: (2039 / 175, 2.49)},
}  # fmt: skip


def _energy() -> Iterator[Fact]:
    for start, ratios in RATIOS.items():
        for gpus, (time_ratio, printed) in ratios.items():
            note = "published times; 400 W a GPU, 15 kW the wafer"
            row, case = f"{start}/{_BOXES[gpus]}/energy_ratio", EnergyCase(gpus, time_ratio)
            yield Fact(row, "", case, "ratio", printed, NOT_SCORED, note)


# Figure 9 ----------------------------------------------------------------------------------------

GEMM_SIZES, GEMM_SIDES = {"2K": 2048, "4K": 4096, "8K": 8192}, (360, 540, 720)
#: SUMMA is said to double a core's memory (section 5.1): a received block beside its own.
GEMMS = {
    "MeshGEMM": ("mesh-gemm", Choices()),
    "Cannon": ("cannon", Choices()),
    "SUMMA": ("summa", Choices(receive_buffers=1)),
    "SUMMA-in-turn": ("summa", Choices(receive_buffers=1, serial=True)),
    "SUMMA-two-buffers": ("summa", Choices()),
    "SUMMA-two-buffers-in-turn": ("summa", Choices(serial=True)),
}
_PLOTTED = "a plot: no figure in the text"


def _gemms() -> Iterator[Fact]:
    for name, size in GEMM_SIZES.items():
        for side in GEMM_SIDES:
            for kernel, (called, choices) in GEMMS.items():
                case = KernelCase(called, (size, size, size), side, choices)
                row = f"F9/GEMM-{name}/{side}x{side}/{kernel}_cycles"
                yield Fact(row, "cycles", case, "cycles", None, NOT_SCORED, _PLOTTED)


# Figure 10 ---------------------------------------------------------------------------------------

GEMV_SIZES = {"2K": 2048, "8K": 8192, "16K": 16384}
GEMV_SIDES = tuple(range(60, 901, 30))
GEMVS = {
    "MeshGEMV": ("mesh-gemv", Choices()),
    "Cerebras-root-at-end": ("pipeline-gemv", Choices()),
    "Cerebras-root-in-middle": ("mesh-gemv", Choices(collective="stream")),
}


def _gemvs() -> Iterator[Fact]:
    for name, size in GEMV_SIZES.items():
        for side in GEMV_SIDES:
            for kernel, (called, choices) in GEMVS.items():
                case = KernelCase(called, (1, size, size), side, choices)
                row = f"F10/GEMV-{name}/{side}x{side}/{kernel}_cycles"
                yield Fact(row, "cycles", case, "cycles", None, NOT_SCORED, _PLOTTED)


# Samples at level lt -----------------------------------------------------------------------------


def _samples() -> Iterator[Fact]:
    """Some of the kernels of a layer as programs on all their tiles."""
    for row, kernel, shape, side in (
        ("F9/GEMM-2K/360x360/MeshGEMM_cycles_lt", "mesh-gemm", (2048, 2048, 2048), 360),
        ("F10/GEMV-8K/420x420/MeshGEMV_cycles_lt", "mesh-gemv", (1, 8192, 8192), 420),
    ):
        case = KernelCase(kernel, shape, side, level="lt")
        yield Fact(row, "cycles", case, "cycles", None, NOT_SCORED, "level lt, to compare")
