"""The approximately-timed engine: every tile's engines as processes, every packet on its way."""

from tlm.engines.at.run import run_at

__all__ = ["run_at"]
