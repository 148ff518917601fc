"""DRAM devices: one pseudo-channel each, its shape and its times as a standard's table has them."""

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
        t_rcd_rd: Activate to read.
        t_rcd_wr: Activate to write.
        t_rp: Precharge to activate.
        t_ras: Activate to precharge.
        t_rc: Activate to activate of a bank.
        t_rrd_s: Activate to activate of any bank.
        t_rrd_l: Activate to activate in a group.
        t_faw: Window that sees four activates at most.
        t_ccd_s: Read to read and write to write of any bank.
        t_ccd_l: The same in a group.
        t_rtw: Read to write of any bank.
        t_wtr_s: Write to read of any bank.
        t_wtr_l: Write to read in a group.
        t_rtp: Read to precharge.
        t_wtp: Write to precharge.
        t_rfc: Refresh to activate.
        t_refi: Refresh to refresh, on average.
        t_rp_ref: Precharge to refresh.
        t_rc_ref: Activate to refresh.
        rl: Read to its first beat.
        wl: Write to its first beat.
        bl: Length of a burst.
        t_ppd: Precharge to precharge of any bank.
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

    @property
    def peak_bytes_per_ns(self) -> float:
        """Bandwidth of the data bus."""
        return self.burst_bytes / (self.bl * self.tick_ns)


# The times follow from the presets by Ramulator's rule: a time counts from the end of a command on
# its bus to the end of the next one's, so an activate of two or three ticks shifts those it is in.
HBM2 = Device(
    name="hbm2", source="Ramulator 2.1, HBM2 8Gb organisation, 2000 Mb/s preset",
    tick_ns=1.0, burst_bytes=32, bank_groups=4, banks_per_group=4, row_bits=16, column_bits=5,
    t_rcd_rd=15, t_rcd_wr=13, t_rp=13, t_ras=35, t_rc=48, t_rrd_s=4, t_rrd_l=4, t_faw=15,
    t_ccd_s=2, t_ccd_l=4, t_rtw=13, t_wtr_s=13, t_wtr_l=15, t_rtp=5, t_wtp=23, t_rfc=349,
    t_refi=3900, t_rp_ref=14, t_rc_ref=49, rl=14, wl=5, bl=2, activate_ticks=2,
)  # fmt: skip
HBM3 = Device(
    name="hbm3", source="Ramulator 2.1, HBM3 4Gb organisation, 6400 Mb/s preset",
    tick_ns=0.3125, burst_bytes=32, bank_groups=4, banks_per_group=4, row_bits=14, column_bits=5,
    t_rcd_rd=63, t_rcd_wr=31, t_rp=50, t_ras=92, t_rc=144, t_rrd_s=8, t_rrd_l=10, t_faw=48,
    t_ccd_s=4, t_ccd_l=8, t_rtw=40, t_wtr_s=38, t_wtr_l=44, t_rtp=19, t_wtp=91, t_rfc=830,
    t_refi=12480, t_rp_ref=52, t_rc_ref=146, rl=40, wl=20, bl=4, t_ppd=4, activate_ticks=3,
    edge_ticks=2,
)  # fmt: skip
HBM4 = Device(
    name="hbm4", source="Ramulator 2.1, HBM4 32Gb 4-high organisation, 8000 Mb/s preset",
    tick_ns=0.25, burst_bytes=32, bank_groups=2, banks_per_group=8, row_bits=14, column_bits=5,
    t_rcd_rd=79, t_rcd_wr=39, t_rp=64, t_ras=116, t_rc=180, t_rrd_s=10, t_rrd_l=14, t_faw=60,
    t_ccd_s=4, t_ccd_l=8, t_rtw=50, t_wtr_s=42, t_wtr_l=50, t_rtp=25, t_wtp=109, t_rfc=1598,
    t_refi=15600, t_rp_ref=66, t_rc_ref=182, rl=40, wl=20, bl=4, t_ppd=4, activate_ticks=3,
    edge_ticks=2,
)  # fmt: skip
DEVICES = {device.name: device for device in (HBM2, HBM3, HBM4)}
