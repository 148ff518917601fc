"""The tutorials work word for word: each command prints what they show."""

import re
import resource
import shlex
from pathlib import Path

import pytest

from tests.conftest import Wafertlm
from tests.documents import commands, console_blocks, indented, run_shown, text_of

_MACHINE_S = 15 * 60
_PAGES = (
    "tutorials/first_kernel.md",
    "tutorials/serve_on_a_wafer.md",
    "explanations/contention.md",
    "explanations/deadlock.md",
)
_FILE = re.compile(r"^\$ cat (\S+)\n((?:[^$`].*\n)+)", re.MULTILINE)


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


@pytest.mark.parametrize("page", _PAGES)
def test_pages_show_what_is_printed(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wafertlm: Wafertlm
) -> None:
    monkeypatch.chdir(tmp_path)
    text = text_of(page)
    for name, content in _FILE.findall(text):
        (tmp_path / name).write_text(content)
    for block in console_blocks(text):
        for shown in commands(block):
            run_shown(shown, wafertlm)


def test_two_multicasts_of_a_page_hang_without_protection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wafertlm: Wafertlm
) -> None:
    monkeypatch.chdir(tmp_path)
    text = text_of("explanations/deadlock.md")
    [(name, content)] = _FILE.findall(text)
    (tmp_path / name).write_text(content)
    [line] = re.findall(r"^wafertlm (noc .*--unprotected)$", text, re.MULTILINE)
    ran = wafertlm(*shlex.split(line))
    assert (ran.status, "waits for packet" in ran.stderr) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("line", indented(text_of("tutorials/serve_on_a_wafer.md")))
def test_longer_commands_of_pages_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wafertlm: Wafertlm
) -> None:
    monkeypatch.chdir(tmp_path)
    assert wafertlm(*shlex.split(line)[1:]).status == 0
