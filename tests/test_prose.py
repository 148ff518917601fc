"""The documents are read by tired people: no sentence of theirs is long."""

import re
from pathlib import Path

import pytest

from tlm.calibrated import REPOSITORY

MOST_WORDS = 30
#: Pages for users, and those of the Verilog.
_PAGES = sorted({
    path
    for pattern in ("*.md", "docs/**/*.md", "rtl/**/*.md")
    for path in REPOSITORY.glob(pattern)
})  # fmt: skip
_NO_PROSE = re.compile(
    r"^(```|~~~).*?^\1.*?$"  # fenced code
    r"|<!--.*?-->"
    r"|(?<=\n\n)(?: {4}[^\n]*\n)+"  # indented code
    r"|^\|[^\n]*$"  # tables
    r"|^#[^\n]*$",
    re.MULTILINE | re.DOTALL,
)
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]+`")
_END = re.compile(r"[.!?][\"')*]*\s+(?=[^a-z\s])")


def sentences(text: str) -> list[str]:
    """The sentences of a page of Markdown; code in a sentence is a word."""
    prose = _NO_PROSE.sub("\n\n", text)
    prose = _CODE.sub("Code", _LINK.sub(r"\1", prose))
    paragraphs = re.split(r"\n\s*\n", _ITEM.sub("\n\n", prose))
    return [each for paragraph in paragraphs for each in _END.split(" ".join(paragraph.split()))]


def words(sentence: str) -> int:
    """Its words, those in brackets among them."""
    return sum(any(sign.isalnum() for sign in word) for word in sentence.split())


@pytest.mark.parametrize("page", _PAGES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_no_sentence_is_long(page: Path) -> None:
    long = [each for each in sentences(page.read_text("utf-8")) if words(each) > MOST_WORDS]
    assert long == []


def test_sentences_are_found() -> None:
    text = "# No\n\nOne `a b. C` is.\nTwo\n[x y](http://a.b c) are. 3 is.\n\n- An item\n- Another\n"
    found = [each for each in sentences(f"{text}\n    code. It\n\n| a. B |\n") if each]
    assert found == ["One Code is", "Two x y are", "3 is.", "An item", "Another"]
    assert words("a (b c) - d") == 4
