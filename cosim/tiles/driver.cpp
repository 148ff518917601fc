// Loads a Verilated mesh of tiles, runs it, notes what its engines do, and reads memories back.
// machine.py is the other side.
//
// One model, rtl/bench/tile_node.sv, stands for every node; the links between them are here. What goes over
// a link depends in this order: free places come from registers alone, offers from registers and free places,
// ready from offers. So three looks at the links, neighbour by neighbour, settle a cycle.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Vtile_node.h"
#include "Vtile_node___024root.h"
#include "stop.h"
#include "verilated.h"
#include "verilated_vcd_c.h"

namespace {

constexpr unsigned kRows = TILE_ROWS, kCols = TILE_COLS, kTiles = kRows * kCols;
constexpr unsigned kCountBits = TILE_COUNT_BITS, kFlitWords = TILE_FLIT_WORDS;
constexpr unsigned kQueues = 4, kLinks = 4;
constexpr unsigned kArrival = 2 * kQueues;  // after the starts and the ends
constexpr uint64_t kHalfCyclePs = 1000;
constexpr uint64_t kResetCycles = 4;
constexpr uint64_t kLoadPatienceCycles = 1000;  // a bank serves each of its ten ports in turn
constexpr unsigned kNetworkWrites = 8;          // port of the scratchpad (rtl/tile/tile.sv)

enum Outcome : int { kEnded = 0, kStill = 1, kTooLong = 2, kFailed = 3 };

struct Event {
  uint64_t cycle;
  uint32_t tile, kind;
};

// Shared with Python: `_State` in machine.py has the same fields.
struct State {
  uint64_t cycle = 0, event_count = 0;
  uint64_t work_cycles = 0;  // up to the last end or the last word that came, included
  const Event* events = nullptr;
  const char* failure = nullptr;
};

// A node's neighbour behind one of its links, north, east, south, west, and that one's link back.
struct Link {
  Vtile_node* neighbour = nullptr;
  unsigned facing = 0;
};

struct Node {
  std::unique_ptr<Vtile_node> model;
  Link links[kLinks];
};

struct Machine {
  State state;
  VerilatedVcdC wave;
  uint64_t now_ps = 0;
  Node nodes[kTiles];
  std::vector<Event> events;
  std::string failure;
};

template <typename Port>
uint32_t field(const Port& port, unsigned index, unsigned bits) {
  return static_cast<uint32_t>(port >> index * bits) & ((1u << bits) - 1);
}

template <typename Port>
void set(Port& port, uint64_t value) {
  port = static_cast<Port>(value);
}

// Free places behind every link.
void pass_free(Node& node) {
  uint64_t free = 0, operand_free = 0;
  for (unsigned p = 0; p < kLinks; ++p) {
    const Link& link = node.links[p];
    if (!link.neighbour) continue;
    free |= uint64_t{field(link.neighbour->in_free_o, link.facing, kCountBits)} << p * kCountBits;
    operand_free |= uint64_t{field(link.neighbour->in_operand_free_o, link.facing, kCountBits)} << p * kCountBits;
  }
  set(node.model->out_free_i, free);
  set(node.model->out_operand_free_i, operand_free);
}

// What the neighbours offer; whether they offer anything.
bool pass_offers(Node& node) {
  Vtile_node& model = *node.model;
  unsigned valid = 0, credits = 0;
  for (unsigned p = 0; p < kLinks; ++p) {
    const Link& link = node.links[p];
    if (!link.neighbour) continue;
    if (link.neighbour->out_valid_o >> link.facing & 1) {
      valid |= 1u << p;
      std::memcpy(&model.in_flit_i[p * kFlitWords], &link.neighbour->out_flit_o[link.facing * kFlitWords],
                  kFlitWords * sizeof(uint32_t));
    }
    if (link.neighbour->credit_out_valid_o >> link.facing & 1) {
      credits |= 1u << p;
      model.credit_in_flit_i[p] = link.neighbour->credit_out_flit_o[link.facing];
    }
  }
  model.in_valid_i = static_cast<CData>(valid);
  model.credit_in_valid_i = static_cast<CData>(credits);
  return valid | credits;
}

void pass_ready(Node& node) {
  unsigned ready = 0, credits = 0;
  for (unsigned p = 0; p < kLinks; ++p) {
    const Link& link = node.links[p];
    if (!link.neighbour) continue;
    ready |= (link.neighbour->in_ready_o >> link.facing & 1u) << p;
    credits |= (link.neighbour->credit_in_ready_o >> link.facing & 1u) << p;
  }
  node.model->out_ready_i = static_cast<CData>(ready);
  node.model->credit_out_ready_i = static_cast<CData>(credits);
}

void clock(Machine& machine, int level) {
  for (Node& node : machine.nodes) node.model->clk_i = static_cast<CData>(level);
}

// All models share a context, which refuses new ones at another time than 0.
void at(Machine& machine) {
  stop::reason = &machine.failure;
  machine.nodes[0].model->contextp()->time(machine.now_ps);
}

void dump(Machine& machine) {
  if (machine.wave.isOpen()) machine.wave.dump(machine.now_ps);
  machine.nodes[0].model->contextp()->time(0);
  machine.now_ps += kHalfCyclePs;
  stop::reason = &stop::early;
}

// The first half of a cycle: everything settles.
void settle(Machine& machine) {
  at(machine);
  clock(machine, 0);
  for (Node& node : machine.nodes) pass_free(node);
  for (Node& node : machine.nodes) node.model->eval();
  for (Node& node : machine.nodes) {
    if (pass_offers(node)) node.model->eval();
  }
  for (Node& node : machine.nodes) pass_ready(node);
  dump(machine);
}

// The second half: registers take what has settled.
void step(Machine& machine) {
  at(machine);
  clock(machine, 1);
  for (Node& node : machine.nodes) node.model->eval();
  dump(machine);
}

// A word from the network is written in this cycle.
bool word_came(const Vtile_node& model) {
  return model.rootp->tile_node__DOT__u_tile__DOT__ready >> kNetworkWrites & 1;
}

// Starts, ends and arrivals of the cycle; whether anything else moves.
bool note(Machine& machine) {
  bool busy = false;
  for (unsigned t = 0; t < kTiles; ++t) {
    const Vtile_node& model = *machine.nodes[t].model;
    for (uint32_t bits = model.start_o | uint32_t{model.end_o} << kQueues; bits; bits &= bits - 1)
      machine.events.push_back({machine.state.cycle, t, static_cast<uint32_t>(__builtin_ctz(bits))});
    if (model.arrived_o) machine.events.push_back({machine.state.cycle, t, kArrival});
    if (model.end_o || word_came(model)) machine.state.work_cycles = machine.state.cycle + 1;
    busy |= model.busy_o;
  }
  return busy;
}

bool idle(const Machine& machine) {
  return std::all_of(std::begin(machine.nodes), std::end(machine.nodes),
                     [](const Node& node) { return node.model->idle_o; });
}

int outcome(Machine& machine, int found) {
  machine.state.events = machine.events.data();
  machine.state.event_count = machine.events.size();
  machine.state.failure = machine.failure.empty() ? nullptr : machine.failure.c_str();
  return machine.failure.empty() ? found : kFailed;
}

void join(Machine& machine) {
  for (unsigned n = 0; n < kTiles; ++n) {
    Node& node = machine.nodes[n];
    const unsigned row = n / kCols, col = n % kCols;
    node.model->row_i = static_cast<CData>(row);
    node.model->col_i = static_cast<CData>(col);
    if (row > 0) node.links[0] = {machine.nodes[n - kCols].model.get(), 2};
    if (col + 1 < kCols) node.links[1] = {machine.nodes[n + 1].model.get(), 3};
    if (row + 1 < kRows) node.links[2] = {machine.nodes[n + kCols].model.get(), 0};
    if (col > 0) node.links[3] = {machine.nodes[n - 1].model.get(), 1};
  }
}

}  // namespace

extern "C" {

// With a path, a wave is written there.
Machine* machine_new(const char* wave) {
  stop::watch_finish();
  Machine* machine = new Machine{};
  if (wave) Verilated::traceEverOn(true);
  for (unsigned n = 0; n < kTiles; ++n) {
    const std::string name = "node_" + std::to_string(n / kCols) + "_" + std::to_string(n % kCols);
    machine->nodes[n].model = std::make_unique<Vtile_node>(name.c_str());
  }
  if (wave) {
    machine->nodes[0].model->trace(&machine->wave, 99);  // all models, which share a context
    machine->wave.open(wave);
  }
  join(*machine);
  machine->failure.swap(stop::early);
  outcome(*machine, kEnded);
  return machine;
}

State* machine_state(Machine* machine) { return &machine->state; }

void machine_delete(Machine* machine) {
  for (Node& node : machine->nodes) node.model->final();
  if (machine->wave.isOpen()) machine->wave.close();
  delete machine;
  stop::printed.clear();
}

// Resets all but the memories; the next run begins at cycle 0.
int machine_reset(Machine* machine) {
  machine->events.clear();
  machine->state.cycle = machine->state.work_cycles = 0;
  for (Node& node : machine->nodes) {
    node.model->run_i = 0;
    node.model->rst_ni = 0;
  }
  for (uint64_t cycle = 0; cycle < kResetCycles; ++cycle) {
    settle(*machine);
    step(*machine);
  }
  for (Node& node : machine->nodes) node.model->rst_ni = 1;
  return outcome(*machine, kEnded);
}

// Writes, or reads, words of all tiles at once, each when its bank is free: a run that was cut short may still
// work. Tile t's addresses and words are those from begin[t] to begin[t+1].
int machine_load(Machine* machine, int read, uint32_t space, const uint64_t* begin, const uint16_t* addresses,
                 uint64_t* words) {
  std::vector<uint64_t> places(begin, begin + kTiles);
  for (Node& node : machine->nodes) node.model->run_i = 0;
  uint64_t waited = 0;
  while (machine->failure.empty()) {
    bool left = false;
    for (unsigned t = 0; t < kTiles; ++t) {
      Vtile_node& model = *machine->nodes[t].model;
      model.load_valid_i = places[t] < begin[t + 1];
      if (!model.load_valid_i) continue;
      left = true;
      model.load_read_i = static_cast<CData>(read);
      model.load_space_i = static_cast<CData>(space);
      model.load_address_i = addresses[places[t]];
      model.load_data_i = words[places[t]];
    }
    settle(*machine);
    bool served[kTiles];
    for (unsigned t = 0; t < kTiles; ++t) {
      const Vtile_node& model = *machine->nodes[t].model;
      served[t] = model.load_valid_i && model.load_ready_o;
    }
    step(*machine);
    if (!left) break;
    for (unsigned t = 0; t < kTiles; ++t) {
      if (!served[t]) continue;
      if (read) words[places[t]] = machine->nodes[t].model->load_data_o;
      ++places[t];
      waited = 0;
    }
    if (++waited > kLoadPatienceCycles) machine->failure = "the load port of no tile is served";
  }
  return outcome(*machine, kEnded);
}

#if TILE_MEMORY
// Writes, or reads, words of the memory channel at a node; four a burst.
void machine_memory(Machine* machine, uint32_t node, int read, uint64_t first, uint64_t count, uint64_t* words) {
  auto& cells = machine->nodes[node].model->rootp->tile_node__DOT__gen_memory__DOT__u_memory__DOT__u_channel__DOT__u_storage__DOT__cells_q;
  for (uint64_t n = 0; n < count; ++n) {
    EData* word = &cells[(first + n) / 4][(first + n) % 4 * 2];
    if (read) {
      words[n] = word[0] | uint64_t{word[1]} << 32;
    } else {
      word[0] = static_cast<EData>(words[n]);
      word[1] = static_cast<EData>(words[n] >> 32);
    }
  }
}
#endif

// Runs until no descriptor is left and nothing has moved for `patience` cycles; or until nothing has moved for as
// long though descriptors are left; or to cycle `limit`.
int machine_run(Machine* machine, uint64_t limit, uint64_t patience) {
  for (Node& node : machine->nodes) node.model->run_i = 1;
  uint64_t quiet = 0;
  while (machine->state.cycle < limit && machine->failure.empty()) {
    settle(*machine);
    const size_t before = machine->events.size();
    const bool busy = note(*machine);
    quiet = busy || machine->events.size() > before ? 0 : quiet + 1;
    const bool done = idle(*machine);
    step(*machine);
    ++machine->state.cycle;
    if (quiet >= patience) return outcome(*machine, done ? kEnded : kStill);
  }
  return outcome(*machine, kTooLong);
}

}  // extern "C"
