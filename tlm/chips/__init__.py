"""Chip profiles: what a machine is, with the source of every figure."""

from tlm.chips.find import AnyChip, find_chip, find_tiles
from tlm.chips.profile import Chip, TileEnergy, chip_names, load_chip

__all__ = [
    "AnyChip",
    "Chip",
    "TileEnergy",
    "chip_names",
    "find_chip",
    "find_tiles",
    "load_chip",
]
