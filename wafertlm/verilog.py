"""What goes wrong in Verilog, as a command tells it."""

from collections.abc import Iterator
from contextlib import contextmanager

from cosim.errors import HangError, SimulationError
from wafertlm.output import CheckFailedError


@contextmanager
def failing_checks() -> Iterator[None]:
    """Verilog that cannot be built, hangs, stops or changes data is a check that does not hold.

    Raises:
        CheckFailedError: saying where it went wrong.
    """
    try:
        yield
    except HangError as error:
        raise CheckFailedError(f"deadlock: {error}") from error
    except SimulationError as error:
        raise CheckFailedError(str(error)) from error
