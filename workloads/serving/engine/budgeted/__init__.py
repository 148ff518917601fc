"""Schedulers with a budget of prompt tokens, compiled: many iterations a call."""
