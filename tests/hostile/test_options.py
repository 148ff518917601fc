"""Every command with options as nobody means them."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.hostile.options import Line, command, lines
from tests.hostile.rules import Judge
from wafertlm import cli

_FEW, _A_PART, _PARTS = 600, 4_000, 10


def attack(judge: Judge, cases: int, part: int = 0) -> None:
    """Hold so many lines to the rules; each part draws others."""
    met: Counter[int] = Counter()

    @settings(max_examples=cases, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(line=lines())
    def hold(line: Line) -> None:
        met[judge.hold(line.arguments, line.outputs)] += 1

    (seed(part)(hold) if part else hold)()
    assert met[2] > cases / 3 and met[0] > cases / 50, met


def test_every_command_is_attacked() -> None:
    assert all(command(name).params for name in cli.COMMANDS)


def test_options(judge: Judge) -> None:
    attack(judge, _FEW)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_many_options(judge: Judge, part: int) -> None:
    """Workers take parts side by side; ``-k "test_many_options[0]"`` runs one."""
    attack(judge, _A_PART, part)
