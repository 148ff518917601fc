# The public names: what type checkers read, and what the package loads when it is asked for.
from .api.calibration_run import CalibrationRun as CalibrationRun
from .api.calibration_run import calibrate as calibrate
from .api.comparison_run import ComparisonRun as ComparisonRun
from .api.comparison_run import compare as compare
from .api.errors import CheckFailedError as CheckFailedError
from .api.errors import InputError as InputError
from .api.iteration_run import IterationRun as IterationRun
from .api.iteration_run import iteration as iteration
from .api.kernel_run import KernelRun as KernelRun
from .api.kernel_run import run_kernel as run_kernel
from .api.names import chip as chip
from .api.names import chips as chips
from .api.names import kernels as kernels
from .api.names import model as model
from .api.names import models as models
from .api.serving_run import ServingRun as ServingRun
from .api.serving_run import serve as serve
from .api.study_run import StudyRun as StudyRun
from .api.study_run import study as study

__version__: str
__all__: list[str]
