"""Traffic and collectives on meshes of routers."""

from wafertlm.asked.noc import NocOptions
from wafertlm.noc.run import NocResult, run_noc

__all__ = ["NocOptions", "NocResult", "run_noc"]
