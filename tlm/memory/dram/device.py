"""A DRAM device: one pseudo-channel, its shape and its times in ticks."""

from dataclasses import dataclass, fields

from tlm.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A pseudo-channel. Times are in ticks, from a command's first tick to the next one's.

    Attributes:
        name: What it is called.
        source: Where the figures come from.
        tick_ns: Length of a tick.
        burst_bytes: Bytes of a column command.
        bank_groups: Bank groups, a power of two.
        banks_per_group: Banks of a group, a power of two.
        row_bits: Bits of a row number.
        column_bits: Bits of a column number; a column is a burst.
        t_rcd_rd: This and what follows to ``t_rc_ref``, but t_refi: times between commands, as the
            table of standard.py has them; ``t_faw`` is a window of four activates.
        t_refi: Refresh to refresh, on average.
        rl: Read to its first beat.
        wl: Write to its first beat.
        bl: Length of a burst.
        activate_ticks: Ticks for which an activate holds the row command bus.
        edge_ticks: Columns, activates and refreshes begin at multiples of it: 2 where a tick is
            half a clock and these need the rising edge.
    """

    name: str
    source: str
    tick_ns: float
    burst_bytes: int
    bank_groups: int
    banks_per_group: int
    row_bits: int
    column_bits: int
    t_rcd_rd: int
    t_rcd_wr: int
    t_rp: int
    t_ras: int
    t_rc: int
    t_rrd_s: int
    t_rrd_l: int
    t_faw: int
    t_ccd_s: int
    t_ccd_l: int
    t_rtw: int
    t_wtr_s: int
    t_wtr_l: int
    t_rtp: int
    t_wtp: int
    t_rfc: int
    t_refi: int
    t_rp_ref: int
    t_rc_ref: int
    rl: int
    wl: int
    bl: int
    t_ppd: int = 1
    activate_ticks: int = 1
    edge_ticks: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and value <= 0:
                raise InputError(f"device {self.name}: {field.name}: {value}; must be above 0")
        for name in ("bank_groups", "banks_per_group"):
            count = getattr(self, name)
            if count & (count - 1):
                raise InputError(f"device {self.name}: {name}: {count}; must be a power of two")
        if self.edge_ticks > 2:
            raise InputError(f"device {self.name}: edge_ticks: {self.edge_ticks}; must be 1 or 2")

    @property
    def banks(self) -> int:
        """Banks in all."""
        return self.bank_groups * self.banks_per_group

    @property
    def bursts(self) -> int:
        """Addresses, in bursts."""
        return self.banks << (self.row_bits + self.column_bits)

    def in_bursts(self, option: str, size_bytes: int) -> int:
        """A size in bursts.

        Raises:
            InputError: naming the option, if it is not whole bursts that the device has.
        """
        least, most = self.burst_bytes, self.burst_bytes * self.bursts
        if not least <= size_bytes <= most or size_bytes % least:
            raise InputError(
                f"{option}: found {size_bytes}; allowed: multiples of {least}, {least} to {most}"
            )
        return size_bytes // least
