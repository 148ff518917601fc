"""One iteration of a model on a chip, kernel by kernel."""

from wafertlm.asked.iteration import IterationOptions
from wafertlm.iteration.result import IterationResult
from wafertlm.iteration.run import run_iteration

__all__ = ["IterationOptions", "IterationResult", "run_iteration"]
