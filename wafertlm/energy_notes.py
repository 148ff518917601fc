"""What a figure of energy leaves out, or why there is none, in words."""

from tlm.chips import Chip
from tlm.chips.gpu import GpuBox


def energy_notes(chip: Chip | GpuBox, energy_j: float | None) -> list[str]:
    """One line at most.

    Args:
        chip: What took the energy.
        energy_j: The figure.
    """
    if chip.energy is None:
        return ["energy: the chip's profile has no figures for it"]
    if energy_j is None:
        return [
            "energy: not known: by the profile hops or local memory take some, but plans of "
            "kernels do not say how many bytes they move there"
        ]
    if isinstance(chip, Chip) and chip.dies is not None:
        return ["energy: of the dies alone: links between them have no figures"]
    return []
