"""Routers that no form of the model is like: it is told, and by how much the nearest is off."""

from pathlib import Path

import pytest

from calibration.routers.custom import calibrate_custom
from tests.calibration.routers.test_variants import _MASK, _MESH
from tests.calibration.routers.variants import Change, variant

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

#: An output takes the requester that has been granted longest ago: a matrix of who was before whom.
_LEAST_RECENTLY_GRANTED: list[Change] = [
    (
        "mask_output.sv",
        """    eligible = in_valid & later_q;
    if (eligible == '0 || Arbiter == 1) eligible = in_valid;
    grant = locked_q ? owner_q : eligible & (~eligible + 1'b1);
""",
        """    eligible = '0;
    for (int i = 0; i < Requesters; i++) begin
      eligible[i] = in_valid[i];
      for (int j = 0; j < Requesters; j++) begin
        if (in_valid[j] && before_q[j][i]) eligible[i] = 1'b0;
      end
    end
    grant = locked_q ? owner_q : eligible;
""",
    ),
    (
        "mask_output.sv",
        "  logic locked_q, room, held, rested;\n",
        "  logic locked_q, room, held, rested;\n"
        "  // before_q[a][b]: a was granted longer ago than b.\n"
        "  logic [Requesters-1:0][Requesters-1:0] before_q;\n",
    ),
    (
        "mask_output.sv",
        "      later_q <= '0;\n",
        """      later_q <= '0;
      for (int i = 0; i < Requesters; i++) begin
        for (int j = 0; j < Requesters; j++) before_q[i][j] <= i < j;
      end
""",
    ),
    (
        "mask_output.sv",
        "      later_q <= ~(grant | (grant - 1'b1));\n",
        """      later_q <= ~(grant | (grant - 1'b1));
      for (int i = 0; i < Requesters; i++) begin
        for (int j = 0; j < Requesters; j++) begin
          if (i != j && grant[i]) before_q[i][j] <= 1'b0;
          else if (i != j && grant[j]) before_q[i][j] <= 1'b1;
        end
      end
""",
    ),
]

#: Links count credits, each of which comes back two cycles after its flit left the buffer behind.
#: A tile sees its buffer's room at once.
_CREDITS: list[Change] = [
    ("mask_mesh.sv", "parameter int InDepth = 2", "parameter int InDepth = 4"),
    (
        "mask_router.sv",
        """  /// The offered flits.
  input  flit_t  [Ports-1:0] in_flit,
""",
        """  /// The offered flits.
  input  flit_t  [Ports-1:0] in_flit,
  /// A flit leaves the buffer of an input.
  output ports_t             in_pop,
""",
    ),
    (
        "mask_router.sv",
        "    assign front_valid[i] = valid[ExtraStages+1];\n",
        "    assign front_valid[i] = valid[ExtraStages+1];\n"
        "    assign in_pop[i] = valid[ExtraStages+1] && ready[ExtraStages+1];\n",
    ),
    (
        "mask_mesh.sv",
        "  ports_t in_ready [Nodes];\n",
        "  ports_t in_ready [Nodes];\n  ports_t in_pop [Nodes];\n",
    ),
    (
        "mask_mesh.sv",
        "      .in_flit(in_flit[n]),\n",
        "      .in_flit(in_flit[n]),\n      .in_pop(in_pop[n]),\n",
    ),
    (
        "mask_mesh.sv",
        "        assign in_valid[n][p] = out_valid[Beside][Facing];\n",
        "        assign in_valid[n][p] = out_valid[Beside][Facing] && out_ready[Beside][Facing];\n",
    ),
    (
        "mask_mesh.sv",
        "        assign out_ready[n][p] = in_ready[Beside][Facing];\n",
        """        logic [7:0] credits_q;
        logic [1:0] back_q;
        always_ff @(posedge clk) begin
          if (rst) begin
            credits_q <= 8'(InDepth);
            back_q <= '0;
          end else begin
            back_q <= {back_q[0], in_pop[Beside][Facing]};
            credits_q <= credits_q + 8'(back_q[1]) - 8'(out_valid[n][p] && out_ready[n][p]);
          end
          if (!rst && out_valid[n][p] && out_ready[n][p]) assert (in_ready[Beside][Facing]);
        end
        assign out_ready[n][p] = credits_q != '0;
""",
    ),
]

#: Each output has a reduction unit of its own: reductions that meet do not wait for each other.
_UNIT_PER_OUTPUT: list[Change] = [
    (
        "reduce_unit.sv",
        "  parameter int ReduceStages = 1,\n",
        "  parameter int ReduceStages = 1,\n"
        "  /// The output that this unit serves.\n  parameter int Output = 0,\n",
    ),
    (
        "reduce_unit.sv",
        "assign candidate[i] = operand_valid_i[i] &&",
        "assign candidate[i] = output_of[i][Output] && operand_valid_i[i] &&",
    ),
    (
        "router.sv",
        "  logic [FlitWidth-1:0] result_flit;\n",
        "  logic [Ports-1:0][FlitWidth-1:0] result_flit;\n"
        "  logic [Ports-1:0][Ports-1:0] unit_taken, unit_valid;\n",
    ),
    (
        "router.sv",
        "assign last[Ports] = result_flit[FlitWidth-1];",
        "assign last[Ports] = result_flit[o][FlitWidth-1];",
    ),
    (
        "router.sv",
        "flit[Ports*FlitWidth +: FlitWidth] = result_flit;",
        "flit[Ports*FlitWidth +: FlitWidth] = result_flit[o];",
    ),
    (
        "router.sv",
        "    reduce_unit #(\n",
        """    always_comb begin
      operand_taken = '0;
      for (int o = 0; o < Ports; o++) operand_taken |= unit_taken[o];
    end
    for (genvar o = 0; o < Ports; o++) begin : gen_unit
    assign result_valid[o] = unit_valid[o][o];
    reduce_unit #(
      .Output(o),
""",
    ),
    ("router.sv", ".operand_taken_o(operand_taken),", ".operand_taken_o(unit_taken[o]),"),
    (
        "router.sv",
        """.valid_o(result_valid),
      .flit_o(result_flit),
      .taken_i(result_taken != '0)
    );""",
        """.valid_o(unit_valid[o]),
      .flit_o(result_flit[o]),
      .taken_i(result_taken[o])
    );
    end""",
    ),
    (
        "router.sv",
        ".leaving_i(leaving),",
        ".leaving_i(leaving & ((o == 0) ? 4'd0 : 4'(1 << (o - 1)))),",
    ),
]


@pytest.mark.parametrize(
    ("original", "changes", "found", "told", "exact"),
    [
        pytest.param(
            _MESH,
            _UNIT_PER_OUTPUT,
            {"fifo_depth": 4, "hop_cycles": 1, "reduce_cycles": 1, "unit_choice": "complete"},
            "reductions: no form of the model explains every fit case",
            {"buffering", "unicast", "contention", "multicast", "traffic", "hang", "collective"},
            id="a-reduction-unit-for-each-output",
        ),
        pytest.param(
            _MASK,
            _LEAST_RECENTLY_GRANTED,
            {"fifo_depth": 2, "hop_cycles": 2, "reduce_cycles": 3},
            "order at the outputs: no form of the model explains every fit case",
            {"buffering", "unicast", "hang", "collective"},
            id="least-recently-granted",
        ),
        pytest.param(
            _MASK,
            _CREDITS,
            {"fifo_depth": 4, "hop_cycles": 2, "reduce_cycles": 3, "return_cycles": 3},
            "traffic: mean error",
            {"buffering", "unicast", "contention", "multicast", "reduction", "hang", "collective"},
            id="credits-on-links-alone",
        ),
    ],
)
def test_it_is_told(
    original: Path,
    changes: list[Change],
    found: dict[str, object],
    told: str,
    exact: set[str],
    tmp_path: Path,
) -> None:
    calibration = calibrate_custom(variant(original, tmp_path, changes), quick=True)
    assert calibration.findings == []
    assert {name: calibration.network[name] for name in found} == found
    assert calibration.not_represented[0].startswith(told)
    assert {r.name for r in calibration.results if r.max_abs_error_pct == 0} == exact
