"""What the study runs, and what it reads from a run: sums of the plans that are served."""

from functools import cache
from typing import NamedTuple

from tlm.chips import find_tiles, load_chip
from tlm.chips.parts import noc_timing
from tlm.compute.base import ceil_div
from tlm.engines.lt import run_lt
from workloads.kernels.catalogue import KERNELS, Choices
from workloads.machine.dtypes import DTYPE_BITS
from workloads.machine.place import Place, chip_place
from workloads.models import load_model
from workloads.serving.price.grid_mapping import GridMapping
from workloads.serving.price.parts import Decode, Layer, Part, Prompt
from workloads.serving.price.regions import regions_of
from workloads.studies.campaign import Figures
from workloads.studies.waferllm.beyond import RouterCase, ServeCase, router_gates, served

CHIP, DTYPE = "wse2", "fp16"
#: Of an A100, as the printed ratios of energies have it.
GPU_W = 400.0
#: Kernels of products of a vector: WaferLLM's own, and what T10 is said to be bound by.
GEMVS = {"WaferLLM": "mesh-gemv", "T10": "pipeline-gemv"}
#: Routers that combine operands, and whether an all-reduction keeps its cycles in software.
COMBINES, KEPT = "combines", "combines, calls kept"
_COMBINES = "noc.reduce_cycles=1"
#: Kernels of a decoding token that end in an all-reduction.
_SUMS = ("mesh-gemv", "row-sum")


class LayerCase(NamedTuple):
    """A layer, as often as the model has layers: what the paper measured.

    Attributes:
        model: Its name.
        phase: ``prefill`` of a prompt, or ``decode`` of one token.
        side: Tiles along each edge of the grid.
        tokens: Of the prompt, or in the cache.
        system: Whose way of summing vectors.
        network: ``combines``: routers combine operands; ``combines, calls kept``: and an
            all-reduction still takes its fixed cycles in software; empty: cores add.
    """

    model: str
    phase: str
    side: int
    tokens: int
    system: str = "WaferLLM"
    network: str = ""


class RequestCase(NamedTuple):
    """A request from its prompt to its last token.

    Attributes:
        model: Its name.
        prefill_side: Tiles along each edge of the grid for the prompt.
        decode_side: The same for decoding.
        prompt: Tokens of the prompt.
        output: Tokens that are generated.
    """

    model: str
    prefill_side: int
    decode_side: int
    prompt: int
    output: int


class KernelCase(NamedTuple):
    """A kernel on a square grid.

    Attributes:
        kernel: Its name.
        shape: M, N, K.
        side: Tiles along each edge.
        choices: Its variant.
        level: Of the network: perf or lt.
    """

    kernel: str
    shape: tuple[int, int, int]
    side: int
    choices: Choices = Choices()
    level: str = "perf"


class RoomCase(NamedTuple):
    """Room for keys and values beside the weights.

    Attributes:
        model: Its name.
        side: Tiles along each edge of a region.
    """

    model: str
    side: int


class EnergyCase(NamedTuple):
    """Energy of GPUs over that of the wafer, by powers and published times.

    Attributes:
        gpus: How many.
        time_ratio: Time of the GPUs over that of the wafer.
    """

    gpus: int
    time_ratio: float


Case = LayerCase | RequestCase | KernelCase | RoomCase | EnergyCase | ServeCase | RouterCase


def simulate(case: Case, _: int) -> Figures:
    """Figures of a case; nothing in it is random."""
    if isinstance(case, LayerCase | RequestCase):
        return timed(case)
    if isinstance(case, ServeCase):
        return served(case)
    if isinstance(case, RouterCase):
        return router_gates(case)
    if isinstance(case, RoomCase):
        found = regions_of(load_model(case.model), load_chip(CHIP), case.side)
        return {
            "concat_tokens": float(found.concat_tokens),
            "shift_tokens": float(found.shift_tokens),
        }
    if isinstance(case, EnergyCase):
        # Printed with two decimals.
        return {"ratio": round(case.gpus * GPU_W / _wafer_w() * case.time_ratio, 2)}
    return _kernel(case)


def timed(case: LayerCase | RequestCase, changes: tuple[str, ...] = ()) -> Figures:
    """Figures of a layer or a request, on the chip with some fields changed as by ``--set``."""
    return _layer(case, changes) if isinstance(case, LayerCase) else _request(case, changes)


def _layer(case: LayerCase, changes: tuple[str, ...]) -> Figures:
    parts: list[Part] = [Layer(1, False), Decode(1, 1, case.tokens, None)]
    new = 1
    if case.phase == "prefill":
        parts, new = [Layer(case.tokens, False), Prompt(case.tokens, 0, None)], case.tokens
    method = "network" if case.network else None
    changes = (*changes, _COMBINES) if case.network else changes
    grid = _grid(case.model, case.side, GEMVS[case.system], changes, method)
    cycles = sum(grid.cycles(part) for part in parts)
    if case.network == KEPT:
        kernels = [operator.kernel for part in parts for operator, _ in grid.of(part)]
        cycles += sum(map(kernels.count, _SUMS)) * grid.place.software.all_reduce_cycles
    seconds = cycles * load_model(case.model).layers / load_chip(CHIP).clock_hz
    return {"layer_cycles": float(cycles), "tokens_per_s": new / seconds}


def _request(case: RequestCase, changes: tuple[str, ...]) -> Figures:
    """Contexts that fill as many rows of the grid's tiles cost the same."""
    prefill = _layer(LayerCase(case.model, "prefill", case.prefill_side, case.prompt), changes)
    prompt_s = case.prompt / _known(prefill["tokens_per_s"])
    decode_s, context = 0.0, case.prompt
    while context < case.prompt + case.output:
        # The token itself is seen, too.
        last = ceil_div(context + 1, case.decode_side) * case.decode_side - 1
        alike = min(last + 1, case.prompt + case.output) - context
        figures = _layer(LayerCase(case.model, "decode", case.decode_side, context), changes)
        decode_s += alike / _known(figures["tokens_per_s"])
        context += alike
    return {
        "tokens_per_s": case.output / (prompt_s + decode_s),
        "prefill_s": prompt_s,
        "decode_s": decode_s,
    }


def _kernel(case: KernelCase) -> Figures:
    kernel, place = KERNELS[case.kernel], _place(case.side)
    plan = kernel.planned(case.shape, place, case.choices)
    if case.level == "lt":
        cycles = run_lt(kernel.program(plan), place.timing).cycles
    else:
        cycles = kernel.closed_form(plan, place.timing)
    return {"cycles": float(cycles), "ms": 1e3 * cycles / load_chip(CHIP).clock_hz}


@cache
def _grid(
    model: str, side: int, gemv: str, changes: tuple[str, ...], method: str | None
) -> GridMapping:
    choices = Choices(collective=method)
    return GridMapping(load_model(model), _place(side, changes), gemv, choices)


@cache
def _place(side: int, changes: tuple[str, ...] = ()) -> Place:
    chip = find_tiles(CHIP, changes).for_dtype(DTYPE)
    return chip_place(chip, (side, side), noc_timing(chip), *DTYPE_BITS[DTYPE])


def _wafer_w() -> float:
    energy = load_chip(CHIP).energy
    assert energy is not None
    return energy.idle_w


def _known(figure: float | None) -> float:
    assert figure is not None
    return figure
