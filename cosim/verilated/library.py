"""Verilog compiled to a library that is loaded into this process, by pyverilator."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cosim.errors import SimulationError
from cosim.verilated.cache import ask_verilator, cached
from cosim.verilated.plain_names import PlainNames, plain_names
from cosim.verilated.toolchain import (
    ended_badly,
    one_file_or_many,
    tool_versions,
    verilator_environment,
)
from tlm.calibrated import REPOSITORY, file_hash
from tlm.children import run

_FOLDER = Path(__file__).parent
#: Few files of C++: each one reads the names of the whole model first.
_FLAGS = (
    "--no-timing", "--assert", "--timescale", "1ns/1ps", "-O3", "--x-assign", "fast",
    "--output-split-cfuncs", "500", "--output-split", "200000",
)  # fmt: skip
#: After pyverilator's own flags, which ask for C++11. Time and failures are kept by model, not by
#: process, so that several models live side by side.
_CXX_FLAGS = "-std=gnu++20 -fno-gnu-unique -DVL_TIME_CONTEXT -DVL_USER_STOP -DVL_USER_FATAL"
#: pyverilator asks for waves of everything, which costs half the speed and most of the build.
_WITHOUT_WAVES = ("--trace-depth", "1")
#: Verilator's own library prints; print.h says where. The packaged Verilator's precompiled headers
#: are broken for models of several files. At -Og a model compiles in a fraction of the time.
_MAKE_FLAGS = r"-j2 -- OPT_FAST=-Og OPT_GLOBAL=-Os\ -include\ print.h CFG_CXXFLAGS_PCH_I=-include"
#: The C++ that every library needs beside its own.
_COMMON = tuple(_FOLDER / name for name in ("print.h", "stop.h"))


@dataclass(frozen=True, slots=True)
class Library:
    """A module of Verilog, with the C++ that runs it.

    Attributes:
        name: Of the module for messages.
        top: The top module.
        text: Its Verilog.
        driver: The C++ that runs it.
        defines: Values of macros of the driver.
        sources: Verilog files that the module needs.
        flags: More options of Verilator.
        include_folders: Where included files are looked for.
        waves: A wave shows the signals inside, too.
        headers: C++ that the driver includes, beside what every driver does.
        nodes: Of a mesh, how many, which says how long it takes to build.
    """

    name: str
    top: str
    text: str
    driver: Path
    defines: dict[str, int | str]
    sources: Sequence[Path]
    flags: Sequence[str] = ()
    include_folders: Sequence[Path] = ()
    waves: bool = False
    headers: Sequence[Path] = ()
    nodes: int = 1

    def build(self) -> Path:
        """The library, from the cache if it is there.

        Raises:
            SimulationError: carrying the end of the tools' output.
            InputError: if the folder of built models cannot be written.
        """
        flags = [*_FLAGS, "--top-module", self.top, *self.flags]
        flags += [] if self.waves else _WITHOUT_WAVES
        defines = (f"-D{name}={value}" for name, value in self.defines.items())
        cargs = " ".join([_CXX_FLAGS, *defines])
        own = [self.driver, *_COMMON, *self.headers]
        content = [
            self.text,
            flags,
            cargs,
            [file_hash(path) for path in (*self.sources, *own)],
            self._make_flags(),
            {**tool_versions(), "pyverilator-mm": version("pyverilator-mm")},
        ]

        def make(folder: Path) -> None:
            (folder / f"{self.top}.sv").write_text(self.text)
            for path in own:
                shutil.copy2(path, folder)
            with plain_names() as names, names.building(folder) as plain:
                self._compile(plain, flags, cargs, names)

        found = cached(
            self.top,
            content,
            make,
            shown=f"{self.name} for this process" + " with waves" * self.waves,
            nodes=self.nodes,
            ask=self._ask,
            include_folders=self.include_folders,
        )
        return found.folder / f"V{self.top}"

    def _make_flags(self) -> str:
        return f"{_MAKE_FLAGS} {one_file_or_many(self.sources, self.nodes)}"

    def _ask(self, folder: Path) -> None:
        top = folder / f"{self.top}.sv"
        top.write_text(self.text)
        arguments = [*_FLAGS, *self.flags, *self._includes(), str(top), *map(str, self.sources)]
        if problem := ask_verilator(folder, self.top, arguments):
            raise SimulationError(f"building {self.name} failed:\n{problem[-4000:]}")

    def _includes(self) -> list[str]:
        return [f"-I{place}" for place in self.include_folders]

    def _compile(self, folder: str, flags: list[str], cargs: str, names: PlainNames) -> None:
        places = (f"-I{names.of(place)}" for place in self.include_folders)
        arguments: dict[str, Any] = {
            "build_dir": folder,
            # pyverilator finds a module by the name of its file.
            "top_verilog_file": f"{folder}/{self.top}.sv",
            "preceding_files": f"{folder}/{self.driver.name}",
            "args": [*flags, *places, *map(names.of, self.sources)],
            "cargs": cargs,
        }
        environment = names.environment(verilator_environment())
        environment["MAKEFLAGS"] = self._make_flags()
        problem = _compiled(folder, arguments, environment)
        if "V3Gate" in problem:
            # This Verilator's removal of gates breaks on some functions; without, all is right.
            args = ["-fno-gate", *arguments["args"]]
            problem = _compiled(folder, {**arguments, "args": args}, environment)
        if problem:
            told = names.told(problem)[-4000:]
            raise SimulationError(f"building {self.name} failed:\n{told}")


def _compiled(folder: str, arguments: dict[str, Any], environment: dict[str, str]) -> str:
    """Build a model in a folder; what the tools said if they failed."""
    Path(folder, "arguments.json").write_text(json.dumps(arguments))
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "cosim.verilated.pyverilator_fit", folder]
    return ended_badly(run(command, environment))
