"""The loosely-timed engine: one local clock per tile, synchronised only where tiles communicate."""

from tlm.engines.lt.run import Progress, run_lt

__all__ = ["Progress", "run_lt"]
