"""The README says what the stored results say; its commands and the library's examples run."""

import json
import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

from calibration.tables import marked, stored_tables
from tests.documents import commands as commands_of
from tests.documents import console_blocks, text_of
from wafertlm.cli import run
from wafertlm.report.picture import DIGEST, PICTURE, digest, picture_results

README = Path(__file__).parents[2] / "README.md"


def test_tables_are_those_of_the_stored_results() -> None:
    for document, mark, table in stored_tables():
        assert marked(document, mark)[1] == table, f"{document.name}: {mark}"


def test_the_picture_is_of_the_stored_results_and_of_the_models_at_hand() -> None:
    with Image.open(PICTURE) as picture:
        drawn_from = picture.info[DIGEST]
    assert drawn_from == digest(picture_results()), (
        "docs/report.png is of other figures: run 'make picture'"
    )


def commands() -> list[object]:
    blocks = re.findall(r"(?:^    .*\n)+", README.read_text(), re.MULTILINE)
    lines = [line.strip().split("  #")[0] for block in blocks for line in block.splitlines()]
    # The largest and those that write are run by the demo.
    left_out = (
        *("720x720", "wafertlm report", "wafertlm calibrate", "wafertlm replay", "--noc rtl"),
        "wafertlm explore",
    )
    return [
        pytest.param(line, marks=pytest.mark.slow)
        if line.startswith(("wafertlm study", "wafertlm gates"))
        else line
        for line in lines
        if line.startswith("wafertlm ") and not any(part in line for part in left_out)
    ]


def test_the_worked_example_prints_what_the_tutorial_shows() -> None:
    """A slow test runs the tutorial; the README compares two of its routers."""
    tutorial = text_of("tutorials/router_to_tokens.md")
    [example] = [
        block for block in console_blocks(README.read_text("utf-8")) if "compare serve" in block
    ]
    figures = [line for _, output in commands_of(example) for line in output.splitlines()]
    assert len(figures) > 4
    for line in figures:
        assert line == "..." or line.rstrip(" │") in tutorial


@pytest.mark.parametrize("line", commands())
def test_commands_run(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize(("document", "blocks"), [("kernels.md", 2), ("python.md", 7)])
def test_a_run_in_python_prints_what_the_document_says(
    document: str, blocks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (README.parent / "docs" / document).read_text()
    examples = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)+)", text)
    assert len(examples) == text.count("```python\n") == blocks
    for code, shown in examples:
        exec(compile(code, document, "exec"), {})
        assert capsys.readouterr().out == "".join(line[4:] + "\n" for line in shown.splitlines())


_LOCKED = re.compile(
    r"```text\n(wafertlm kernel .*noc\.channel=output.*)\n```\n\n"
    r"    cycles ([\d,]+); network waited_cycles ([\d,]+), most_waited (\S+ \w+), "
    r"most_waited_cycles ([\d,]+)\n"
)


def test_locked_channels_wait_as_the_document_says(capsys: pytest.CaptureFixture[str]) -> None:
    [(line, *shown)] = _LOCKED.findall((README.parent / "docs" / "kernels.md").read_text())
    assert run([*shlex.split(line)[1:], "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    waits = result["network"]
    found = [result["cycles"], waits["waited_cycles"], waits["most_waited"]]
    found.append(waits["most_waited_cycles"])
    assert [f"{each:,}" if isinstance(each, int) else each for each in found] == shown


_WITHOUT = re.compile(
    r"```text\n(wafertlm kernel .*)\n```\n\n"
    r"    cycles ([\d,]+); loaded ([\d,]+) bytes; without (--\w+) ([\d,]+) and ([\d,]+)\n"
)


def test_variants_are_worth_what_the_document_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Nearly: another plan may be the fastest by a closed form that is nearer to `lt`."""
    examples = _WITHOUT.findall((README.parent / "docs" / "kernels.md").read_text())
    assert len(examples) == 2
    for line, cycles, loaded, flag, *without in examples:
        words = shlex.split(line)[1:]
        plain = [each for each in words if each != flag]
        for asked, shown in ((words, (cycles, loaded)), (plain, without)):
            assert run([*asked, "--json"]) == 0
            result = json.loads(capsys.readouterr().out)
            found = [result["cycles"], result["memory"]["loaded_bytes"]]
            assert found == pytest.approx([int(each.replace(",", "")) for each in shown], rel=0.02)


_SHOWN = re.compile(
    r"```text\n(wafertlm kernel .*)\n```\n\n"
    r"    cycles ([\d,]+); compute ([\d,]+), communication ([\d,]+), memory ([\d,]+), "
    r"overhead ([\d,]+)\n    loaded ([\d,]+) bytes from (\d+) channels, stored ([\d,]+)\n"
)


def test_kernels_take_what_the_document_says(capsys: pytest.CaptureFixture[str]) -> None:
    examples = _SHOWN.findall((README.parent / "docs" / "kernels.md").read_text())
    assert len(examples) == 3
    for line, *shown in examples:
        assert run([*shlex.split(line)[1:], "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        memory = (result["memory"][name] for name in ("loaded_bytes", "channels", "stored_bytes"))
        found = [result["cycles"], *result["breakdown_cycles"].values(), *memory]
        assert found == [int(each.replace(",", "")) for each in shown], line
