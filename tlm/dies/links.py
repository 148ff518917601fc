"""Links between the dies of a wafer."""

from dataclasses import dataclass

from tlm.chips.profile import Chip
from tlm.errors import InputError, hold_least

TICKS_PER_S = 10**15


@dataclass(frozen=True, slots=True)
class DieMesh:
    """A mesh of dies; time is counted in ticks, sizes in units.

    Of a wafer ticks are femtoseconds and units bytes. A packet holds a link for its size times
    ``ticks_per_unit``; its head is at the next die ``hop_ticks`` after it was granted the link, and
    can go on at once. A die grants a link to a packet only if the next die's input buffer has room
    for all of it; that room has become free is known ``credit_ticks`` later.

    Attributes:
        rows: Rows of dies.
        cols: Columns.
        ticks_per_unit: Time of a unit on a link.
        port_ticks_per_unit: Time of a unit between a die and its router, each way.
        hop_ticks: Latency of a link with the router behind it.
        ejection_ticks: From a router to the die.
        credit_ticks: Latency of a credit on its way back.
        packet_units: Longest packet.
        buffer_units: Room of an input buffer.
    """

    rows: int
    cols: int
    ticks_per_unit: int
    port_ticks_per_unit: int
    hop_ticks: int
    ejection_ticks: int
    credit_ticks: int
    packet_units: int
    buffer_units: int

    def __post_init__(self) -> None:
        """Hold that packets can move.

        Raises:
            InputError: naming the field.
        """
        for name, least in (
            ("rows", 1),
            ("cols", 1),
            ("ticks_per_unit", 1),
            ("port_ticks_per_unit", 1),
            ("hop_ticks", 1),
            ("ejection_ticks", 0),
            ("credit_ticks", 0),
            ("packet_units", 1),
            ("buffer_units", self.packet_units),
        ):
            hold_least(name, getattr(self, name), least)

    @property
    def dies(self) -> int:
        """Number of dies."""
        return self.rows * self.cols


def die_mesh(chip: Chip) -> DieMesh:
    """The mesh of dies of a chip's profile, in femtoseconds and bytes.

    Raises:
        InputError: if the chip is a single die, or a byte takes no whole number of femtoseconds.
    """
    dies = chip.dies
    if dies is None:
        raise InputError(f"--chip: '{chip.name}' is a single die; the profile has no [dies]")
    latency = round(dies.link_latency_s * TICKS_PER_S)
    return DieMesh(
        rows=dies.rows,
        cols=dies.cols,
        ticks_per_unit=_ticks_per_byte(chip, "link_bytes_per_s", dies.link_bytes_per_s),
        port_ticks_per_unit=_ticks_per_byte(chip, "port_bytes_per_s", dies.port_bytes_per_s),
        hop_ticks=latency,
        ejection_ticks=0,
        credit_ticks=latency,
        packet_units=dies.packet_bytes,
        buffer_units=dies.buffer_bytes,
    )


def _ticks_per_byte(chip: Chip, field: str, bytes_per_s: float) -> int:
    ticks = TICKS_PER_S / bytes_per_s
    if round(ticks) < 1 or abs(ticks - round(ticks)) > 1e-9 * ticks:
        raise InputError(
            f"{chip.name}: dies.{field}: found {bytes_per_s:g}, {ticks:g} fs a byte; "
            "allowed: a whole number of fs a byte"
        )
    return round(ticks)
