"""Chip profiles: what a machine is, with the source of every figure."""

from tlm.chips.profile import Chip, TileEnergy, chip_names, load_chip

__all__ = ["Chip", "TileEnergy", "chip_names", "load_chip"]
