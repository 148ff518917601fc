"""What both comparisons run: kernels on the project's own tiles, each tile with its block."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tlm.chips import Chip, load_chip
from tlm.chips.parts import noc_timing, own_tile
from tlm.interconnect.zero_load import NocTiming
from tlm.tiles.layout import SUM_BITS, WORD_BITS
from tlm.tiles.timing import TileTiming
from workloads.kernels.catalogue import ATTENTION, GEMM, GROUPS, HEADS, LATENT, SUMS, Kernel, Sizes
from workloads.machine.place import Place, chip_place

Grid = tuple[int, int]
#: Blocks of a tile by what a kernel computes, several of each. "gemm": M, N, K of its product.
#: "gemv": K, N of its block of the matrix. "softmax": rows and columns of its scores, or of
#: any rows. "attention": rows of Q, keys, depth, depth of V, a head for each column of tiles.
Blocks = Mapping[str, tuple[Sizes, ...]]
#: Products of a grouped one.
_GROUPS = 3
#: Ways to stream sums, of kernels that have others where the network sums.
STREAMED = {"mesh-gemv": ("stream", "stream-tree"), "mesh-gemm-t": ("stream",)}
#: The third size of kernels of rows: elements of a head, and rows that come to one.
_THIRD = {HEADS: (16,), SUMS: (4,)}


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles of the project's own, with or without channels of off-chip memory below them."""

    grid: Grid
    dtype: str = "int8"
    memory: bool = False

    @property
    def chip(self) -> Chip:
        """The chip that they are all of."""
        rows, cols = self.grid
        return load_chip(f"rtl-{rows}x{cols}").for_dtype(self.dtype)

    @property
    def timing(self) -> NocTiming:
        """What their network costs."""
        return noc_timing(self.chip)

    @property
    def tile(self) -> TileTiming:
        """What one of them costs."""
        tile = own_tile(self.chip)
        assert tile is not None
        return tile

    @property
    def place(self) -> Place:
        """What kernels are planned for."""
        element_bits = WORD_BITS // self.tile.array_size
        sizes = (element_bits, SUM_BITS)
        return chip_place(self.chip, self.grid, self.timing, *sizes, memory=self.memory)

    def label(self, kernel: Kernel, sizes: Sizes) -> str:
        """Tiles and the sizes of a problem in words."""
        names = kernel.form.text.split(",")
        shown = " ".join(f"{n}={size}" for n, size in zip(names, sizes, strict=True))
        dtype = "" if self.dtype == "int8" else f" {self.dtype}"
        return f"{self.chip.name}{dtype}{' with memory' if self.memory else ''}: {shown}"


def problems(
    name: str, kernel: Kernel, grid: Grid, blocks: Blocks, *, unit: int, sharers: int
) -> Iterator[Sizes]:
    """Sizes that give the tiles of a grid their blocks.

    Args:
        name: The kernel's.
        kernel: The kernel.
        grid: Rows and columns of tiles.
        blocks: The blocks, but for scores in units.
        unit: Elements of a unit.
        sharers: Tiles that share the keys of attention.
    """
    rows, cols = grid
    if kernel.form in (ATTENTION, LATENT):
        for queries, keys, *depths in blocks["attention"]:
            lengths = (rows * queries, sharers * keys, *depths)
            kv_heads = 1 if kernel.form == LATENT else cols
            yield 1, cols, kv_heads, *(length * unit for length in lengths)
    elif kernel.form not in (GEMM, GROUPS):
        for height, width in blocks["softmax"]:
            third = _THIRD.get(kernel.form, ())
            wide = width * math.prod(third) if kernel.form == HEADS else width
            yield rows * height, cols * wide, *third
    elif name.endswith("gemv"):
        for depth, width in blocks["gemv"]:
            yield 1, cols * width * unit, rows * depth * unit
    else:
        for m, n, k in blocks["gemm"]:
            product = rows * m * unit, cols * n * unit, math.lcm(rows, cols) * k * unit
            yield product if kernel.form == GEMM else (_GROUPS, *product)
