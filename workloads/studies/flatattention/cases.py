"""What the study runs, and what it reads from a run."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tlm.chips import load_chip
from tlm.chips.parts import chip_router, noc_timing
from tlm.interconnect.packets import TileSet
from tlm.on_routers import run_on_routers
from tlm.program import Buffer, Engine, Operation, Program, Token, Work
from workloads.kernels.parts.broadcast import Broadcast
from workloads.kernels.parts.collectives import Reduction
from workloads.kernels.parts.line import Lines
from workloads.machine.place import chip_place
from workloads.models import find_model
from workloads.models.operators import Attention
from workloads.serving.price.cost import Batch
from workloads.serving.price.iteration import Iterations
from workloads.studies.campaign import Figures

CHIP, GRID, DTYPE = "flat32", (32, 32), "fp16"
_FP16_BITS = 16
_MODELS = Path(__file__).parent

#: Figures of a kernel. Shares are of the time, in per cent; ``engine`` is the matrix engine's use
#: while it is busy.
KERNEL_FIGURES = (
    "runtime_ms", "utilization_pct", "hbm_use_pct", "traffic_gb", "compute_pct",
    "communication_pct", "memory_pct", "overhead_pct", "engine_pct", "slice", "tile_kib",
    "level_pct",
)  # fmt: skip


class KernelCase(NamedTuple):
    """A kernel with off-chip memory, as ``wafertlm kernel`` runs it.

    Attributes:
        kernel: Its name.
        shape: Batch, heads of Q and of K and V, rows of Q, keys, depth of Q and K, and of V.
        level: Of the network.
        group: Tiles of a group of FlatAttention; None: by its rule.
        collective: Of FlatAttention: in software, if named.
        schedule: Of FlatAttention.
        changes: Of the chip's fields, as ``--set`` takes them.
        latent: Values are the first elements of the keys.
    """

    kernel: str
    shape: tuple[int, ...]
    level: str = "lt"
    group: tuple[int, int] | None = None
    collective: str | None = None
    schedule: str | None = None
    changes: tuple[str, ...] = ()
    latent: bool = False


class LineCase(NamedTuple):
    """A block from the first tile of a row to all of it, or the row's sum at that tile.

    Attributes:
        kind: ``multicast`` or ``sum``.
        method: ``network``, ``tree`` or ``sequential``.
        kib: Length of the block.
    """

    kind: str
    method: str
    kib: int


class ShareCase(NamedTuple):
    """What part of a model's operations is attention.

    Attributes:
        model: Its name, or that of a file beside this one.
        phase: ``prefill`` of a prompt, or ``decode`` of a request.
        length: Tokens of the prompt, or in the cache.
    """

    model: str
    phase: str
    length: int


Case = KernelCase | LineCase | ShareCase


def line_figures(case: LineCase) -> Figures:
    """Cycles of a collective along a row of the chip, at level `at`."""
    chip = load_chip(CHIP).for_dtype(DTYPE)
    cols = GRID[1]
    place = chip_place(chip, (1, cols), noc_timing(chip), _FP16_BITS, _FP16_BITS)
    elements = 8 * 1024 * case.kib // _FP16_BITS
    flits, line = place.flits(1, elements, _FP16_BITS), Lines("row", range(1), cols)
    block, part = Buffer(1, elements, _FP16_BITS), _part(case, line, flits, elements)
    buffers = {"block": block, "copy": block}
    if isinstance(part, Reduction):
        part = replace(part, combine_cycles=place.vector.pass_cycles(1, elements))
        buffers |= part.buffers(block)
    tokens = {"there": Token(), "come": Token(), "free": Token(initial=1)} | part.tokens()

    def operations() -> list[Operation]:
        first = range(cols) if isinstance(part, Reduction) else range(1)
        ready = Work(Engine.CONTROL, TileSet(range(1), first), 0, gives=("there",))
        return [ready, *(part.reduce() if isinstance(part, Reduction) else part.operations())]

    program = Program(1, cols, tokens, operations, buffers)
    outcome, _ = run_on_routers(program, chip_router(chip))
    return {"cycles": float(outcome.cycles)}


def _part(case: LineCase, line: Lines, flits: int, elements: int) -> Broadcast | Reduction:
    if case.kind == "sum":
        return Reduction(line, 0, case.method, "sum", "block", "there", flits, 0)
    target, free = ("copy", ("free",)) if case.method == "network" else ("block", ())
    there = "come" if case.method == "network" else "there"
    return Broadcast(line, 0, case.method, flits, "block", target, free, there, takes=("there",))


def share_figures(case: ShareCase) -> Figures:
    """Scores and their product with V, as a part of all multiply-accumulates, in per cent."""
    path = _MODELS / f"{case.model}.toml"
    model = find_model(str(path) if path.is_file() else case.model)
    prompt = case.phase == "prefill"
    batch = Batch(((case.length, 0),) if prompt else (), not prompt, (not prompt) * case.length, 1)
    macs = np.zeros(2)
    for operator, count in Iterations(model).operators(batch):
        if isinstance(operator, Attention):
            seen = operator.keys if not operator.causal else (operator.keys + 1) / 2
            depth = operator.qk_depth + operator.v_depth
            rows = operator.sequences * operator.q_heads * operator.new
            macs += count * rows * seen * depth * np.array([1, 1])
        else:
            macs[1] += count * getattr(operator, "macs", 0)
    return {"attention_pct": float(100 * macs[0] / macs[1])}
