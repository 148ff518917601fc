"""Serving of language models: traces, schedulers, the engine, iteration times, metrics."""
