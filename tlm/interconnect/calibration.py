"""The measured timing of the project's own router."""

from tlm.calibrated import load_result
from tlm.interconnect.zero_load import NocTiming


def rtl_timing() -> NocTiming:
    """Timing of rtl/noc as the stored calibration has it.

    Raises:
        InputError: if a result is missing or stale.
    """
    unicast = load_result("unicast")
    return NocTiming(
        hop_cycles=unicast.integer("hop_cycles"),
        ejection_cycles=unicast.integer("ejection_cycles"),
        fifo_depth=load_result("buffering").integer("fifo_depth"),
        multicast_gap_cycles=load_result("multicast").integer("gap_cycles"),
        flit_bytes=8,
        reduce_cycles=load_result("reduction").integer("reduce_cycles"),
    )
