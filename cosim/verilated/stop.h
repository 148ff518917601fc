// What Verilator calls when Verilog prints, or stops by itself; included by the one driver of a model.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

#include "print.h"
#include "verilated.h"

// The wrapper of pyverilator has a hook for $finish.
using FinishCallback = void (*)(const char*, int, const char*);
extern FinishCallback vl_user_finish;

namespace stop {

constexpr size_t kKeptText = 2000;
inline std::string printed;             // the end of what the Verilog has printed
inline std::string early;               // why a model stopped that nobody runs yet
inline std::string* reason = &early;    // where the model that is evaluated keeps why it stopped

inline void because(const char* what, const char* file, int line) {
  if (reason->empty()) *reason = what + std::string(" at ") + file + ":" + std::to_string(line) + ": " + printed;
}

inline void watch_finish() {
  vl_user_finish = [](const char* file, int line, const char*) { because("the Verilog called $finish", file, line); };
}

}  // namespace stop

void vl_stop(const char* file, int line, const char*) VL_MT_UNSAFE { stop::because("the Verilog stopped", file, line); }
void vl_fatal(const char* file, int line, const char*, const char* message) VL_MT_UNSAFE {
  stop::because(message, file, line);
}

extern "C" int loop_print(const char* format, ...) {
  char text[1000];
  va_list arguments;
  va_start(arguments, format);
  const int count = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  stop::printed += text;
  if (stop::printed.size() > stop::kKeptText) stop::printed.erase(0, stop::printed.size() - stop::kKeptText);
  return count;
}
