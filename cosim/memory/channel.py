"""The memory channel of rtl/memory by its parameters."""

from dataclasses import asdict, dataclass, field, fields

from cosim.verilog import parameter_name
from tlm.errors import InputError


@dataclass(frozen=True, slots=True)
class Timings:
    """Times of a channel in cycles; the defaults are the HBM2 of rtl/memory/README.md.

    Attributes:
        t_rcd_rd: Activate to read.
        t_rcd_wr: Activate to write.
        t_rp: Precharge to activate and to refresh.
        t_ras: Activate to precharge.
        t_rc: Activate to activate of a bank, and to refresh.
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
        t_rfc: Refresh to activate and to refresh.
        t_refi: Refresh to refresh, on average.
        rl: Read to its first beat.
        wl: Write to its first beat.
        bl: Length of a burst.
    """

    t_rcd_rd: int = 15
    t_rcd_wr: int = 13
    t_rp: int = 13
    t_ras: int = 35
    t_rc: int = 48
    t_rrd_s: int = 4
    t_rrd_l: int = 4
    t_faw: int = 15
    t_ccd_s: int = 2
    t_ccd_l: int = 4
    t_rtw: int = 13
    t_wtr_s: int = 13
    t_wtr_l: int = 15
    t_rtp: int = 5
    t_wtp: int = 23
    t_rfc: int = 349
    t_refi: int = 3900
    rl: int = 14
    wl: int = 5
    bl: int = 2

    def __post_init__(self) -> None:
        for name, cycles in asdict(self).items():
            if cycles < 1:
                raise InputError(f"{name}: {cycles} cycles; must be at least 1")

    def refresh_delay_cycles(self) -> int:
        """Longest time from a refresh falling due to its command: rows are closed, then wait."""
        closing = max(self.t_ras, self.t_rtp, self.t_wtp)
        return max(closing + self.t_rp, self.t_rc)


@dataclass(frozen=True, slots=True)
class ChannelParameters:
    """A memory channel; the defaults are those of rtl/bench/memory_bench.sv.

    Attributes:
        bank_groups: Bank groups, a power of two.
        banks_per_group: Banks of a group, a power of two.
        row_width: Bits of a row number.
        col_width: Bits of a column number.
        data_width: Bits of a burst.
        queue_depth: Requests that wait.
        response_depth: Responses that wait or are under way.
        pass_limit: Requests served before the oldest after which it becomes urgent.
        timings: Times in cycles.
    """

    bank_groups: int = 4
    banks_per_group: int = 4
    row_width: int = 8
    col_width: int = 5
    data_width: int = 256
    queue_depth: int = 32
    response_depth: int = 16
    pass_limit: int = 32
    timings: Timings = field(default_factory=Timings)

    @property
    def banks(self) -> int:
        """Banks in all."""
        return self.bank_groups * self.banks_per_group

    @property
    def bursts(self) -> int:
        """Addresses."""
        return self.banks << (self.row_width + self.col_width)

    def address(self, row: int, bank: int = 0, group: int = 0, column: int = 0) -> int:
        """The address of a place."""
        places = (
            ("row", row, 1 << self.row_width),
            ("bank", bank, self.banks_per_group),
            ("column", column, 1 << self.col_width),
            ("group", group, self.bank_groups),
        )
        whole = 0
        for name, number, count in places:
            if not 0 <= number < count:
                raise InputError(f"{name}: {number}; must be 0 to {count - 1}")
            whole = whole * count + number
        return whole

    def parameters(self) -> dict[str, int]:
        """Values of the Verilog's parameters."""
        names = [each.name for each in fields(ChannelParameters) if each.name != "timings"]
        values = {name: getattr(self, name) for name in names} | asdict(self.timings)
        return {parameter_name(name): value for name, value in values.items()}
