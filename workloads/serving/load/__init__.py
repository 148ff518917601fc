"""Requests: traces, generated loads, and the highest rate that is served well enough."""
