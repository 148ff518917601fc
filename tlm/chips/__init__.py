"""Chip profiles: what a machine is, with the source of every figure."""

from tlm.chips.profile import Chip, chip_names, load_chip

__all__ = ["Chip", "chip_names", "load_chip"]
