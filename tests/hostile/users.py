"""Running a part of a test as somebody else, by real permissions."""

import os
import sys
import traceback
from collections.abc import Callable

NOBODY = 65534


def as_nobody(work: Callable[[], object]) -> None:
    """Run something in a process of a user without rights; root is let do everything.

    Raises:
        AssertionError: if it raises anything, which is printed.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
