"""How a model lies on groups of tiles and on dies: what options of several commands are called."""

TP_HELP = (
    "Tiles of a group, which share each product; default: as many as --pp and --dp leave a group."
)
PP_HELP = "Groups of tiles, or of dies, with some layers each, one behind another."
DP_HELP = "Pipelines of groups that serve requests apart; default: as many as there is room for."
MICRO_BATCH_HELP = (
    "Most decoding requests that pass the stages together; default: a share of all a stage."
)
PARTITION_HELP = "Of products in a group: input, mn, k, 2d or auto (default)."
PLACEMENT_HELP = "Order of a group's tiles: linear (default), interleave, ring or mesh."
#: Options of tiles in groups; ``pp`` is one of dies of a wafer, too.
ON_GROUPS = ("tp", "dp", "micro_batch", "partition", "placement")
#: Options of pools of tiles in groups.
ON_POOLS = (
    *("prefill_tp", "prefill_pp", "prefill_dp", "decode_tp", "decode_pp", "decode_dp"),
    *("pd_placement", "decode_chip"),
)
ROUTINGS = ("balanced", "popular")
ROUTING_HELP = "Of tokens to experts on dies: balanced (default), or popular."
MERGE_HELP = "Send a token to a die once, whatever number of its experts it goes to."
OVERLAP_HELP = "Let halves of a batch take turns on dies and links."
#: Options of wafers of dies; groups of tiles have ``pp``, too.
ON_DIES = ("pp", "routing", "merge_copies", "overlap")
