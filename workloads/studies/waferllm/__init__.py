"""WaferLLM (OSDI 2025): models on the wafer of a Cerebras WSE-2."""
