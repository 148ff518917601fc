"""The authors' kernel for a latent cache: what it computes and moves, and how long it takes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.workloads.kernels.attended import attended
from tests.workloads.kernels.products import computed, place
from tlm.calibrated import REPOSITORY
from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from tlm.memory.bandwidth_latency import ChannelTiming
from tlm.offchip.edge import Edge
from wafertlm.kernel import KernelOptions, run_kernel
from workloads.kernels.attention.shape import AttentionShape
from workloads.machine.moved import moved_by
from workloads.machine.place import Place, chip_place
from workloads.studies.flatattention.chunked import chunked_attention, put, result
from workloads.studies.flatattention.chunked_cycles import chunked_cycles
from workloads.studies.flatattention.chunked_plan import ChunkedPlan, plan_chunked
from workloads.studies.flatattention.wafer import REPLACED

_FILE = REPOSITORY / "workloads" / "studies" / "flatattention" / "flat_mla.py"
_EDGE = Edge(4, 4, 2, 8, 32, 1 << 28, ChannelTiming(30, 16, 16))
#: Batch, heads of Q, rows, keys, depth of keys and of values; slices have 4 rows and keys.
SHAPES = {
    "odd streams of two chunks": (5, 4, 2, 16, 12, 8),
    "a narrower last chunk": (7, 4, 1, 32, 10, 8),
    "blocks of rows": (3, 4, 9, 8, 12, 8),
    "keys are values": (1, 2, 3, 16, 12, 12),
    "one chunk of values": (9, 4, 2, 16, 6, 4),
}


def shaped(batch: int, heads: int, rows: int, keys: int, deep: int, values: int) -> AttentionShape:
    """On a latent cache."""
    return AttentionShape(batch, heads, 1, rows, keys, deep, values, latent=True)


def wafer(grid: tuple[int, int], *, memory: bool = True) -> Place:
    """Tiles of a die of the wafer."""
    chip = load_chip("flat32-wafer").for_dtype("fp8")
    return chip_place(chip, grid, noc_timing(chip), 8, 16, memory=memory)


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("held", [2, 3])
@pytest.mark.parametrize("name", SHAPES)
def test_chunks_give_the_same_attention_as_whole_blocks(name: str, held: int, memory: bool) -> None:
    shape = shaped(*SHAPES[name])
    tiles = replace(place(4, 4), offchip=_EDGE if memory else None)
    plan = plan_chunked(shape, tiles, side=4, held=held)
    program = chunked_attention(plan)
    assert plan.moved == moved_by(program, tiles.timing.flit_bytes) or not memory
    for seed in range(2):
        rng = np.random.default_rng(seed)
        q = rng.integers(-90, 90, (shape.heads, shape.rows, shape.qk_depth))
        k = rng.integers(-90, 90, (shape.heads, shape.kv_length, shape.qk_depth))
        memory_then = computed(program, lambda at, q=q, k=k: put(plan, at, q, k), seed)
        output, totals = result(plan, memory_then)
        for head in range(shape.heads):
            found = np.hstack([output[head], totals[head][:, None]])
            whole = attended(plan.flat, q[head], k[head], k[head][:, : shape.v_depth])
            assert (found == whole).all()


def decode(batch: int = 256, keys: int = 4096) -> AttentionShape:
    """Of DeepSeek-V3, two tokens of each request."""
    return shaped(batch, 128, 2, keys, 576, 512)


def test_slices_and_groups_are_those_of_section_v_b() -> None:
    plan = plan_chunked(decode(), wafer((32, 32)))
    assert plan.flat.group == (2, 32)
    assert (plan.flat.block.rows, plan.flat.block.keys, plan.chunk) == (128, 128, 128)
    assert plan.widths == ([128, 128, 128, 128, 64], [128] * 4)
    # Q once, and the latent twice.
    assert plan.moved.read == 256 * (256 * 576 + 4096 * (576 + 512))
    # With sums of a byte a tile needs the room that SoftHier lays out, and columns: 176 KiB.
    bytes_then = replace(wafer((32, 32)), sum_bits=8)
    room = chunked_attention(plan_chunked(decode(), bytes_then)).tile_bytes
    assert 176 * 1024 < room < 178 * 1024


CASES = (
    ((4, 4), 8, 512, 128, 0.2),
    ((8, 8), 9, 512, 128, 0.2),
    ((8, 8), 16, 1024, 128, 0.2),
    ((16, 16), 64, 1024, 128, 0.2),  # bound by memory, more groups than a channel serves at once
    ((8, 8), 16, 512, 32, 5),  # bound by memory, short products
)


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize(("grid", "batch", "keys", "side", "most"), CASES)
def test_closed_form_against_lt(
    grid: tuple[int, int], batch: int, keys: int, side: int, most: float, memory: bool
) -> None:
    tiles = wafer(grid, memory=memory)
    plan = plan_chunked(decode(batch, keys), tiles, side)
    lt = run_lt(chunked_attention(plan), tiles.timing, offchip=tiles.offchip).cycles
    assert chunked_cycles(plan, tiles.timing) == pytest.approx(lt, rel=most / 100)


@pytest.mark.parametrize(
    ("shape", "sums"), [("8,16,1,2,64,24,16", 1.02), ("6,64,1,2,256,96,64", 1.02)]
)
def test_the_command_runs_it_at_every_level(shape: str, sums: float) -> None:
    cycles = {}
    for level in ("at", "lt", "perf"):
        options = KernelOptions(
            kernel=f"{_FILE}:flat_mla", chip="flat32-wafer", grid="4x4", shape=shape, dtype="fp8",
            level=level, memory="perf",
        )  # fmt: skip
        cycles[level] = run_kernel(options).cycles
    assert cycles["at"] == cycles["lt"]
    assert 1 / sums < cycles["perf"] / cycles["lt"] < sums


def test_memory_bounds_it_at_batch_256() -> None:
    kernel, tiles = REPLACED["ChunkedMLA"], wafer((32, 32))
    sizes = (256, 128, 1, 2, 4096, 576, 512)
    plan: ChunkedPlan = kernel.planned(sizes, tiles)
    cycles = kernel.closed_form(plan, tiles.timing)
    free = kernel.without_memory(plan)
    assert cycles > 1.2 * kernel.closed_form(free, tiles.timing) > 1.2 * plan.tile_matrix_cycles


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (shaped(1, 128, 2, 4098, 576, 512), "found 4098 keys on 32 columns"),
        (shaped(1, 128, 2, 4096, 576, 511), "values of 511 elements in 4 chunks"),
        (shaped(1, 128, 2, 8192, 576, 512), "a slice takes"),
        (replace(decode(1), latent=False), "allowed: --latent"),
    ],
)
def test_what_it_cannot_do_is_told(shape: AttentionShape, text: str) -> None:
    with pytest.raises(InputError, match=text):
        plan_chunked(shape, wafer((32, 32)))
