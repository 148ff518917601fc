"""Profiles of GPU servers: for level ``perf`` alone, as rooflines with named efficiencies.

A profile is a TOML file in ``gpus/`` about one GPU; ``h100x2`` is two of them under tensor
parallelism, and a file of such a server says ``count = 2`` beside what it says of one. Figures that
were fitted name the fit as their source.
"""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from tlm.errors import InputError
from tlm.tables import Count, Duration, Figure, Size, Table

_FOLDER = Path(__file__).parent / "gpus"
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

    iteration_s: Duration
    expert_layer_s: Duration


class GpuEnergy(Table):
    """Energies of operations in picojoules and powers in watts.

    ``idle_w`` is drawn always, ``active_w`` beside it while an iteration is under way.
    """

    flop_pj: Figure
    sram_byte_pj: Figure
    memory_byte_pj: Figure
    link_byte_pj: Figure
    idle_w: Figure
    active_w: float = Field(ge=0, le=1e6)


class Gpu(Table):
    """One GPU of a server whose GPUs are joined all to all.

    ``link_bytes_per_s`` is of one direction, all links of the GPU together. A prompt's attention
    is cut into blocks of ``attention_rows`` queries of one head, each on one of the ``processors``.
    """

    name: str = Field(min_length=1)
    title: str
    processors: Count
    attention_rows: Count
    peak_flops: Figure
    memory_bandwidth_bytes_per_s: Figure
    memory_bytes: Size
    usable_memory: float = Field(gt=0, le=1)
    link_bytes_per_s: Figure
    all_reduce_latency_s: Duration
    efficiency: Efficiency
    overhead: Overhead
    energy: GpuEnergy
    sources: dict[str, str] = {}


class GpuBox(Gpu):
    """A server of ``count`` such GPUs."""

    count: Count


@cache
def gpu_box_names() -> tuple[str, ...]:
    """Names of the shipped servers."""
    kinds = sorted(path.stem for path in _FOLDER.glob("*.toml"))
    return tuple(f"{kind}x{count}" for kind in kinds for count in COUNTS)


def box_text(name: str) -> str:
    """The shipped file of the GPUs of a server that is known, with their number."""
    kind, count = name.split("x")
    text = (_FOLDER / f"{kind}.toml").read_text(encoding="utf-8")
    head, title, rest = text.partition("title = ")
    return f"{head}count = {count}   # GPUs of the server\n{title}{rest}"


def box_fields(name: str) -> dict[str, Any]:
    """What the file of a server that is known says, and the name."""
    return {"name": name} | tomllib.loads(box_text(name))


@cache
def load_gpu_box(name: str) -> GpuBox:
    """A server by name, such as ``h100x2``: its GPU and how many.

    Raises:
        InputError: for an unknown name, or naming the file and the field that does not fit.
    """
    if name not in gpu_box_names():
        raise InputError(f"unknown GPU server '{name}'; known: {', '.join(gpu_box_names())}")
    return GpuBox.made(box_fields(name), f"{name.split('x')[0]}.toml")
