"""The network's blocks in Verilog, each alone.

The checks stand in the cocotb benches; here is how often each must have met what it is about.
"""

import pytest

from calibration.benches.block_check import Seen
from calibration.harness.mesh import NOC_SOURCES
from calibration.harness.simulator import Simulation, build
from tlm.calibrated import REPOSITORY

pytestmark = pytest.mark.rtl

_BENCH = REPOSITORY / "rtl" / "bench" / "blocks_bench.sv"


@pytest.fixture(scope="module")
def blocks() -> Simulation:
    """One model of a 5-way arbiter, a FIFO of depth 3 and a router of depth 5."""
    return build("blocks_bench", [*(s for s in NOC_SOURCES if s.stem != "mesh"), _BENCH], {})


def assert_seen(blocks: Simulation, bench: str, least: dict[str, Seen]) -> None:
    """Every check of the bench has run, held, and seen at least this."""
    seen = blocks.run(f"calibration.benches.{bench}", {}, seed=1)
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


def test_router(blocks: Simulation) -> None:
    least: dict[str, Seen] = {
        "every_route_from_every_place": {"cases": 1101},
        "five_inputs_to_five_outputs_pass_together": {"flits": 15},
        "waiting_inputs_take_turns": {"grants": 15},
        "the_line_moves_when_a_packet_is_granted": {"grants": 4},
        "an_output_stays_with_its_packet_to_the_last_flit": {"flits": 5},
        "a_blocked_offer_does_not_change": {"cycles": 4},
        "branches_go_on_while_one_is_blocked": {"flits": 13},
        "a_multicast_is_granted_when_the_whole_packet_has_room": {"cases": 4 * 5},
        "a_unicast_needs_no_room_for_the_whole_packet": {"cases": 4},
        "a_multicast_without_room_lets_others_pass": {"flits": 6},
        "a_blocked_router_takes_a_buffer_an_input": {"cycles": 8},
    }
    assert_seen(blocks, "router_bench", least)


def test_router_under_random_traffic(blocks: Simulation) -> None:
    least: dict[str, Seen] = {
        "random_traffic_leaves_as_the_routes_say": {"flits": 10_000, "cut_through_grants": 300},
    }
    assert_seen(blocks, "router_traffic_bench", least)
