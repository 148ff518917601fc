"""``python -m wafertlm.site.build``: the site, in ``build/site``; links that lead nowhere fail."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tlm.calibrated import REPOSITORY
from wafertlm.site.reference import reference_pages

_SITE = REPOSITORY / "build" / "site"
_SOURCE = REPOSITORY / "build" / "site-source"
_CONFIG = REPOSITORY / "build" / "mkdocs.yml"
_REFERENCE = "docs/reference"
_GENERATED = ("commands", "chips", "models", "routers", "results")
_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "rtl/**/*.md")
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
#: Pages in the order in which one reads them. What is not here comes behind the how-to pages.
ORDER = {
    "Tutorials": (
        "docs/tutorials/first_kernel.md",
        "docs/custom_rtl/README.md",
        "docs/tutorials/router_to_tokens.md",
        "docs/custom_chips.md",
        "docs/tutorials/serve_on_a_wafer.md",
    ),
    "How-to": (
        "docs/compare.md",
        "docs/explore.md",
        "docs/config.md",
        "docs/python.md",
        "docs/check.md",
        "docs/traces.md",
        "docs/rtl_in_the_loop.md",
        "docs/experiments.md",
        "CONTRIBUTING.md",
    ),
    "Reference": (
        *(f"{_REFERENCE}/{name}.md" for name in _GENERATED),
        "docs/kernels.md",
        "docs/iteration.md",
        "docs/serving.md",
        "docs/offchip.md",
        "docs/dies.md",
        "docs/models.md",
        "docs/tlm2.md",
        "rtl/README.md",
        "rtl/tile/README.md",
        "rtl/tile/descriptors.md",
        "rtl/memory/README.md",
        "CHANGELOG.md",
    ),
    "Explanations": (
        "docs/explanations/levels_and_errors.md",
        "docs/explanations/contention.md",
        "docs/explanations/deadlock.md",
        "docs/programs.md",
        "docs/tiles.md",
        "docs/accuracy.md",
    ),
    "Studies": (
        "docs/waferllm.md",
        "docs/flatattention.md",
        "docs/layered_prefill.md",
        "docs/npusim.md",
    ),
}


def pages() -> list[str]:
    """All pages that lie in the repository, as seen from it."""
    found = {path for pattern in _PAGES for path in REPOSITORY.glob(pattern)}
    return sorted(path.relative_to(REPOSITORY).as_posix() for path in found)


def navigation(known: Iterable[str]) -> dict[str, list[str]]:
    """The pages under their headings, in their order.

    Args:
        known: Pages that there are.
    """
    there = set(known)
    placed = {page for some in ORDER.values() for page in some} | {"README.md"}
    found = {title: [page for page in some if page in there] for title, some in ORDER.items()}
    found["How-to"] += sorted(there - placed)
    return found


def stage(folder: Path) -> list[str]:
    """Bring all pages together, those of the reference and what they show or link to among them.

    Args:
        folder: It is made anew.

    Returns:
        The pages.
    """
    shutil.rmtree(folder, ignore_errors=True)
    known = pages()
    for page in known:
        _copy(page, folder)
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        for link in _LINK.findall(text):
            target = (REPOSITORY / page).parent / link
            if target.is_file() and target.suffix != ".md":
                _copy(target.resolve().relative_to(REPOSITORY).as_posix(), folder)
    for name, text in reference_pages().items():
        path = folder / _REFERENCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        known.append(f"{_REFERENCE}/{name}")
    return known


def configuration(source: Path, site: Path, known: Iterable[str]) -> dict[str, Any]:
    """What MkDocs reads.

    Args:
        source: Where the pages lie.
        site: Where the site is to lie.
        known: The pages.
    """
    sections = [
        {title: [{_title(source / page): page} for page in some]}
        for title, some in navigation(known).items()
    ]
    return {
        "site_name": "wafertlm",
        "docs_dir": str(source),
        "site_dir": str(site),
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,  # nothing comes from elsewhere
            "features": ["navigation.tabs", "navigation.top", "toc.follow", "content.code.copy"],
        },
        "plugins": ["search"],  # there where the site is served
        "markdown_extensions": [
            {"toc": {"permalink": True}},
            "tables",
            "pymdownx.superfences",
            {"pymdownx.highlight": {"use_pygments": True}},
        ],
        "validation": {
            "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
            "nav": {"omitted_files": "warn", "not_found": "warn"},
        },
        "nav": [{"Home": "README.md"}, *sections],
    }


def main() -> None:
    """Build the site; exit status 1 if a link leads nowhere."""
    known = stage(_SOURCE)
    config = configuration(_SOURCE, _SITE, known)
    _CONFIG.write_text(json.dumps(config, indent=1), encoding="utf-8")
    line = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(_CONFIG)]
    ran = subprocess.run(
        line,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        print(ran.stderr, file=sys.stderr)
        sys.exit(1)
    print(_SITE / "index.html")


def _copy(name: str, folder: Path) -> None:
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(REPOSITORY / name, target)


def _title(page: Path) -> str:
    found = _TITLE.search(page.read_text(encoding="utf-8"))
    return found[1].replace("`", "") if found else page.stem


if __name__ == "__main__":
    main()
