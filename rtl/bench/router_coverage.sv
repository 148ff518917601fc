// Counts what happens in a router; bound into every router of a mesh that is built with this file.
//
// At the end of the run the counts are written to `coverage_<row>_<column>.txt` in the working folder,
// a bin a line: count, name. The router needs all of multicast, reduction and cut-through.
module router_coverage #(
  /// Flits held by each input buffer.
  parameter int FifoDepth = 4,
  /// 0: along the row first, 1: along the column first.
  parameter int YFirst = 0,
  /// Bits of a row index.
  parameter int RowWidth = 2,
  /// Bits of a column index.
  parameter int ColWidth = 2,
  /// Bits of a count of flits.
  localparam int CountWidth = $clog2(FifoDepth + 1)
) (
  /// Clock, rising edge.
  input logic                    clk_i,
  /// Reset, active low, synchronous.
  input logic                    rst_ni,
  /// Row of the router.
  input logic [RowWidth-1:0]     row_i,
  /// Column of the router.
  input logic [ColWidth-1:0]     col_i,
  /// Free places of the input buffers.
  input logic [5*CountWidth-1:0] in_free_i,
  /// Free places of the buffers for operands.
  input logic [5*CountWidth-1:0] in_operand_free_i,
  /// A flit is offered at an output.
  input logic [4:0]              out_valid_i,
  /// It is taken if it is offered.
  input logic [4:0]              out_ready_i,
  /// An input has a packet at the front.
  input logic [4:0]              front_valid_i,
  /// It is a multicast.
  input logic [4:0]              multicast_i,
  /// Outputs by which it leaves, five bits an input.
  input logic [24:0]             needed_i,
  /// An output takes its flit, five bits an input.
  input logic [24:0]             taken_i,
  /// That flit is the packet's last.
  input logic [24:0]             last_i,
  /// Requests at an output, six bits an output; the sixth is the reduction unit.
  input logic [29:0]             request_i,
  /// The request that has the output.
  input logic [29:0]             granted_i,
  /// An output is given away in this cycle.
  input logic [4:0]              fresh_i,
  /// An output has been given to a packet whose last flit has not passed.
  input logic [4:0]              locked_i,
  /// The packet that has the output has room behind it.
  input logic [4:0]              clear_i,
  /// An input shows an operand.
  input logic [4:0]              operand_valid_i,
  /// Inputs that bring its partners and itself, five bits an input.
  input logic [24:0]             partners_i,
  /// Inputs that show one of the same reduction, five bits an input.
  input logic [24:0]             present_i,
  /// There is room for its result.
  input logic [4:0]              room_i,
  /// Output of its result, five bits an input.
  input logic [24:0]             output_of_i,
  /// Its reduction may start.
  input logic [4:0]              candidate_i,
  /// A reduction starts.
  input logic                    start_i,
  /// A reduction has started in an earlier cycle and has not ended.
  input logic                    busy_i,
  /// Inputs whose operands it combines.
  input logic [4:0]              operands_i,
  /// Output to which its result goes.
  input logic [4:0]              target_i,
  /// All its operands show a flit.
  input logic                    complete_i,
  /// It keeps the larger element.
  input logic                    maximum_i,
  /// A flit of a result is offered to an output.
  input logic [4:0]              result_valid_i,
  /// It is taken.
  input logic [4:0]              result_taken_i
);
  localparam int Ports = 5;
  localparam int Local = 0;
  localparam int Result = 5;

  // Kinds of a way through the router.
  localparam logic [1:0] Unicast = 2'd0;
  localparam logic [1:0] Multicast = 2'd1;
  localparam logic [1:0] Reduction = 2'd2;

  longint unsigned way_count [3][Ports][Ports];
  longint unsigned fork_count [6], sum_count [6], maximum_count [6], request_count [7];
  longint unsigned ahead_count [FifoDepth+1];
  longint unsigned bubble_count [Ports], stalled_count [Ports], no_room_count [Ports];
  longint unsigned full_count [Ports], empty_count [Ports];
  longint unsigned operand_full_count [Ports], operand_empty_count [Ports];
  longint unsigned waiting_count [Ports], complete_no_room_count [Ports], result_waits_count [Ports];
  longint unsigned startable_count, forks_count, mixed_count, paused_count, into_tile_count;

  // A packet never turns from its second dimension into its first, nor back to where it came from.
  function automatic bit legal(input int from, input int to);
    bit from_row, from_col, to_row, to_col;
    from_row = from == 2 || from == 4;
    from_col = from == 1 || from == 3;
    to_row = to == 2 || to == 4;
    to_col = to == 1 || to == 3;
    if (from == to) return from == Local;
    return (YFirst == 0) ? !(from_col && to_row) : !(from_row && to_col);
  endfunction

  // Flits of the front packet that a branch has sent, and whether it has sent all.
  logic [CountWidth-1:0] sent_q [Ports][Ports];
  logic [Ports-1:0] done_q [Ports];
  logic [Ports-1:0] all_done;
  for (genvar i = 0; i < Ports; i++) begin : gen_input
    logic [Ports-1:0] needed, ends;
    assign needed = needed_i[i*Ports +: Ports];
    assign ends = done_q[i] | taken_i[i*Ports +: Ports] & last_i[i*Ports +: Ports];
    assign all_done[i] = front_valid_i[i] && needed != '0 && (needed & ~ends) == '0;
    always @(posedge clk_i) begin
      if (!rst_ni || all_done[i]) done_q[i] <= '0;
      else done_q[i] <= ends;
      for (int o = 0; o < Ports; o++) begin
        if (!rst_ni || all_done[i]) sent_q[i][o] <= '0;
        else if (multicast_i[i]) sent_q[i][o] <= sent_q[i][o] + CountWidth'(taken_i[i*Ports + o]);
      end
    end
  end

  // By how much the fastest branch of an input's multicast is ahead of the slowest.
  function automatic int lead(input int i);
    int most, least;
    most = 0;
    least = FifoDepth;
    for (int o = 0; o < Ports; o++) begin
      if (needed_i[i*Ports + o]) begin
        if (int'(sent_q[i][o]) > most) most = int'(sent_q[i][o]);
        if (int'(sent_q[i][o]) < least) least = int'(sent_q[i][o]);
      end
    end
    return (most > least) ? most - least : 0;
  endfunction

  always @(posedge clk_i) begin
    if (rst_ni) begin
      count_inputs();
      count_outputs();
      count_reductions();
    end
  end

  task automatic count_inputs;
    int forks;
    forks = 0;
    for (int i = 0; i < Ports; i++) begin
      if (in_free_i[i*CountWidth +: CountWidth] == '0) full_count[i]++;
      if (in_free_i[i*CountWidth +: CountWidth] == CountWidth'(FifoDepth)) empty_count[i]++;
      if (in_operand_free_i[i*CountWidth +: CountWidth] == '0) operand_full_count[i]++;
      if (in_operand_free_i[i*CountWidth +: CountWidth] == CountWidth'(FifoDepth)) begin
        operand_empty_count[i]++;
      end
      for (int o = 0; o < Ports; o++) begin
        if (taken_i[i*Ports + o]) count_way(multicast_i[i] ? Multicast : Unicast, i, o);
      end
      if (front_valid_i[i] && multicast_i[i]) begin
        ahead_count[lead(i)]++;
        if (all_done[i]) fork_count[$countones(needed_i[i*Ports +: Ports])]++;
        if ($countones(needed_i[i*Ports +: Ports]) > 1) forks++;
      end
    end
    if (forks > 1) forks_count++;
    if ((front_valid_i & multicast_i) != '0 && (busy_i || start_i)) mixed_count++;
  endtask

  task automatic count_outputs;
    for (int o = 0; o < Ports; o++) begin
      logic [5:0] request, granted;
      request = request_i[o*6 +: 6];
      granted = granted_i[o*6 +: 6];
      if (fresh_i[o]) request_count[$countones(request)]++;
      if (locked_i[o] && (request & granted) == '0) bubble_count[o]++;
      if (out_valid_i[o] && !out_ready_i[o]) stalled_count[o]++;
      if ((request & granted) != '0 && !clear_i[o]) no_room_count[o]++;
      if (result_valid_i[o] && !result_taken_i[o]) begin
        result_waits_count[o]++;
        if (o == Local && granted[Result]) into_tile_count++;
      end
    end
  endtask

  task automatic count_reductions;
    for (int i = 0; i < Ports; i++) begin
      logic [Ports-1:0] partners;
      logic lacking;
      partners = partners_i[i*Ports +: Ports];
      lacking = (partners & ~present_i[i*Ports +: Ports]) != '0;
      if (operand_valid_i[i] && lacking && !(busy_i && operands_i[i])) waiting_count[i]++;
      for (int o = 0; o < Ports; o++) begin
        if (operand_valid_i[i] && !lacking && !room_i[i] && output_of_i[i*Ports + o]) begin
          complete_no_room_count[o]++;
        end
        if (start_i && operands_i[i] && target_i[o]) count_way(Reduction, i, o);
      end
    end
    if (start_i) begin
      if (maximum_i) maximum_count[$countones(operands_i)]++;
      else sum_count[$countones(operands_i)]++;
    end
    if (!busy_i && $countones(candidate_i) > 1) startable_count++;
    if (busy_i && !complete_i) paused_count++;
  endtask

  task automatic count_way(input logic [1:0] kind, input int from, input int to);
    way_count[kind][from][to]++;
    assert (legal(from, to)) else $error("router_coverage: illegal turn from port %0d to %0d", from, to);
  endtask

  function automatic string port(input int number);
    unique case (number)
      0: return "local";
      1: return "north";
      2: return "east";
      3: return "south";
      default: return "west";
    endcase
  endfunction

  function automatic string kind_name(input logic [1:0] kind);
    unique case (kind)
      Unicast: return "unicast";
      Multicast: return "multicast";
      default: return "reduction";
    endcase
  endfunction

  int file;

  task automatic write(input longint unsigned count, input string name);
    $fwrite(file, "%0d %s\n", count, name);
  endtask

  task automatic write_ports(input int p);
    write(bubble_count[p], $sformatf("output %s held across a bubble", port(p)));
    write(stalled_count[p], $sformatf("output %s stalled", port(p)));
    write(result_waits_count[p], $sformatf("result waits for output %s", port(p)));
    write(full_count[p], $sformatf("packet buffer %s full", port(p)));
    write(empty_count[p], $sformatf("packet buffer %s empty", port(p)));
    write(operand_full_count[p], $sformatf("operand buffer %s full", port(p)));
    write(operand_empty_count[p], $sformatf("operand buffer %s empty", port(p)));
    write(waiting_count[p], $sformatf("operand at %s waits for its partners", port(p)));
    // A tile takes every flit in bounded time: nothing waits for room on the way to it.
    if (p != Local) begin
      write(no_room_count[p], $sformatf("multicast holds output %s, waits for room", port(p)));
      write(complete_no_room_count[p], $sformatf("reduction complete, no room behind %s", port(p)));
    end
  endtask

  final begin
    file = $fopen($sformatf("coverage_%0d_%0d.txt", row_i, col_i), "w");
    for (logic [1:0] k = Unicast; k <= Reduction; k++) begin
      for (int i = 0; i < Ports; i++) begin
        for (int o = 0; o < Ports; o++) begin
          if (legal(i, o)) begin
            write(way_count[k][i][o], $sformatf("%s: %s %s to %s", (YFirst == 0) ? "xy" : "yx",
                                                kind_name(k), port(i), port(o)));
          end
        end
      end
    end
    for (int n = 1; n <= 5; n++) begin
      write(fork_count[n], $sformatf("multicast leaves by %0d outputs", n));
      write(sum_count[n], $sformatf("sum of %0d operands", n));
      write(maximum_count[n], $sformatf("maximum of %0d operands", n));
    end
    for (int n = 1; n <= 6; n++) write(request_count[n], $sformatf("grant among %0d requests", n));
    for (int n = 1; n <= FifoDepth; n++) begin
      write(ahead_count[n], $sformatf("branch %0d flits ahead of its sister", n));
    end
    for (int p = 0; p < Ports; p++) write_ports(p);
    write(startable_count, "two reductions may start at once");
    write(forks_count, "two multicasts fork at once");
    write(mixed_count, "multicast and reduction at once");
    write(paused_count, "reduction waits for its operands' next flits");
    write(into_tile_count, "result stalled on the way into the tile");
    $fclose(file);
  end
endmodule

bind router router_coverage #(
  .FifoDepth(FifoDepth),
  .YFirst(YFirst),
  .RowWidth(RowWidth),
  .ColWidth(ColWidth)
) u_coverage (
  .clk_i,
  .rst_ni,
  .row_i,
  .col_i,
  .in_free_i(in_free_o),
  .in_operand_free_i(in_operand_free_o),
  .out_valid_i(out_valid_o),
  .out_ready_i(out_ready_i),
  .front_valid_i({gen_input[4].u_input.front_valid, gen_input[3].u_input.front_valid,
                  gen_input[2].u_input.front_valid, gen_input[1].u_input.front_valid,
                  gen_input[0].u_input.front_valid}),
  .multicast_i(multicast),
  .needed_i({gen_input[4].u_input.needed, gen_input[3].u_input.needed, gen_input[2].u_input.needed,
             gen_input[1].u_input.needed, gen_input[0].u_input.needed}),
  .taken_i(branch_taken),
  .last_i(branch_last),
  .request_i({gen_output[4].valid, gen_output[3].valid, gen_output[2].valid, gen_output[1].valid,
              gen_output[0].valid}),
  .granted_i({gen_output[4].u_output.granted, gen_output[3].u_output.granted,
              gen_output[2].u_output.granted, gen_output[1].u_output.granted,
              gen_output[0].u_output.granted}),
  .fresh_i({gen_output[4].u_output.fresh, gen_output[3].u_output.fresh, gen_output[2].u_output.fresh,
            gen_output[1].u_output.fresh, gen_output[0].u_output.fresh}),
  .locked_i({gen_output[4].u_output.locked_q, gen_output[3].u_output.locked_q,
             gen_output[2].u_output.locked_q, gen_output[1].u_output.locked_q,
             gen_output[0].u_output.locked_q}),
  .clear_i({gen_output[4].u_output.clear, gen_output[3].u_output.clear, gen_output[2].u_output.clear,
            gen_output[1].u_output.clear, gen_output[0].u_output.clear}),
  .operand_valid_i(operand_valid),
  .partners_i(gen_reduce.u_reduce.partners),
  .present_i({gen_reduce.u_reduce.gen_operand[4].present, gen_reduce.u_reduce.gen_operand[3].present,
              gen_reduce.u_reduce.gen_operand[2].present, gen_reduce.u_reduce.gen_operand[1].present,
              gen_reduce.u_reduce.gen_operand[0].present}),
  .room_i({gen_reduce.u_reduce.gen_operand[4].room, gen_reduce.u_reduce.gen_operand[3].room,
           gen_reduce.u_reduce.gen_operand[2].room, gen_reduce.u_reduce.gen_operand[1].room,
           gen_reduce.u_reduce.gen_operand[0].room}),
  .output_of_i(gen_reduce.u_reduce.output_of),
  .candidate_i(gen_reduce.u_reduce.candidate),
  .start_i(gen_reduce.u_reduce.start),
  .busy_i(gen_reduce.u_reduce.busy_q),
  .operands_i(gen_reduce.u_reduce.operands),
  .target_i(gen_reduce.u_reduce.target),
  .complete_i(gen_reduce.u_reduce.complete),
  .maximum_i(gen_reduce.u_reduce.keep_larger),
  .result_valid_i(result_valid),
  .result_taken_i(result_taken)
);
