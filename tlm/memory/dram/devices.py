"""DRAM devices: organisations and speeds of HBM, each with its source."""

from dataclasses import replace

from tlm.memory.dram.standard import HALF_CLOCKS, WHOLE_CLOCKS, Organisation, Speed, hbm_device

HBM2_8GB = Organisation(
    "HBM2 8Gb", bank_groups=4, banks_per_group=4, row_bits=16, column_bits=5, rfc_ns=350
)
HBM3_4GB = Organisation(
    "HBM3 4Gb", bank_groups=4, banks_per_group=4, row_bits=14, column_bits=5, rfc_ns=260
)
HBM4_32GB_4HI = Organisation(
    "HBM4 32Gb 4-high", bank_groups=2, banks_per_group=8, row_bits=14, column_bits=5, rfc_ns=400
)
HBM2_2000 = Speed("2000 Mb/s", clock_ns=1.0, clocks={
    "nCL": 14, "nCWL": 5, "nBL": 2, "nRCDRD": 14, "nRCDWR": 12, "nRP": 14, "nRAS": 34, "nRC": 48,
    "nWR": 16, "nRTP": 5, "nRRDS": 4, "nRRDL": 4, "nFAW": 15, "nCCDS": 2, "nCCDL": 4, "nWTRS": 6,
    "nWTRL": 8, "nRTW": 13, "nPPD": 1,
})  # fmt: skip
HBM3_6400 = Speed("6400 Mb/s", clock_ns=0.625, clocks={
    "nCL": 20, "nCWL": 10, "nBL": 2, "nRCDRD": 31, "nRCDWR": 15, "nRP": 26, "nRAS": 45, "nRC": 72,
    "nWR": 33, "nRTP": 9, "nRRDS": 4, "nRRDL": 5, "nFAW": 24, "nCCDS": 2, "nCCDL": 4, "nWTRS": 7,
    "nWTRL": 10, "nRTW": 20, "nPPD": 2,
})  # fmt: skip
HBM4_8000 = Speed("8000 Mb/s", clock_ns=0.5, clocks={
    "nCL": 20, "nCWL": 10, "nBL": 2, "nRCDRD": 39, "nRCDWR": 19, "nRP": 33, "nRAS": 57, "nRC": 90,
    "nWR": 42, "nRTP": 12, "nRRDS": 5, "nRRDL": 7, "nFAW": 30, "nCCDS": 2, "nCCDL": 4, "nWTRS": 9,
    "nWTRL": 13, "nRTW": 25, "nPPD": 2,
})  # fmt: skip
HBM2 = hbm_device("hbm2", HBM2_8GB, HBM2_2000, WHOLE_CLOCKS)
HBM3 = hbm_device("hbm3", HBM3_4GB, HBM3_6400, HALF_CLOCKS)
HBM4 = hbm_device("hbm4", HBM4_32GB_4HI, HBM4_8000, HALF_CLOCKS)
DEVICES = {device.name: device for device in (HBM2, HBM3, HBM4)}
# rtl/memory/memory_channel.sv with its defaults: commands take a cycle, and refresh waits as an
# activate does.
RTL_HBM2 = replace(
    HBM2,
    name="rtl",
    source="rtl/memory/README.md",
    row_bits=14,
    t_rp_ref=HBM2.t_rp,
    t_rc_ref=HBM2.t_rc,
    activate_ticks=1,
)
