"""The tutorials work word for word: each command prints what they show."""

import resource
from pathlib import Path

import pytest

from tests.conftest import Wafertlm
from tests.documents import commands, console_blocks, run_shown, text_of

_MACHINE_S = 15 * 60


def _cpu_s() -> float:
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


@pytest.mark.rtl
@pytest.mark.slow
def test_a_routers_edit_reaches_the_first_token_in_a_quarter_of_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wafertlm: Wafertlm
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAFERTLM_CACHE", str(tmp_path / "cache"))
    began_s = _cpu_s()
    for block in console_blocks(text_of("tutorials/router_to_tokens.md")):
        for shown in commands(block):
            run_shown(shown, wafertlm)
    # On two cores; a machine that other tests share tells no wall time.
    assert _cpu_s() - began_s < 2 * _MACHINE_S
