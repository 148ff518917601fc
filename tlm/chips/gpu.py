"""Profiles of GPU servers: for level ``perf`` alone, as rooflines with named efficiencies.

A profile is a TOML file in ``gpus/`` about one GPU; ``h100x2`` is two of them under tensor
parallelism. Figures that were fitted name the fit as their source.
"""

import re
from functools import cache
from pathlib import Path

from pydantic import Field, PositiveFloat, PositiveInt

from tlm.errors import InputError
from tlm.tables import Table

_FOLDER = Path(__file__).parent / "gpus"
_NAME = re.compile(r"([a-z0-9]+)x([1248])")
COUNTS = (1, 2, 4, 8)


class Efficiency(Table):
    """Shares of a peak that kernels reach.

    ``gemm``, ``attention`` and ``expert_gemm`` are of the arithmetic peak, ``bandwidth`` and
    ``expert_bandwidth`` (the reading of expert weights by grouped products) of the memory's,
    ``link`` of the links'.
    """

    gemm: float = Field(gt=0, le=1)
    attention: float = Field(gt=0, le=1)
    bandwidth: float = Field(gt=0, le=1)
    link: float = Field(gt=0, le=1)
    expert_gemm: float = Field(gt=0, le=1)
    expert_bandwidth: float = Field(gt=0, le=1)


class Overhead(Table):
    """Time that the host takes.

    ``iteration_s`` is added once an iteration. ``expert_layer_s`` is the least time of a layer with
    experts, that of its launches; they run ahead of the kernels, so longer kernels hide it.
    """

    iteration_s: float = Field(ge=0)
    expert_layer_s: float = Field(ge=0)


class GpuEnergy(Table):
    """Energies of operations in picojoules and powers in watts.

    ``idle_w`` is drawn always, ``active_w`` beside it while an iteration is under way.
    """

    flop_pj: PositiveFloat
    sram_byte_pj: PositiveFloat
    memory_byte_pj: PositiveFloat
    link_byte_pj: PositiveFloat
    idle_w: PositiveFloat
    active_w: float = Field(ge=0)


class Gpu(Table):
    """One GPU of a server whose GPUs are joined all to all.

    ``link_bytes_per_s`` is of one direction, all links of the GPU together. A prompt's attention
    is cut into blocks of ``attention_rows`` queries of one head, each on one of the ``processors``.
    """

    name: str
    title: str
    processors: PositiveInt
    attention_rows: PositiveInt
    peak_flops: PositiveFloat
    memory_bandwidth_bytes_per_s: PositiveFloat
    memory_bytes: PositiveInt
    usable_memory: float = Field(gt=0, le=1)
    link_bytes_per_s: PositiveFloat
    all_reduce_latency_s: float = Field(ge=0)
    efficiency: Efficiency
    overhead: Overhead
    energy: GpuEnergy
    sources: dict[str, str] = {}


def gpu_box_names() -> tuple[str, ...]:
    """Names of the shipped servers."""
    kinds = sorted(path.stem for path in _FOLDER.glob("*.toml"))
    return tuple(f"{kind}x{count}" for kind in kinds for count in COUNTS)


@cache
def load_gpu_box(name: str) -> tuple[Gpu, int]:
    """A server by name, such as ``h100x2``: its GPU and how many.

    Raises:
        InputError: for an unknown name, or naming the file and the field that does not fit.
    """
    found = _NAME.fullmatch(name)
    if found is None or name not in gpu_box_names():
        raise InputError(f"unknown GPU server '{name}'; known: {', '.join(gpu_box_names())}")
    path = _FOLDER / f"{found[1]}.toml"
    return Gpu.read(path, name=found[1]), int(found[2])
