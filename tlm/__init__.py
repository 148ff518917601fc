"""Transaction-level models: payloads, sockets, interconnect, memory, compute, programs, engines."""
