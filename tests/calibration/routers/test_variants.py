"""A changed line of a custom mesh moves what it should in its calibration, and nothing else."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from cosim.spec.mesh import load_spec
from tests.calibration.routers.variants import Change, Moved, holds, variant, with_moved
from tlm.calibrated import REPOSITORY
from tlm.interconnect.zero_load import ARBITERS, FORKS, UNIT_CHOICES

pytestmark = pytest.mark.rtl

_DOCS = REPOSITORY / "docs" / "custom_rtl"
_MESH, _MASK = _DOCS / "mesh.toml", _DOCS / "mask_mesh" / "mask_mesh.toml"

_PORTS = ("local", "north", "east", "south", "west")
_MESH_FOUND = {
    "ejection_cycles": 1,
    "hop_cycles": 1,
    "link_interval_cycles": 1,
    "serialisation_cycles": 1,
    "fifo_depth": 4,
    "output_depth": 0,
    "tile_depth": 0,
    "lock_grain": 1,
    "y_first": 0,
    "arbiter": ARBITERS.index("round-robin"),
    "lock_on_transfer": 0,
    "return_cycles": 1,
    "turnaround_cycles": 0,
    **{f"place_{port}": place for place, port in enumerate(_PORTS)},
    "fork": FORKS.index("own-pace"),
    "cut_through": 1,
    "loopback": 1,
    "multicast_flits": 4,
    "fork_cycles": 0,
    "multicast.gap_cycles": 1,
    "reduction.gap_cycles": 2,
    "reduce_cycles": 1,
    "reduce_interval_cycles": 1,
    "operand_limit": 5,
    "operands_share": 0,
    "place_reduction": 5,
    "unit_choice": UNIT_CHOICES.index("complete"),
    "unit_arbiter": ARBITERS.index("round-robin"),
    "unit_lock_on_transfer": 0,
    "unit_places": 1,
    "unit_return_cycles": 0,
    "reduction_flits": 4,
}
_NO_GAPS = {"multicast.gap_cycles": None, "reduction.gap_cycles": None}
#: With two operands a router, of which the tile's own is always one, reductions wait at the tile.
_NO_MEETINGS = dict.fromkeys(["unit_choice", "unit_arbiter", "unit_lock_on_transfer"])
_WORMHOLE = _NO_GAPS | {"cut_through": 0, "multicast_flits": 64, "reduction_flits": 64}
_MASK_FOUND = {
    name: value for name, value in _MESH_FOUND.items() if name not in _NO_GAPS | _NO_MEETINGS
} | {
    "ejection_cycles": 2,
    "hop_cycles": 2,
    "fifo_depth": 2,
    "output_depth": 2,
    "tile_depth": 2,
    "lock_on_transfer": 1,
    **{f"place_{port}": place for place, port in enumerate((*_PORTS[1:], _PORTS[0]))},
    "fork": FORKS.index("flit-by-flit"),
    "cut_through": 0,
    "multicast_flits": 64,
    "reduce_cycles": 3,
    "reduce_interval_cycles": 3,
    "operand_limit": 2,
    "operands_share": 1,
    "reduction_flits": 64,
}


def _mesh_parameters(text: str) -> Change:
    return ("spec.toml", "{ FifoDepth = 4 }", f"{{ {text} }}")


def _mask_parameters(text: str) -> Change:
    return ("spec.toml", "[mesh]\n", f"[rtl.parameters]\n{text}\n[mesh]\n")


def _without_length() -> list[Change]:
    """A wormhole mesh has no field for it, and packets of any length."""
    length = 'bits = "flit_count"               # counts up to the longest packet of [limits]\n'
    return [
        _mesh_parameters("FifoDepth = 4, CutThrough = 0"),
        ("spec.toml", f'[[flit]]\nfield = "length"\n{length}', ""),
        ("spec.toml", 'multicast_flits = "FifoDepth" ', "# "),
        ("spec.toml", 'reduction_flits = "FifoDepth"\n', ""),
    ]


_OPERATIONS = "bits = 3\nvalues = { unicast = 0, multicast = 4, sum = 2, maximum = 3 }"

#: A flit of a fork goes when all its branches can take it in the same cycle.
_LOCKSTEP: list[Change] = [
    (
        "output_port.sv",
        "  output logic [Requesters-1:0]            taken_o,\n",
        "  output logic [Requesters-1:0]            taken_o,\n"
        "  output logic [Requesters-1:0]            can_o,\n"
        "  input  logic [Requesters-1:0]            go_i,\n",
    ),
    (
        "output_port.sv",
        "assign taken_o = switch_ready ? offered : '0;",
        "assign can_o = switch_ready ? offered : '0;\n  assign taken_o = can_o & go_i;",
    ),
    (
        "output_port.sv",
        "assign switch_valid = offered != '0;",
        "assign switch_valid = (offered & go_i) != '0;",
    ),
    (
        "router.sv",
        "branch_valid, branch_last, branch_taken;",
        "branch_valid, branch_last, branch_taken, branch_can;",
    ),
    (
        "router.sv",
        "logic [Requesters-1:0] valid, last, many, taken;",
        "logic [Requesters-1:0] valid, last, many, taken, can, go;",
    ),
    (
        "router.sv",
        "assign branch_taken[i][o] = taken[i];",
        "assign branch_taken[i][o] = taken[i];\n      assign branch_can[i][o] = can[i];\n"
        "      assign go[i] = (branch_valid[i] & ~branch_can[i]) == '0;",
    ),
    (
        "router.sv",
        "assign valid[Ports] = result_valid[o];",
        "assign valid[Ports] = result_valid[o];\n      assign go[Ports] = 1'b1;",
    ),
    (
        "router.sv",
        "      .taken_o(taken),\n      .free_i(free),",
        "      .taken_o(taken),\n      .can_o(can),\n      .go_i(go),\n      .free_i(free),",
    ),
]

#: The first in line wins, whoever won before.
_FIXED: list[Change] = [
    ("rr_arbiter.sv", "preferred_q <= preferred_d;", "preferred_q <= preferred_d | '1;")
]

#: A tree of pairs as in PULP's rr_arb_tree, over eight places: a pointer's bits choose the halves.
_TREE: list[Change] = [
    (
        "rr_arbiter.sv",
        "assign first_line = request_i & preferred_q;",
        """logic [7:0] asks, behind, tree;
  logic [2:0] pointer_q, next;
  assign asks = 8'(request_i);
  always_comb begin
    logic [2:0] winner;
    winner[2] = asks[7:4] != '0 && (asks[3:0] == '0 || pointer_q[2]);
    winner[1] = asks[{winner[2], 2'b10} +: 2] != '0
        && (asks[{winner[2], 2'b00} +: 2] == '0 || pointer_q[1]);
    winner[0] = asks[{winner[2:1], 1'b1}] && (!asks[{winner[2:1], 1'b0}] || pointer_q[0]);
    tree = '0;
    tree[winner] = request_i != '0;
    behind = asks & ~((8'd2 << pointer_q) - 8'd1);
    if (behind == '0) behind = asks;
    next = '0;
    for (int i = 7; i >= 0; i--) if (behind[i]) next = 3'(i);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) pointer_q <= '0;
    else if (advance_i) pointer_q <= next;
  end
  assign first_line = request_i & preferred_q;""",
    ),
    (
        "rr_arbiter.sv",
        "(first_line != '0) ? lowest_preferred : lowest_any",
        "Requesters'(tree)",
    ),
]

#: After a packet's last flit an output rests for a cycle.
_TURNAROUND: list[Change] = [
    (
        "output_port.sv",
        "assign fresh = !locked_q && valid_i != '0;",
        "logic rest_q;\n  always_ff @(posedge clk_i) rest_q <= rst_ni & tail_taken;\n"
        "  assign fresh = !locked_q && !rest_q && valid_i != '0;",
    ),
    (
        "output_port.sv",
        "assign granted = locked_q ? owner_q : winner;",
        "assign granted = locked_q ? owner_q : rest_q ? '0 : winner;",
    ),
]

#: A unit takes the first input in line that has an operand, and waits for the partners.
_FIRST: list[Change] = [
    ("reduce_unit.sv", "candidate, maximum;", "candidate, maximum, whole;"),
    (
        "reduce_unit.sv",
        """    localparam logic [Ports-1:0] Before = Ports'((1 << i) - 1);
    assign candidate[i] = operand_valid_i[i] && (partners[i] & Before) == '0
                        && (partners[i] & ~present) == '0 && room;""",
        """    assign candidate[i] = operand_valid_i[i] && room;
    assign whole[i] = (partners[i] & ~present) == '0;""",
    ),
    (
        "reduce_unit.sv",
        "(busy_q | start) && (operands & ~operand_valid_i) == '0;",
        "(busy_q | start) && (lead & ~whole) == '0;",
    ),
]
#: A unit is a reduction's only from its first result on.
_LATE_UNIT: list[Change] = [
    (
        "reduce_unit.sv",
        "busy_q <= (busy_q | start) & !(step & stop);",
        "busy_q <= (busy_q | step) & !(step & stop);",
    ),
    ("reduce_unit.sv", ".advance_i(start),", ".advance_i(step && !busy_q),"),
    (
        "reduce_unit.sv",
        "((start && target[o]) ? started : '0)",
        "((step && !busy_q && target[o]) ? started : '0)",
    ),
]
#: The first input in line has the unit first, whoever had it before.
_FIXED_UNIT: list[Change] = [("reduce_unit.sv", ".advance_i(start),", ".advance_i(1'b0),")]
#: Behind the adder are three results, and a full line takes none in the cycle in which one leaves.
_RESULTS: list[Change] = [
    (
        "reduce_unit.sv",
        "  for (genvar s = 0; s < ReduceStages; s++) begin : gen_stage\n",
        """  logic unused_taken;
  assign unused_taken = taken_i;
  for (genvar s = 0; s < ReduceStages; s++) begin : gen_results
    fifo #(
      .Width(FlitWidth + Ports),
      .Depth(3)
    ) u_results (
      .clk_i,
      .rst_ni,
      .valid_i(stage_valid[s]),
      .ready_o(stage_ready[s]),
      .data_i({stage_target[s], stage_flit[s]}),
      .free_o(),
      .valid_o(stage_valid[s+1]),
      .ready_i(stage_ready[s+1]),
      .data_o({stage_target[s+1], stage_flit[s+1]})
    );
  end
  for (genvar s = 0; s < 0; s++) begin : gen_stage
""",
    ),
]

#: No fit case has a unit full of results when two reductions want it.
_HELD_EITHER_WAY: Moved = {"unit_lock_on_transfer": (0, 1)}

_MESH_VARIANTS: dict[str, tuple[list[Change], Moved]] = {
    "one-more-stage": (
        [_mesh_parameters("FifoDepth = 4, Stages = 2")],
        {"hop_cycles": 2, "ejection_cycles": 2}
        | {"multicast.gap_cycles": 2, "reduction.gap_cycles": 3}
        | _HELD_EITHER_WAY,
    ),
    "output-buffers-at-links-alone": (
        [
            _mesh_parameters("FifoDepth = 4, OutputDepth = 2"),
            (
                "router.sv",
                ".OutputDepth(OutputDepth),\n      .CutThrough((Multicast",
                ".OutputDepth((o == Local) ? 0 : OutputDepth),\n      .CutThrough((Multicast",
            ),
        ],
        {"hop_cycles": 2, "output_depth": 2}
        | {"multicast.gap_cycles": 0, "reduction.gap_cycles": 3},
    ),
    "columns-first": ([_mesh_parameters("FifoDepth = 4, YFirst = 1")], {"y_first": 1}),
    "slower-adder": (
        [_mesh_parameters("FifoDepth = 4, ReduceStages = 3")],
        {"reduce_cycles": 3, "reduction.gap_cycles": 4, "unit_places": 3} | _HELD_EITHER_WAY,
    ),
    "deeper-buffers": (
        [_mesh_parameters("FifoDepth = 8")],
        {"fifo_depth": 8, "multicast_flits": 8, "reduction_flits": 8},
    ),
    "no-multicasts": (
        [
            _mesh_parameters("FifoDepth = 4, Multicast = 0"),
            ("spec.toml", 'multicast = "bitmask"\n', ""),
            ("spec.toml", 'multicast_flits = "FifoDepth" ', "# "),
            ("spec.toml", _OPERATIONS, "bits = 2\nvalues = { unicast = 0, sum = 2, maximum = 3 }"),
        ],
        dict.fromkeys(
            ["fork", "loopback", "multicast_flits", "fork_cycles", "multicast.gap_cycles"]
        ),
    ),
    "no-reductions": (
        [
            _mesh_parameters("FifoDepth = 4, Reduction = 0"),
            ("spec.toml", 'reduction = "bitmask"\n', ""),
            ("spec.toml", 'reduction_flits = "FifoDepth"\n', ""),
            ("spec.toml", _OPERATIONS, "bits = 1\nvalues = { unicast = 0, multicast = 1 }"),
        ],
        dict.fromkeys(
            [
                "reduce_cycles",
                "reduce_interval_cycles",
                "operand_limit",
                "operands_share",
                "place_reduction",
                "unit_choice",
                "unit_arbiter",
                "unit_lock_on_transfer",
                "unit_places",
                "unit_return_cycles",
                "reduction_flits",
                "reduction.gap_cycles",
            ]
        ),
    ),
    "lockstep": (_LOCKSTEP, {"fork": FORKS.index("lockstep")}),
    # Outputs and reduction units have the same arbiter.
    "fixed-priority": (_FIXED, {"arbiter": ARBITERS.index("fixed"), "unit_arbiter": 1}),
    "tree-of-pairs": (
        _TREE,
        {"arbiter": ARBITERS.index("tree"), "unit_arbiter": ARBITERS.index("tree")},
    ),
    "turnaround": (_TURNAROUND, {"turnaround_cycles": 1} | _HELD_EITHER_WAY),
    "unit-held-late": (_LATE_UNIT, {"unit_lock_on_transfer": 1}),
    "unit-waits-for-partners": (
        [*_FIRST, *_without_length()],
        _WORMHOLE | {"unit_choice": UNIT_CHOICES.index("first")},
    ),
    "unit-waits-for-partners-of-the-first-in-line": (
        [*_FIRST, *_LATE_UNIT[:1], *_FIXED_UNIT, *_without_length()],
        _WORMHOLE | {"unit_choice": 1, "unit_arbiter": 1, "unit_lock_on_transfer": 1},
    ),
    "unit-of-three-results": (
        _RESULTS,
        {"unit_places": 3, "unit_return_cycles": 1} | _HELD_EITHER_WAY,
    ),
}


def _inputs(parameter: str, ready: str) -> list[Change]:
    """Another rule by which inputs take flits; the buffers of outputs keep theirs."""
    return [
        (
            "mask_fifo.sv",
            "parameter int Depth = 2\n",
            f"parameter int Depth = 2,\n  parameter int {parameter} = 0\n",
        ),
        ("mask_fifo.sv", "assign in_ready = count_q < CountWidth'(Depth);", ready),
        (
            "mask_router.sv",
            ".Depth((s < ExtraStages) ? 2 : InDepth)",
            f".Depth((s < ExtraStages) ? 2 : InDepth), .{parameter}(1)",
        ),
    ]


#: A place that has become free is known of two cycles later than it might be.
_LATE = _inputs(
    "Late",
    "logic [1:0] gone_q;\n  always_ff @(posedge clk) gone_q <= rst ? '0 : {gone_q[0], pop};\n"
    "  assign in_ready = 32'(count_q) + (Late * 32'(gone_q[0])) + (Late * 32'(gone_q[1])) < Depth;",
)
#: A full buffer takes a flit in the cycle in which one leaves.
_AT_ONCE = _inputs(
    "AtOnce", "assign in_ready = count_q < CountWidth'(Depth) || (AtOnce != 0 && out_ready);"
)

#: Routers see every flit's header; tiles send those of first flits, and zeros behind them.
_FIRST_HEADERS: list[Change] = [
    ("spec.toml", "element_bits = 32", 'element_bits = 32\nheader = "first-flit"'),
    (
        "mask_mesh.sv",
        "    assign in_flit[n][Local] = flit_t'(tile_out_flit[n*FlitWidth +: FlitWidth]);",
        """    flit_t offered, first_q;
    logic inside_q;
    assign offered = flit_t'(tile_out_flit[n*FlitWidth +: FlitWidth]);
    always_ff @(posedge clk) begin
      if (rst) inside_q <= 1'b0;
      else if (tile_out_valid[n] && tile_out_ready[n]) begin
        inside_q <= !offered.last;
        if (!inside_q) first_q <= offered;
      end
      if (!rst && inside_q && tile_out_valid[n]) assert ({offered.header, offered.source} == '0);
    end
    always_comb begin
      in_flit[n][Local] = offered;
      if (inside_q) in_flit[n][Local].header = first_q.header;
      if (inside_q) in_flit[n][Local].source = first_q.source;
    end""",
    ),
]

_MASK_VARIANTS: dict[str, tuple[list[Change], Moved]] = {
    "three-cycle-router": (
        [_mask_parameters("ExtraStages = 1")],
        {"hop_cycles": 3, "ejection_cycles": 3, "fifo_depth": 4, "return_cycles": 2},
    ),
    "four-cycle-router": (
        [_mask_parameters("ExtraStages = 2")],
        {"hop_cycles": 4, "ejection_cycles": 4, "fifo_depth": 6, "return_cycles": 3},
    ),
    "throttled-links": (
        [_mask_parameters("LinkInterval = 2")],
        {"link_interval_cycles": 2, "serialisation_cycles": 2},
    ),
    "slower-adder": (
        [_mask_parameters("AddCycles = 5")],
        {"reduce_cycles": 5, "reduce_interval_cycles": 5},
    ),
    "fixed-priority": ([_mask_parameters("Arbiter = 1")], {"arbiter": ARBITERS.index("fixed")}),
    "no-loopback": ([_mask_parameters("Loopback = 0")], {"loopback": 0}),
    "other-buffers": (
        [_mask_parameters("InDepth = 3\nOutDepth = 4")],
        {"fifo_depth": 3, "output_depth": 4, "tile_depth": 4},
    ),
    "places-return-late": (
        [_mask_parameters("InDepth = 4"), *_LATE],
        {"fifo_depth": 4, "return_cycles": 3},
    ),
    # Two flits every four cycles: the latency is no sum of flits, yet links do not rest.
    "too-few-places-return-late": (_LATE, {"return_cycles": 3, "serialisation_cycles": None}),
    "places-return-at-once": (_AT_ONCE, {"return_cycles": 0}),
    "headers-in-first-flits": (_FIRST_HEADERS, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("original", "expected"),
    [pytest.param(_MESH, _MESH_FOUND, id="mesh"), pytest.param(_MASK, _MASK_FOUND, id="mask")],
)
def test_what_the_examples_are(original: Path, expected: Mapping[str, int]) -> None:
    holds(load_spec(original), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", _MESH_VARIANTS)
def test_changes_of_the_projects_mesh(name: str, tmp_path: Path) -> None:
    changes, moved = _MESH_VARIANTS[name]
    holds(variant(_MESH, tmp_path, changes), with_moved(_MESH_FOUND, moved))


@pytest.mark.slow
@pytest.mark.parametrize("name", _MASK_VARIANTS)
def test_changes_of_the_mask_mesh(name: str, tmp_path: Path) -> None:
    changes, moved = _MASK_VARIANTS[name]
    holds(variant(_MASK, tmp_path, changes), with_moved(_MASK_FOUND, moved))
