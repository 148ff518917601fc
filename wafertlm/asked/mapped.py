"""Options of a model on groups of tiles and on dies, by the chips that they are of."""

#: Options of tiles in groups; ``pp`` is one of dies of a wafer, too.
ON_GROUPS = ("tp", "dp", "micro_batch", "partition", "placement", "stage_rows")
#: Options of pools of tiles in groups.
ON_POOLS = (
    *("prefill_tp", "prefill_pp", "prefill_dp", "decode_tp", "decode_pp", "decode_dp"),
    *("pd_placement", "decode_chip"),
)
#: Options of wafers of dies; groups of tiles have ``pp``, too.
ON_DIES = ("pp", "routing", "merge_copies", "overlap")
ROUTINGS = ("balanced", "popular")
