"""Nodes of tile meshes, compiled with the driver that joins and runs them; built once."""

from dataclasses import dataclass, fields
from pathlib import Path

from cosim.verilated.library import Library
from cosim.verilog import EDGE_FILES, TILE_SOURCES, parameter_name
from tlm.chips import Chip
from tlm.chips.parts import noc_timing, own_tile
from tlm.errors import InputError
from tlm.tiles.layout import WORD_BITS

#: What the driver sees inside.
_SHOWN = Path(__file__).with_name("shown.vlt")
_MOST_SIDE = 16
_MOST_TILES = 64


@dataclass(frozen=True, slots=True)
class TileModel:
    """A mesh of ``rows`` x ``cols`` tiles.

    The other fields are parameters of rtl/tile/tile_mesh.sv. With ``memory`` the last row has
    memory channels in the place of tiles. With ``waves`` a wave shows the signals inside, too.
    """

    rows: int
    cols: int
    fifo_depth: int = 4
    output_depth: int = 0
    stages: int = 1
    y_first: bool = False
    loopback: bool = True
    reduce_stages: int = 1
    operand_bits: int = 16
    banks: int = 8
    bank_depth: int = 512
    queue_depth: int = 256
    outstanding: int = 2
    memory: bool = False
    memory_row_width: int = 4
    waves: bool = False

    def __post_init__(self) -> None:
        rows, cols, most_rows = self.tile_rows, self.cols, _MOST_SIDE - self.memory
        sides = 1 <= rows <= most_rows and 1 <= cols <= _MOST_SIDE
        if not sides or rows * cols > _MOST_TILES:
            raise InputError(
                f"tiles: found {rows}x{cols} in Verilog; allowed: 1 to {most_rows} rows, 1 to "
                f"{_MOST_SIDE} columns, {_MOST_TILES} tiles"
            )

    @property
    def tiles(self) -> int:
        """How many there are, and memory channels."""
        return self.rows * self.cols

    @property
    def name(self) -> str:
        """What it is, for messages."""
        return f"tile mesh {self.rows}x{self.cols}"

    @property
    def tile_rows(self) -> int:
        """Rows of tiles."""
        return self.rows - self.memory

    @property
    def channel_words(self) -> int:
        """Words of a memory channel: 16 banks, rows of 1 KB."""
        return 16 * 128 << self.memory_row_width

    @property
    def array_size(self) -> int:
        """Rows, and columns, of a tile's systolic array."""
        return 64 // self.operand_bits

    @property
    def memory_words(self) -> int:
        """Words of a tile's scratchpad."""
        return self.banks * self.bank_depth

    @property
    def flit_bits(self) -> int:
        """Bits of a flit (rtl/noc/noc_pkg.sv): 96 of payload, and a header with all features."""
        indices = max((self.rows - 1).bit_length(), 1) + max((self.cols - 1).bit_length(), 1)
        return 96 + indices + self.rows + self.cols + self.fifo_depth.bit_length() + 4

    def parameters(self) -> dict[str, int]:
        """Parameters of tile_mesh.sv."""
        renamed = {"operand_bits": "OperandWidth"}
        names = [field.name for field in fields(self) if field.name != "waves"]
        return {renamed.get(name, parameter_name(name)): int(getattr(self, name)) for name in names}

    def build(self) -> Path:
        """The library of the model, from the cache if it is there.

        Raises:
            SimulationError: carrying the end of the tools' output.
        """
        *files, node = TILE_SOURCES
        values = {
            "ROWS": self.rows,
            "COLS": self.cols,
            "COUNT_BITS": self.fifo_depth.bit_length(),
            "FLIT_WORDS": -(-self.flit_bits // 32),
            "MEMORY": int(self.memory),
        }
        library = Library(
            name=self.name,
            top=node.stem,
            text=node.read_text(),
            driver=Path(__file__).with_name("driver.cpp"),
            defines={f"TILE_{name}": value for name, value in values.items()},
            sources=(_SHOWN, *files, *EDGE_FILES),
            flags=[f"-G{name}={value}" for name, value in self.parameters().items()],
            waves=self.waves,
        )
        return library.build()


def tile_model(
    chip: Chip, grid: tuple[int, int], *, waves: bool = False, memory: bool = False
) -> TileModel:
    """Tiles of a chip that is the project's own, in Verilog, and memory channels below them."""
    tile = own_tile(chip)
    assert tile is not None
    return TileModel(
        grid[0] + memory,
        grid[1],
        fifo_depth=noc_timing(chip).fifo_depth,
        operand_bits=WORD_BITS // tile.array_size,
        banks=tile.banks,
        bank_depth=tile.words // tile.banks,
        waves=waves,
        memory=memory,
    )
