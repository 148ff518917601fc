"""Traffic and collectives on meshes of routers: the names for notebooks."""

from wafertlm.noc.run import NocOptions, NocResult, run_noc

__all__ = ["NocOptions", "NocResult", "run_noc"]
