"""Settings and fixtures for all tests."""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import settings

from cosim.verilated.cache import cache_folder
from wafertlm.cli import run

pytest_plugins = ["tests.specifications"]

# The first example of a law often waits for Numba: no example has a deadline. The examples are the
# same in every run, so that a change is judged by what it changes.
settings.register_profile(
    "wafertlm", deadline=None, derandomize=True, print_blob=True, max_examples=60
)
settings.load_profile("wafertlm")


# Tests whose models lie elsewhere share what Verilator's own library was compiled to.
os.environ.setdefault("WAFERTLM_OBJECTS", str((cache_folder() / "objects").absolute()))

# Few tests make objects in circles: at Python's 700 a tenth of their time would go into looking.
gc.set_threshold(100_000)


def pytest_collection_finish() -> None:
    gc.freeze()  # the tests themselves are looked at no more


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of the command leaves."""

    status: int
    stdout: str
    stderr: str


Wafertlm = Callable[..., Ran]


@pytest.fixture
def wafertlm(capsys: pytest.CaptureFixture[str]) -> Wafertlm:
    """Runs the command in this process: ``wafertlm("doctor", "--json")``."""

    def call(*arguments: object) -> Ran:
        capsys.readouterr()
        status = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return call
