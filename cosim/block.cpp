// Clocks one block of Verilog; whoever drives it sets and reads its ports between the two halves of a
// cycle. block.py is the other side.

#include <cstdint>
#include <string>

#define BLOCK_QUOTED(name) #name
#define BLOCK_FILE(name) BLOCK_QUOTED(name.h)
#include BLOCK_FILE(BLOCK_CLASS)
#include "stop.h"
#include "verilated.h"

namespace {

// Shared with Python: `State` in verilated/handle.py.
struct State {
  const char* failure = nullptr;  // why the Verilog stopped, or nothing
};

struct Block {
  State state;
  BLOCK_CLASS* top;
  std::string failure;
};

void evaluate(Block& block, int level) {
  stop::reason = &block.failure;
  block.top->clk_i = level;
  block.top->eval();
  stop::reason = &stop::early;
  if (!block.failure.empty()) block.state.failure = block.failure.c_str();
}

}  // namespace

extern "C" {

// Takes a model over, whose inputs are all zero, and leaves it out of reset.
Block* block_new(BLOCK_CLASS* top, uint32_t reset_cycles) {
  stop::watch_finish();
  Block* block = new Block{{}, top, {}};
  block->failure.swap(stop::early);
  for (uint32_t cycle = 0; cycle < reset_cycles; ++cycle) {
    evaluate(*block, 0);
    evaluate(*block, 1);
  }
  top->rst_ni = 1;
  return block;
}

// The first half of a cycle: outputs follow the inputs.
void block_settle(Block* block) { evaluate(*block, 0); }

// The end of a cycle, and whole cycles behind it in which no input changes.
void block_clock(Block* block, uint64_t more_cycles) {
  evaluate(*block, 1);
  for (uint64_t cycle = 0; cycle < more_cycles && block->failure.empty(); ++cycle) {
    evaluate(*block, 0);
    evaluate(*block, 1);
  }
}

State* block_state(Block* block) { return &block->state; }

void block_delete(Block* block) {
  block->top->final();
  delete block;
}

}  // extern "C"
