// Runs a Verilated mesh from event to event: offers queued packets at every node, takes all that comes
// out, and judges it. interconnect.py is the other side.
//
// A flit's payload is {packet number, bits that depend on packet and flit}; of an operand {joint number,
// such bits}, by its operation with a zero for the number in all operands of a reduction but one: results
// then carry the number too. So every flit that comes out is known, and what it has to be. Where adders are
// too narrow for the number, a result is known by its bits among those that are due.

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "Vblackbox_dut.h"
#include "flits.h"
#include "stop.h"
#include "verilated.h"
#include "verilated_vcd_c.h"

namespace {

constexpr unsigned kNodes = LOOP_NODES;
// A mesh may need some cycles to leave its reset, as one does that synchronises it.
constexpr unsigned kSettleCycles = 16;
constexpr uint64_t kHalfCyclePs = 1000;
constexpr uint64_t kAll = ~uint64_t{0} >> (64 - kNodes);
static_assert(kNodes <= 64, "the handshakes are kept in a word of 64 bits");

enum Outcome : int { kUntil = 0, kEvents = 1, kStill = 2, kFailed = 3 };

// All packets that go from one node to the same goal and are as long.
struct Shape {
  unsigned node;
  uint32_t flits;
  Operation operation;
  uint32_t operands;  // that meet
  uint32_t first[kFlitWords], behind[kFlitWords];  // without payload and last bit
  std::vector<uint32_t> destinations;
};

struct Packet {
  uint64_t start;
  uint32_t number, joint, shape, rank;  // among the operands that meet
};

struct Node {
  std::deque<Packet> packets;  // queued, in order; the first one may be on its way in
  uint32_t sent = 0;           // its flits that went in
  uint64_t head_cycle = 0;     // when the first of them did
  std::vector<uint32_t> results;  // numbers of those that are due, where they do not carry them
};

// What a node is to get: of a result what the operands so far amount to, or which of them may come.
struct Due {
  uint32_t number, flits, came = 0;
  Operation operation;
  uint32_t operands = 0;  // that were queued
  uint64_t head_cycle = 0;
  std::vector<uint64_t> result;
  std::vector<Packet> any;
};

// A packet that has wholly gone in or come out; shared with Python, which reads words of 64 bits.
struct Event {
  uint64_t ejected, packet, node, head_cycle, tail_cycle;
};

// A flit that a node is offered: its packet, or -1, and its place there.
struct Offer {
  int64_t packet, place;
};

// Shared with Python: `_State` in handle.py has the same fields.
struct State {
  uint64_t cycle = 0, clocked = 0;
  uint64_t quiet = 0;  // clocked cycles since anything new was offered, or a flit moved
  uint64_t still_since = 0;  // the cycle after the last one in which a flit moved
  uint64_t injected = 0, ejected = 0;  // flits
  uint64_t event_count = 0;
  const Event* events = nullptr;
  const char* failure = nullptr;
};

struct Loop {
  State state;
  Vblackbox_dut* mesh;
  VerilatedVcdC* wave;
  uint64_t first_ps = 0;  // time at which cycle 0 begins
  uint64_t offered = 0, queued = 0, ejecting = 0, ejects = kAll;  // a bit a node
  uint64_t holding = kAll;  // nodes that have the next flit of the packets queued there
  Node nodes[kNodes];
  std::vector<Shape> shapes;
  std::unordered_map<uint64_t, Due> due;
  std::vector<Event> events;
  std::string failure;
};

uint64_t payload(const Loop& loop, const Packet& packet, uint32_t flit) {
  const Shape& shape = loop.shapes[packet.shape];
  if (shape.operation == kCarry) return carried(packet.number, flit);
  return operand(shape.operation, packet.number, packet.joint, packet.rank, shape.operands, flit);
}

uint64_t key_of(uint32_t node, uint32_t packet) { return uint64_t{node} << 32 | packet; }

void fail(Loop& loop, const char* format, ...) {
  if (!loop.failure.empty()) return;
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  loop.failure = text;
}

// All models share a context, which refuses new ones at another time than 0.
void clock(Loop& loop, int level, uint64_t now_ps) {
  stop::reason = &loop.failure;
  loop.mesh->contextp()->time(now_ps);
  loop.mesh->clk_i = level;
  loop.mesh->eval();
  if (loop.wave) loop.wave->dump(now_ps);
  loop.mesh->contextp()->time(0);
  stop::reason = &stop::early;
}

// Nodes with a flit that is not offered.
uint64_t waiting(const Loop& loop) { return loop.queued & loop.holding & ~loop.offered; }

void offer(Loop& loop) {
  for (uint64_t rest = waiting(loop); rest; rest &= rest - 1) {
    const unsigned n = static_cast<unsigned>(__builtin_ctzll(rest));
    const Node& node = loop.nodes[n];
    const Packet& packet = node.packets.front();
    if (packet.start > loop.state.cycle) continue;
    const Shape& shape = loop.shapes[packet.shape];
    uint32_t flit[kFlitWords];
    const uint32_t* const header = node.sent ? shape.behind : shape.first;
    std::copy(header, header + kFlitWords, flit);
    set_payload(flit, payload(loop, packet, node.sent));
    const uint32_t last = node.sent + 1 == shape.flits;
    set_bits(flit, kLastBit, 1, &last);
    set_bits(&loop.mesh->inject_flit_i[0], n * kFlitBits, kFlitBits, flit);
    loop.offered |= uint64_t{1} << n;
    loop.state.quiet = 0;
  }
  loop.mesh->inject_valid_i = loop.offered;
}

void went_in(Loop& loop, unsigned n) {
  Node& node = loop.nodes[n];
  const uint64_t cycle = loop.state.cycle;
  ++loop.state.injected;
  if (node.sent == 0) node.head_cycle = cycle;
  if (++node.sent < loop.shapes[node.packets.front().shape].flits) return;
  loop.events.push_back({0, node.packets.front().number, n, node.head_cycle, cycle});
  node.sent = 0;
  node.packets.pop_front();
  if (node.packets.empty()) loop.queued &= ~(uint64_t{1} << n);
}

uint64_t payload_at(const Loop& loop, unsigned n) {
  const auto& flits = loop.mesh->eject_flit_o;
  const unsigned lsb = n * kFlitBits + kPayloadLsb;
  return uint64_t{bits_at(flits, lsb + 32)} << 32 | bits_at(flits, lsb);
}

// What the next flit has to be; of a selection, if the first operand that may be the one is it.
uint64_t wanted(const Loop& loop, const Due& due) {
  if (due.operation == kCarry) return carried(due.number, due.came);
  return due.operation == kSelect ? payload(loop, due.any.front(), due.came) : due.result[due.came];
}

bool may_be(const Loop& loop, const Due& due, uint64_t seen) {
  if (due.operation == kCarry) return seen == wanted(loop, due);
  if (due.operation != kSelect) return ((seen ^ wanted(loop, due)) & kCounts) == 0;
  return std::any_of(due.any.begin(), due.any.end(), [&](const Packet& packet) {
    return ((seen ^ payload(loop, packet, due.came)) & kCounts) == 0;
  });
}

// What is due of which a node is offered a flit; null if it is of none.
Due* due_at(Loop& loop, unsigned n) {
  const uint64_t seen = payload_at(loop, n);
  const auto found = loop.due.find(key_of(n, static_cast<uint32_t>(seen >> 32)));
  Due* const named = found == loop.due.end() ? nullptr : &found->second;
  if (kReducedBits == 64 || (named && named->operation == kCarry && may_be(loop, *named, seen))) return named;
  for (const uint32_t number : loop.nodes[n].results) {
    Due& due = loop.due[key_of(n, number)];
    if (may_be(loop, due, seen)) return &due;
  }
  return named;
}

void forget(Loop& loop, unsigned n, const Due& due) {
  auto& results = loop.nodes[n].results;
  results.erase(std::remove(results.begin(), results.end(), due.number), results.end());
  loop.due.erase(key_of(n, due.number));
}

void came_out(Loop& loop, unsigned n) {
  const auto& flits = loop.mesh->eject_flit_o;
  const unsigned lsb = n * kFlitBits;
  const uint64_t seen = payload_at(loop, n);
  const bool last = flits[(lsb + kLastBit) / 32] >> (lsb + kLastBit) % 32 & 1;
  const unsigned long long cycle = loop.state.cycle, shown = seen;
  Due* const found = due_at(loop, n);
  if (!found) {
    fail(loop, "packet %u is not due at node %u, where a flit with payload %#llx was ejected in cycle %llu",
         static_cast<uint32_t>(seen >> 32), n, shown, cycle);
    return;
  }
  Due& due = *found;
  if (!may_be(loop, due, seen) || last != (due.came + 1 == due.flits)) {
    fail(loop, "packet %u ejected at node %u: flit %u of %u has payload %#llx, expected %#llx, "
         "last bit %d, cycle %llu", due.number, n, due.came, due.flits, shown,
         static_cast<unsigned long long>(wanted(loop, due)), last, cycle);
    return;
  }
  std::erase_if(due.any, [&](const Packet& packet) {
    return ((seen ^ payload(loop, packet, due.came)) & kCounts) != 0;
  });
  ++loop.state.ejected;
  if (due.came == 0) due.head_cycle = cycle;
  if (++due.came < due.flits) return;
  loop.events.push_back({1, due.number, n, due.head_cycle, cycle});
  forget(loop, n, due);
}

// One more operand of a result that is due at a node.
void add_operand(const Loop& loop, Node& root, Due& due, const Packet& packet) {
  const bool first = packet.rank == 0;
  if (first && kReducedBits < 64) root.results.push_back(due.number);
  if (due.operation == kSelect) {
    due.any.push_back(packet);
    return;
  }
  if (first) due.result.resize(due.flits);
  for (uint32_t flit = 0; flit < due.flits; ++flit) {
    const uint64_t own = payload(loop, packet, flit);
    due.result[flit] = first ? own : combined(due.operation, due.result[flit], own);
  }
}

// What a node is offered.
Offer seen_at(Loop& loop, unsigned n) {
  if (const Due* const due = due_at(loop, n)) return {due->number, due->came};
  came_out(loop, n);  // which tells that it is not due
  return {-1, 0};
}

// The first half of a cycle: what is offered to the mesh, and by it.
void begin_cycle(Loop& loop) {
  offer(loop);
  clock(loop, 0, loop.first_ps + loop.state.cycle * 2 * kHalfCyclePs);
  loop.ejecting = loop.mesh->eject_valid_o;
}

// The end of a cycle in which these nodes take what they are offered.
void end_cycle(Loop& loop, uint64_t takes) {
  const uint64_t now_ps = loop.first_ps + loop.state.cycle * 2 * kHalfCyclePs;
  const uint64_t taken = loop.offered & loop.mesh->inject_ready_o;
  if (takes != loop.ejects) {
    loop.mesh->eject_ready_i = loop.ejects = takes;
    clock(loop, 0, now_ps + kHalfCyclePs / 2);
    if (taken != (loop.offered & loop.mesh->inject_ready_o))
      fail(loop, "inject_ready changes with eject_ready of the same cycle, cycle %llu",
           static_cast<unsigned long long>(loop.state.cycle));
  }
  for (uint64_t rest = taken; rest; rest &= rest - 1) went_in(loop, static_cast<unsigned>(__builtin_ctzll(rest)));
  loop.offered &= ~taken;
  const uint64_t ejected = loop.ejecting & takes;
  for (uint64_t rest = ejected; rest; rest &= rest - 1) came_out(loop, static_cast<unsigned>(__builtin_ctzll(rest)));
  clock(loop, 1, now_ps + kHalfCyclePs);
  loop.state.quiet = taken || loop.ejecting ? 0 : loop.state.quiet + 1;
  ++loop.state.cycle;
  if (taken || ejected) loop.state.still_since = loop.state.cycle;
  ++loop.state.clocked;
}

// The earliest start of a packet that is not offered; the largest number if there is none.
uint64_t next_start(const Loop& loop) {
  uint64_t first = ~uint64_t{0};
  for (uint64_t rest = waiting(loop); rest; rest &= rest - 1)
    first = std::min(first, loop.nodes[__builtin_ctzll(rest)].packets.front().start);
  return first;
}

int outcome(Loop& loop, int found) {
  loop.state.events = loop.events.data();
  loop.state.event_count = loop.events.size();
  loop.state.failure = loop.failure.empty() ? nullptr : loop.failure.c_str();
  return loop.failure.empty() ? found : kFailed;
}

}  // namespace

extern "C" {

// Takes a model over, whose inputs are all zero, and leaves it at cycle 0, out of reset.
Loop* loop_new(Vblackbox_dut* mesh, VerilatedVcdC* wave, uint32_t reset_cycles) {
  stop::watch_finish();
  Loop* loop = new Loop{};
  loop->mesh = mesh;
  loop->wave = wave;
  loop->failure.swap(stop::early);
  for (uint32_t cycle = 0; cycle < reset_cycles + kSettleCycles; ++cycle) {
    mesh->rst_ni = cycle >= reset_cycles;
    clock(*loop, 0, loop->first_ps);
    clock(*loop, 1, loop->first_ps + kHalfCyclePs);
    loop->first_ps += 2 * kHalfCyclePs;
  }
  mesh->eject_ready_i = kAll;
  outcome(*loop, kUntil);
  return loop;
}

State* loop_state(Loop* loop) { return &loop->state; }

void loop_delete(Loop* loop) {
  loop->mesh->final();
  delete loop;
  stop::printed.clear();
}

// Registers a shape and returns its number; `first` and `behind` are its first flit and the others
// without payload and last bit.
uint32_t loop_shape(Loop* loop, uint32_t node, uint32_t flits, uint32_t operation, uint32_t operands,
                    const uint32_t* first, const uint32_t* behind, uint32_t destination_count,
                    const uint32_t* destinations) {
  Shape shape{node, flits, static_cast<Operation>(operation), operands, {}, {}, {}};
  std::copy(first, first + kFlitWords, shape.first);
  std::copy(behind, behind + kFlitWords, shape.behind);
  shape.destinations.assign(destinations, destinations + destination_count);
  loop->shapes.push_back(shape);
  return static_cast<uint32_t>(loop->shapes.size() - 1);
}

// Queues a packet; a reduction's operands name the number of the first one of them.
void loop_push(Loop* loop, uint32_t shape_number, uint32_t number, uint32_t joint, uint64_t start) {
  const Shape& shape = loop->shapes[shape_number];
  Packet packet{start, number, joint, shape_number, 0};
  for (const uint32_t node : shape.destinations) {
    Due& due = loop->due[key_of(node, joint)];
    due.number = joint;
    due.flits = shape.flits;
    due.operation = shape.operation;
    packet.rank = due.operands++;
    if (shape.operation != kCarry) add_operand(*loop, loop->nodes[node], due, packet);
  }
  loop->nodes[shape.node].packets.push_back(packet);
  loop->queued |= uint64_t{1} << shape.node;
}

// Simulates up to the first cycle with an event, or to cycle `until`, or until the mesh stands still:
// nothing has moved or was newly offered for `rest_cycles`, and no packet waits for its time. Time in
// which it stands still and packets wait is skipped.
int loop_run(Loop* loop, uint64_t until, uint64_t rest_cycles) {
  loop->events.clear();
  while (loop->state.cycle < until && loop->failure.empty()) {
    if (loop->state.quiet >= rest_cycles) {
      const uint64_t next = next_start(*loop);
      if (next == ~uint64_t{0}) return outcome(*loop, kStill);
      if (next > loop->state.cycle) {
        loop->state.cycle = std::min(next, until);
        continue;
      }
    }
    begin_cycle(*loop);
    end_cycle(*loop, kAll);
    if (!loop->events.empty()) return outcome(*loop, kEvents);
  }
  return outcome(*loop, kUntil);
}

// Simulates all events up to cycle `until`, or until nothing has moved for `rest_cycles` and no packet
// waits for its time. No time is skipped: the mesh may be one that counts cycles.
int loop_finish(Loop* loop, uint64_t until, uint64_t rest_cycles) {
  loop->events.clear();
  while (loop->state.cycle < until && loop->failure.empty()) {
    if (loop->state.quiet >= rest_cycles && next_start(*loop) == ~uint64_t{0}) return outcome(*loop, kStill);
    begin_cycle(*loop);
    end_cycle(*loop, kAll);
  }
  return outcome(*loop, kUntil);
}

// Lets a mesh in which nothing is due come to rest, and skips to cycle `until`.
int loop_skip(Loop* loop, uint64_t until, uint64_t rest_cycles) {
  const int found = loop_run(loop, until, rest_cycles);
  if (found == kStill) loop->state.cycle = until;
  return found;
}

// Begins a cycle in which only the nodes that hold a flit offer one. Says what each is offered, and,
// a bit a node, which of those that offer one get rid of it.
uint64_t loop_begin(Loop* loop, uint64_t holding, Offer* offers) {
  loop->events.clear();
  loop->holding = holding;
  begin_cycle(*loop);
  for (unsigned n = 0; n < kNodes; ++n) offers[n] = loop->ejecting >> n & 1 ? seen_at(*loop, n) : Offer{-1, 0};
  return loop->mesh->inject_ready_o;
}

// Ends it; the nodes that take what they are offered are a bit each.
int loop_end(Loop* loop, uint64_t takes) {
  end_cycle(*loop, takes);
  loop->holding = kAll;
  return outcome(*loop, loop->events.empty() ? kUntil : kEvents);
}

// Whether a node has nothing to offer behind the cycle that begins next: what it has goes in there.
int loop_sends_last(Loop* loop, uint32_t n) {
  const Node& node = loop->nodes[n];
  if (node.packets.empty()) return 1;
  const Packet& packet = node.packets.front();
  return node.packets.size() == 1 && node.sent + 1 == loop->shapes[packet.shape].flits &&
         packet.start <= loop->state.cycle && (loop->mesh->inject_ready_o >> n & 1);
}

// Packets that are due, in the order of packets and nodes: pairs (packet, node); returns how many there are.
uint32_t loop_due(Loop* loop, uint32_t most, uint32_t* pairs) {
  std::vector<std::pair<uint32_t, uint32_t>> all;
  for (const auto& [key, due] : loop->due) all.emplace_back(static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  std::sort(all.begin(), all.end());
  for (size_t at = 0; at < std::min<size_t>(all.size(), most); ++at) {
    pairs[2 * at] = all[at].first;
    pairs[2 * at + 1] = all[at].second;
  }
  return static_cast<uint32_t>(all.size());
}

}  // extern "C"
