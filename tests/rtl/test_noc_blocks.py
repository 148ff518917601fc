"""The network's blocks in Verilog, each alone.

The checks stand in the cocotb benches; here is how often each must have met what it is about.
"""

from collections.abc import Mapping

import pytest

from calibration.simulator import Simulation, build
from cosim.verilog import NOC_SOURCES
from tests.rtl.benches.block_check import Seen
from tests.rtl.benches.router_variant import RouterVariant
from tlm.calibrated import REPOSITORY

pytestmark = pytest.mark.rtl

_SOURCES = [source for source in NOC_SOURCES if source.stem != "mesh"]
_BENCHES = REPOSITORY / "rtl" / "bench"

#: By what they are about; the parameters are those of rtl/noc/router.sv.
_VARIANTS = {
    "two_stages": RouterVariant(rows=2, cols=4, depth=4, stages=2, reduce_stages=2),
    "y_first_with_output_buffers": RouterVariant(
        output_depth=2, y_first=True, loopback=False, reduce_stages=0
    ),
    "reductions_alone": RouterVariant(multicast=False, output_depth=3, stages=2, y_first=True),
    "multicasts_alone": RouterVariant(rows=4, cols=2, depth=3, reduction=False),
    "wormhole": RouterVariant(cut_through=False, payload_bits=24, element_bits=24),
    "unicasts_alone": RouterVariant(depth=2, cut_through=False, multicast=False, reduction=False),
}


@pytest.fixture(scope="module")
def blocks() -> Simulation:
    """One model of a 5-way arbiter and two FIFOs of depth 3."""
    return build("blocks_bench", [*_SOURCES, _BENCHES / "blocks_bench.sv"], {})


def router_of(variant: RouterVariant) -> Simulation:
    """A model of one router."""
    return build("router", _SOURCES, variant.parameters())


def assert_seen(
    model: Simulation,
    bench: str,
    least: dict[str, Seen],
    plan: Mapping[str, int] | None = None,
) -> None:
    """Every check of the bench has run, held, and seen at least this."""
    seen = model.run(f"tests.rtl.benches.{bench}", plan or {}, seed=1)
    assert list(seen) == list(least)
    short = {
        (check, what): (seen[check][what], count)
        for check, counts in least.items()
        for what, count in counts.items()
        if seen[check][what] < count
    }
    assert not short, f"seen too seldom: {short}"


def test_arbiter(blocks: Simulation) -> None:
    least: dict[str, Seen] = {
        "every_pointer_and_every_request": {"cases": 5 * 32},
        "a_waiting_request_sees_each_other_win_once_at_most": {"grants": 2000},
    }
    assert_seen(blocks, "arbiter_bench", least)


def test_fork_fifo(blocks: Simulation) -> None:
    least: dict[str, Seen] = {
        "random_packets_leave_by_their_branches": {
            "packets": 250,
            "full": 500,
            "empty": 500,
            "one_ahead_by_the_depth": 100,
            "done_waits": 100,
        },
        "a_branch_runs_ahead_by_the_depth_and_no_further": {"cycles": 12},
        "an_unblocked_fifo_passes_a_flit_a_cycle": {"flits": 14},
    }
    assert_seen(blocks, "fork_fifo_bench", least)


def test_fifo(blocks: Simulation) -> None:
    least: dict[str, Seen] = {
        "random_pushes_and_pops_are_those_of_a_queue": {
            "full": 500,
            "empty": 500,
            "pop_of_full": 200,
            "pushed_and_popped": 500,
            "passed": 1500,
        },
    }
    assert_seen(blocks, "fifo_bench", least)


def assert_lays_all_ways(
    rows: int, cols: int, *, unicasts: int, multicasts: int, operands: int
) -> None:
    """Every route of a mesh; the counts are those of all ways that exist."""
    shape = {"Rows": rows, "Cols": cols}
    model = build("routes_bench", [*_SOURCES, _BENCHES / "routes_bench.sv"], shape)
    least: dict[str, Seen] = {
        "unicasts_go_by_the_binary_destination": {"cases": unicasts},
        "multicasts_go_by_the_masks": {"cases": multicasts},
        "operands_meet_where_their_ways_do": {"cases": operands, "passed_by": 1, "five": 2},
    }
    assert_seen(model, "routes_bench", least, {"rows": rows, "cols": cols})


def test_routes() -> None:
    assert_lays_all_ways(3, 4, unicasts=2208, multicasts=26_416, operands=2 * 144 * 7 * 15)


@pytest.mark.slow
def test_routes_of_a_square_mesh() -> None:
    assert_lays_all_ways(3, 3, unicasts=1224, multicasts=8808, operands=2 * 81 * 7 * 7)


def test_router() -> None:
    least: dict[str, Seen] = {
        "every_route_from_every_place": {"cases": 1254},
        "five_inputs_to_five_outputs_pass_together": {"flits": 15},
        "waiting_inputs_take_turns": {"grants": 15},
        "the_line_moves_when_a_packet_is_granted": {"grants": 4},
        "an_output_stays_with_its_packet_to_the_last_flit": {"flits": 5},
        "a_blocked_offer_does_not_change": {"cycles": 4},
        "branches_go_on_while_one_is_blocked": {"flits": 13},
        "a_multicast_is_granted_when_the_whole_packet_has_room": {"cases": 4 * 5},
        "a_unicast_needs_no_room_for_the_whole_packet": {"cases": 4},
        "a_multicast_without_room_holds_its_output": {"flits": 6},
        "unicasts_cannot_starve_a_multicast": {"multicasts": 8},
        "a_blocked_router_takes_a_buffer_an_input": {"cycles": 8},
    }
    variant = RouterVariant()
    assert_seen(router_of(variant), "router_bench", least, variant.plan())


def test_reductions_in_a_router() -> None:
    least: dict[str, Seen] = {
        "every_set_of_operands_and_every_root": {
            "reductions": 554,
            "of_1": 306,
            "of_2": 176,
            "of_3": 52,
            "of_4": 18,
            "of_5": 2,
        },
        "a_late_operand_holds_only_its_reduction": {"flits": 6},
        "a_tile_that_is_not_marked_is_no_operand": {"flits": 4},
        "an_operand_of_another_reduction_is_no_partner": {"flits": 4},
        "reductions_that_could_both_start_take_turns": {"packets": 12},
        "a_result_waits_for_room_for_all_of_it": {"cases": 4 * 5},
        "room_is_kept_for_what_has_yet_to_leave": {"fit": 10, "wait": 15},
        "results_stand_in_line_like_a_sixth_input": {"grants": 18},
        "an_output_stays_with_a_result_to_its_last_flit": {"flits": 3},
        "a_blocked_result_does_not_change": {"results": 8},
    }
    variant = RouterVariant()
    assert_seen(router_of(variant), "reduce_bench", least, variant.plan())


def assert_passes_traffic_in_its_cycles(variant: RouterVariant) -> None:
    """Random traffic, and the latencies, of a router of any parameters."""
    router, plan, nodes = router_of(variant), variant.plan(), variant.rows * variant.cols
    traffic: Seen = {"flits": 4000, "full": 500}
    if variant.multicast and variant.cut_through and not variant.output_depth:
        traffic |= {"multicasts": 100}
    if variant.multicast and not variant.loopback:
        traffic |= {"to_nobody": 1}
    if variant.reduction:
        traffic |= {"reduced": 1500}
        if variant.cut_through:
            traffic |= {"results": 100}
    least = {"random_traffic_leaves_as_the_routes_say": traffic}
    assert_seen(router, "router_traffic_bench", least, plan)

    inputs = sum(len(variant.routes.ports_at(tile)) for tile in variant.routes.tiles())
    pairs = variant.depth * (variant.depth + 1)
    least = {
        "a_packet_takes_the_cycles_of_the_parameters": {"cases": nodes * nodes},
        "a_multicast_takes_the_cycles_of_a_unicast": {"cases": inputs * variant.multicast},
        "a_result_takes_the_stages_of_the_unit_more": {"cases": nodes**2 * variant.reduction},
        "a_multicast_starts_with_room_here_and_behind": {"cases": pairs * variant.multicast},
        "a_multicast_to_nobody_is_dropped": {
            "cases": nodes * (variant.multicast and not variant.loopback)
        },
    }
    assert_seen(router, "router_latency_bench", least, plan)


def test_router_under_random_traffic() -> None:
    assert_passes_traffic_in_its_cycles(RouterVariant())


@pytest.mark.slow
@pytest.mark.parametrize("name", _VARIANTS)
def test_router_of_other_parameters(name: str) -> None:
    assert_passes_traffic_in_its_cycles(_VARIANTS[name])
