// Included before Verilator's library: what the Verilog prints is kept for messages, and off stdout.
#pragma once

extern "C" int loop_print(const char* format, ...);
#define VL_PRINTF loop_print
