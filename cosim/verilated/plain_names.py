"""Names that a shell and make take literally: Verilator has a shell run make.

A path with a blank, a quote or a dollar sign is a link with a plain name for as long as a build
takes, so that a user's folders may be called as they like.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cosim.verilated.cache import cache_folder
from tlm.scratch import scratch_folder

_KEEP_OBJECT = Path(__file__).with_name("keep_object.sh")
_PLAIN = re.compile(r"[A-Za-z0-9_./+,-]+")


class PlainNames:
    """Plain names of paths; those that have one keep it.

    Args:
        folder: Where the links lie; its own name is plain.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._links: dict[str, str] = {}

    def of(self, path: Path | str) -> str:
        """The plain name of a file or folder that is there."""
        name = str(path)
        if _PLAIN.fullmatch(name):
            return name
        if name not in self._links:
            end = Path(name).suffix
            link = self._folder / f"{len(self._links)}{end if _PLAIN.fullmatch(end) else ''}"
            link.symlink_to(Path(name).absolute())
            self._links[name] = str(link)
        return self._links[name]

    @contextmanager
    def building(self, folder: Path) -> Iterator[str]:
        """A folder to build in: that one, or a copy that takes its place, as make asks where it is.

        Yields:
            Its plain name.
        """
        if _PLAIN.fullmatch(str(folder)):
            yield str(folder)
            return
        copy = self._links[str(folder)] = str(self._folder / "build")
        shutil.copytree(folder, copy)
        yield copy
        shutil.copytree(copy, folder, dirs_exist_ok=True)

    def environment(self, values: Mapping[str, str]) -> dict[str, str]:
        """An environment in which make finds Verilator, and compiles Verilator's library once.

        A cache of objects that the user has, such as ccache, does so instead if its name is plain.
        """
        kept = {name: value for name, value in values.items() if name != "OBJCACHE"}
        given = values.get("OBJCACHE", "")
        return kept | {
            "OBJCACHE": given if _PLAIN.fullmatch(given) else f"sh {self.of(_KEEP_OBJECT)}",
            "VERILATOR_ROOT": self.of(values["VERILATOR_ROOT"]),
            "WAFERTLM_OBJECTS": values.get("WAFERTLM_OBJECTS")
            or str((cache_folder() / "objects").absolute()),
        }

    def told(self, text: str) -> str:
        """What a tool printed, with the user's own names."""
        for name, link in self._links.items():
            text = text.replace(link, name)
        return text


@contextmanager
def plain_names() -> Iterator[PlainNames]:
    """Plain names for as long as a build takes."""
    with scratch_folder() as folder:
        if _PLAIN.fullmatch(str(folder)):
            yield PlainNames(folder)
            return
    with scratch_folder(Path("/tmp")) as folder:
        yield PlainNames(folder)
