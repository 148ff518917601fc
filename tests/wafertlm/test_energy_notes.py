"""What is said of a figure of energy."""

from tlm.chips import load_chip
from wafertlm.energy_notes import energy_notes


def test_what_is_missing_is_told() -> None:
    flat32, wafer = load_chip("flat32"), load_chip("flat32-wafer")
    assert energy_notes(flat32, 1.0) == []
    assert energy_notes(wafer, None) == ["energy: the chip's profile has no figures for it"]
    (note,) = energy_notes(flat32, None)
    assert note.startswith("energy: not known: by the profile hops or local memory take some")
    (note,) = energy_notes(wafer.model_copy(update={"energy": flat32.energy}), 1.0)
    assert note == "energy: of the dies alone: links between them have no figures"
