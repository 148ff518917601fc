"""Square regions of a chip without off-chip memory, each with some layers of a model.

Weights, keys and values stay in the tiles. Where the layers do not fit into one region, tokens pass
from region to region: a pipeline. Weights are padded to the grid like the products; keys and values
are as wide as their heads. Embeddings and the output head lie in the tiles beside the regions.

Keys and values lie column by column over a region's rows. Concatenated they all go to one row of
tiles; shifted they are spread evenly over all rows (WaferLLM, section 4.3).
"""

from dataclasses import dataclass

from tlm.chips import Chip
from tlm.compute.base import ceil_div
from tlm.errors import InputError
from workloads.models import Model
from workloads.serving.price.grid_layer import width

_BYTES = 2  # of a weight, of a key's and a value's element


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions of a chip for a model.

    Attributes:
        side: Tiles along each edge of a region.
        count: Regions.
        layers_each: Layers of a region; the last one may have fewer.
        left_bytes: Of a tile, beside its weights; below 0 if they do not fit.
        token_bytes: Of the keys and values of a token in a tile that holds it.
    """

    side: int
    count: int
    layers_each: int
    left_bytes: int
    token_bytes: int

    @property
    def concat_tokens(self) -> int:
        """Tokens whose keys and values fit, if all go to one row of tiles."""
        return max(0, self.left_bytes // self.token_bytes)

    @property
    def shift_tokens(self) -> int:
        """The same if they are spread over all rows."""
        return self.side * self.concat_tokens

    def bubble_pct(self, items: int) -> float:
        """Part of the time in which a region stands still, of equal items in a row."""
        return 100 * (self.count - 1) / (self.count - 1 + items)

    def pipelined(self, total: float, longest: float) -> float:
        """Cycles of items that pass all regions one behind another.

        Args:
            total: Cycles of all items, as if one region after the other had them alone.
            longest: The same of the longest item, which fills and drains the pipeline.
        """
        return (total + (self.count - 1) * longest) / self.count


def regions_of(
    model: Model, chip: Chip, side: int, tiles: tuple[int, int] | None = None
) -> Regions:
    """As many regions of some side as there are tiles for, and no more than layers need.

    They are counted by tiles: how they lie on the wafer is not modelled.

    Args:
        model: Whose layers they have.
        chip: Whose tiles they are of.
        side: Tiles along each edge of a region.
        tiles: Rows and columns of the chip's tiles that there are; None: all.

    Raises:
        InputError: if there are fewer tiles.
    """
    rows, cols = tiles or (chip.grid.rows, chip.grid.cols)
    there = rows * cols // side**2
    if not there:
        raise InputError(f"--grid: chip '{chip.name}' has {rows}x{cols} tiles, found {side}x{side}")
    each = ceil_div(model.layers, there)
    kept = ceil_div(model.kv_heads * model.head_dim, side)
    left = int(chip.tile.sram_kib * 1024) - each * _layer_bytes(model, side)
    return Regions(side, ceil_div(model.layers, each), each, left, 2 * kept * _BYTES * each)


def _layer_bytes(model: Model, side: int) -> int:
    """Bytes of a layer's weights in a tile."""
    hidden, queries, ffn = (
        ceil_div(size, side) for size in (model.hidden, width(model), model.ffn_hidden or 0)
    )
    kept = ceil_div(model.kv_heads * model.head_dim, side)
    return _BYTES * hidden * (2 * queries + 2 * kept + 3 * ffn)
