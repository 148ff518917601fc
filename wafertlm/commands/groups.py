"""Under which headings ``--help`` lists the options of a command."""

from collections.abc import Iterable, Iterator

#: Headings, in their order, and the names of the options below each.
_GROUPS = {
    "Load": """
        traffic rate cycles packet_flits multicast_fraction saturation seed
        collective@noc group@noc source flits
        collective@dies bytes group@dies piece_bytes kernel_s repeat micro_batches
        pattern queue_depth requesters block_bytes stride_bytes write_fraction grain requests@memory
        prefill decode trace workload rate_rps arrival_cv requests rate_scale
        slo_ttft_s slo_tbt_ms find_rate attainment seeds
        """,
    "Problem": "shape dtype phase tokens methods latent causal weight_bits resident skewed vary",
    "Model": "model weights draft_tokens acceptance",
    "Chip": """
        chip mesh rtl fifo_depth stages unprotected set tiles device policy map@memory channels
        interleave_bytes decode_chip router changes payload_bits liberty
        """,
    "Levels": "level noc memory compute links allow_stale",
    "Mapping": """
        grid collective groups schedule group heads_per_group partition placement stage_rows
        receive_buffers serial at_root tp pp dp micro_batch prefill_tp prefill_pp prefill_dp
        decode_tp decode_pp decode_dp expert_parallel routing merge_copies overlap pd_placement
        prefill_units decode_units link_bytes_per_s link_latency_s kv_tokens kv_sram_tokens
        """,
    "Scheduler": """
        scheduler prefill_scheduler token_budget layer_groups budget_units chunk_units max_sequences
        """,
    "Campaign": """
        quick store_quick force number worst finding recorded has_gates has_toggles toggles
        """,
    "Run": """
        storage trials seed@explore threads workers kept checkpoint checkpoint_every config
        print_config
        """,
    "Output": """
        out copied_to plot plots requests_csv wave waves map_path timeline region every folder
        as_json as_list
        """,
}
_OTHERS = "Other options"
_FOUND = {name: title for title, names in _GROUPS.items() for name in names.split()}


def group_of(command: str, option: str) -> str:
    """The heading of an option; some names mean another thing in a command."""
    found = _FOUND.get(f"{option}@{command}") or _FOUND.get(option)
    return _OTHERS if found is None else found


def grouped(
    command: str, options: Iterable[tuple[str, tuple[str, str]]]
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The headings of a command in their order, each with what is written below it.

    Args:
        command: Its name.
        options: Names of its options, each with its lines of help.
    """
    below: dict[str, list[tuple[str, str]]] = {title: [] for title in (*_GROUPS, _OTHERS)}
    for name, told in options:
        below[group_of(command, name)].append(told)
    return ((title, told) for title, told in below.items() if told)
