"""What Python calls raise."""

from tlm.errors import InputError
from wafertlm.output import CheckFailedError

__all__ = ["CheckFailedError", "InputError"]
