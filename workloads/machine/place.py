"""What a kernel has to know of the machine that it is planned for."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tlm.chips import Chip
from tlm.chips.parts import (
    combines_in_network,
    matrix_engine,
    offchip_channels,
    vector_engine,
)
from tlm.chips.profile import ChipSoftware
from tlm.compiled import law
from tlm.compute.base import Compute, ceil_div
from tlm.compute.tile_engines import MatrixEngine
from tlm.compute.vector_unit import VectorUnit
from tlm.errors import InputError
from tlm.interconnect.transfer_times import arrival_cycles
from tlm.interconnect.zero_load import NocTiming
from tlm.offchip.edge import Edge
from workloads.machine.kv_levels import KvLevels
from workloads.machine.order import Order, tile_order


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Some rows and columns of a chip's tiles that lie side by side.

    Attributes:
        row: The first row of the chip.
        col: The first column.
        rows: Rows of tiles.
        cols: Columns.
    """

    row: int
    col: int
    rows: int
    cols: int

    def check_within(self, chip: Chip) -> None:
        """Hold that a chip has these tiles.

        Raises:
            InputError: if not.
        """
        rows, cols = chip.grid.rows, chip.grid.cols
        inside = 0 <= self.row <= rows - self.rows and 0 <= self.col <= cols - self.cols
        if not inside or min(self.rows, self.cols) < 1:
            raise InputError(
                f"place: found {self.rows}x{self.cols} tiles from row {self.row}, column "
                f"{self.col} on; allowed on '{chip.name}': some of its {rows}x{cols}"
            )


@dataclass(frozen=True, slots=True)
class Place:
    """A rectangle of a chip's tiles.

    Attributes:
        rows: Rows of tiles that the kernel may use.
        cols: Columns.
        timing: Of the network.
        element_bits: Bits of an operand.
        sum_bits: Bits of a sum of products.
        matrix: The matrix engine.
        vector: The vector engine.
        tile_bytes: Memory of a tile that kernels have.
        in_network: Whether routers combine the operands of reductions.
        whole_lines: Whether each line of a block begins in a flit of its own: a row, or of an
            operand of the matrix engine the elements that it takes together. So blocks lie in
            the project's own tiles; else they are packed.
        after_vector: The matrix engine for an operand that the vector engine has made; None: as
            for any other.
        offchip: Channels of off-chip memory from which blocks are loaded; None: the time of that
            memory is not counted.
        origin: Row and column of the chip where the rectangle begins.
        kv: What keys and values have of its memory beside.
        software: What cores do in software at the ends of transfers.
        placement: How a ring lies on the tiles (`workloads.machine.order`).
    """

    rows: int
    cols: int
    timing: NocTiming
    element_bits: int
    sum_bits: int
    matrix: Compute
    vector: VectorUnit
    tile_bytes: int = 2**62
    in_network: bool = True
    whole_lines: bool = False
    after_vector: Compute | None = None
    offchip: Edge | None = None
    origin: tuple[int, int] = (0, 0)
    kv: KvLevels = KvLevels()
    software: ChipSoftware = ChipSoftware()
    placement: str = "linear"

    def __post_init__(self) -> None:
        if self.rows < 1 or self.cols < 1:
            raise InputError(f"grid {self.rows}x{self.cols}: a kernel needs a tile")

    def __hash__(self) -> int:
        """Of some fields: searches of plans keep figures by places, and ask for many."""
        return hash((self.rows, self.cols, self.origin, self.tile_bytes))

    def square_side(self) -> int:
        """Tiles along each edge of the grid.

        Raises:
            InputError: if it is not square.
        """
        if self.rows != self.cols:
            raise InputError(f"grid {self.rows}x{self.cols}: this kernel runs on square grids")
        return self.rows

    @property
    def order(self) -> Order:
        """The tiles as a ring passes them, each by its row and column of the rectangle.

        Raises:
            InputError: for an unknown placement, or a ring on a rectangle that has none.
        """
        return tile_order(self.placement, self.rows, self.cols)

    def keeping(self, kv: KvLevels) -> "Place":
        """The same with memory set aside for keys and values, an equal share of every tile's."""
        of_a_tile = ceil_div(kv.sram, self.rows * self.cols)
        return replace(self, kv=kv, tile_bytes=self.tile_bytes - of_a_tile)

    @property
    def relay_cycles(self) -> int | None:
        """From a word's arrival at a tile that streams a sum to its leaving; None without streams.

        The arrival at any tile is a part of its stage.
        """
        if self.software.stage_cycles is None:
            return None
        return max(1, self.software.stage_cycles - arrival_cycles(self.timing, 0, 1))

    @property
    def streams(self) -> bool:
        """Whether tiles stream sums: word by word, or the project's own part by part."""
        return self.relay_cycles is not None or self.whole_lines

    def method(self, chosen: str | None) -> str:
        """How parts of a reduction come together: as chosen, else in the network or by a tree.

        Raises:
            InputError: if the network was chosen, and does not combine, or a tree whose root is
                where its groups put it.
        """
        if chosen is None:
            return "network" if self.in_network else "tree"
        if chosen == "k-tree":
            raise InputError(
                "--collective: found 'k-tree'; this kernel chooses its roots: "
                "choose network, chain, tree or sequential"
            )
        if chosen == "network" and not self.in_network:
            raise InputError(
                "--collective: found 'network'; this chip's routers do not combine operands: "
                "choose chain, tree or sequential"
            )
        return chosen

    def word_columns(self, columns: int) -> int:
        """Sums of a row, those of padding among them where rows are whole flits."""
        word = 8 * self.timing.flit_bytes // self.sum_bits
        return ceil_div(columns, word) * word

    def flits(self, lines: int, elements: int, bits: int) -> int:
        """Flits of a block of some lines of some elements."""
        flits: int = block_flits(
            self.whole_lines, 8 * self.timing.flit_bytes, lines, elements, bits
        )
        return flits


@law
def block_flits(whole_lines: bool, flit_bits: int, lines: Any, elements: Any, bits: Any) -> Any:
    """`Place.flits` of flits of so many bits: numbers or arrays."""
    if whole_lines:
        return lines * -(-elements * bits // flit_bits)
    return -(-lines * elements * bits // flit_bits)


def chip_place(
    chip: Chip,
    tiles: Rectangle | tuple[int, int],
    timing: NocTiming,
    element_bits: int,
    sum_bits: int,
    *,
    memory: bool = False,
    share: Fraction = Fraction(1),
) -> Place:
    """A rectangle of a chip's tiles, on a network of some timing.

    Args:
        chip: The chip.
        tiles: The rectangle; rows and columns alone: in the lower left corner, at the channels.
        timing: Of the network.
        element_bits: Bits of an operand.
        sum_bits: Bits of a sum of products.
        memory: Whether the time of off-chip memory counts.
        share: What it has of the channels of its columns, which other places may use besides.

    Raises:
        InputError: if the calibration is missing or stale, the profile has no vector engine, or the
            chip not those tiles, or no memory of at least a byte a cycle for them.
    """
    if isinstance(tiles, Rectangle):
        tiles.check_within(chip)
    else:
        rows, cols = tiles
        tiles = Rectangle(max(0, chip.grid.rows - rows), 0, rows, cols)
    matrix, after_vector = matrix_engine(chip, element_bits), None
    if isinstance(matrix, MatrixEngine):
        # Results of passes lie row by row, and so pass by weights at rest (rtl/tile/README.md).
        after_vector = replace(matrix, dataflow="weight-stationary")
    return Place(
        rows=tiles.rows,
        cols=tiles.cols,
        timing=timing,
        element_bits=element_bits,
        sum_bits=sum_bits,
        matrix=matrix,
        vector=vector_engine(chip),
        tile_bytes=int(chip.tile.sram_kib * 1024),
        in_network=combines_in_network(chip),
        whole_lines=chip.calibration is not None,
        after_vector=after_vector,
        offchip=_channels_of(chip, tiles, share) if memory else None,
        origin=(tiles.row, tiles.col),
        software=chip.software,
    )


def _channels_of(chip: Chip, tiles: Rectangle, share: Fraction) -> Edge:
    """A rectangle's share of a chip's off-chip memory."""
    below = max(0, chip.grid.rows - tiles.row - tiles.rows)
    return _one(offchip_channels(chip, tiles.rows, tiles.cols, rows_below=below, share=share))


@lru_cache(64)
def _one(channels: Edge) -> Edge:
    """The same object for equal ones: what is kept by places is found sooner."""
    return channels
