"""What Python calls: the commands' runs as functions, and the names that they take."""

from tlm.errors import InputError
from wafertlm.api.calibration_run import CalibrationRun, calibrate
from wafertlm.api.comparison_run import ComparisonRun, compare
from wafertlm.api.iteration_run import IterationRun, iteration
from wafertlm.api.kernel_run import KernelRun, run_kernel
from wafertlm.api.names import chip, chips, kernels, model, models
from wafertlm.api.serving_run import ServingRun, serve
from wafertlm.api.study_run import StudyRun, study
from wafertlm.output import CheckFailedError

__all__ = [
    "CalibrationRun",
    "CheckFailedError",
    "ComparisonRun",
    "InputError",
    "IterationRun",
    "KernelRun",
    "ServingRun",
    "StudyRun",
    "calibrate",
    "chip",
    "chips",
    "compare",
    "iteration",
    "kernels",
    "model",
    "models",
    "run_kernel",
    "serve",
    "study",
]
