"""Meshes compiled with the loop that runs them: built once per content, to be loaded here."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock

from calibration.blackbox.header import FlitLayout
from calibration.blackbox.mesh import _adapter
from calibration.blackbox.spec import MeshSpec
from calibration.harness.simulator import SimulationError, _drop_intermediates, cache_folder
from calibration.harness.toolchain import tool_versions, verilator_environment
from tlm.calibrated import REPOSITORY, file_hash
from tlm.errors import InputError

_OWN_SOURCES = tuple(Path(__file__).parent / name for name in ("loop.cpp", "loop.h"))
_TOP = "blackbox_dut"  # also the name of its file: pyverilator finds a module by its file
_MOST_NODES = 64
_FLAGS = (
    "--no-timing", "--assert", "--top-module", _TOP, "--timescale", "1ns/1ps", "-O3",
    "--x-assign", "fast", "--output-split-cfuncs", "500",
)  # fmt: skip
#: After pyverilator's own flags, which ask for C++11. Time and failures are kept by model, not by
#: process, so that several models live side by side.
_CXX_FLAGS = "-std=gnu++20 -fno-gnu-unique -DVL_TIME_CONTEXT -DVL_USER_STOP -DVL_USER_FATAL"
#: pyverilator asks for waves of everything, which costs half the speed and most of the build.
_WITHOUT_WAVES = ("--trace-depth", "1")
#: Verilator's own library prints; loop.h says where. The packaged Verilator's precompiled headers
#: are broken for models of several files. At -O1 a model compiles in a fraction of the time.
_MAKE_FLAGS = r"-j2 -- OPT_FAST=-O1 OPT_GLOBAL=-Os\ -include\ loop.h CFG_CXXFLAGS_PCH_I=-include"


@dataclass(frozen=True, slots=True)
class LoopModel:
    """A mesh of ``rows`` x ``cols`` nodes; the specification says how it is driven.

    With ``waves`` a wave shows the signals inside, too.
    """

    spec: MeshSpec
    rows: int
    cols: int
    waves: bool = False

    def __post_init__(self) -> None:
        self.spec.check_size(self.rows, self.cols)
        if self.rows * self.cols > _MOST_NODES:
            raise InputError(
                f"mesh: found {self.rows}x{self.cols} nodes in Verilog; allowed: {_MOST_NODES}"
            )

    @property
    def name(self) -> str:
        """The mesh and its size, for messages."""
        return f"{self.spec.name} {self.rows}x{self.cols}"

    def layout(self) -> FlitLayout:
        """Its flits."""
        return FlitLayout(self.spec, self.rows, self.cols)

    def build(self) -> Path:
        """The library of the model, from the cache if it is there.

        Raises:
            SimulationError: carrying the end of the tools' output.
        """
        layout, rtl = self.layout(), self.spec.rtl
        adapter = _adapter(self.spec, self.rows, self.cols, layout.width)
        flags = [*_FLAGS, *(() if self.waves else _WITHOUT_WAVES), *rtl.verilator_options]
        flags += [f"-D{name}={value}" for name, value in sorted(rtl.defines.items())]
        values = {
            "NODES": self.rows * self.cols,
            "FLIT_BITS": layout.width,
            "PAYLOAD_LSB": layout.payload_lsb,
            "LAST_BIT": layout.last_bit,
            "ELEMENT_BITS": self.spec.features.element_bits,
        }
        cargs = " ".join([_CXX_FLAGS, *(f"-DLOOP_{name}={n}" for name, n in values.items())])
        included = [
            (path.relative_to(place).as_posix(), file_hash(path))
            for place in self.spec.include_folders()
            for path in sorted(place.rglob("*"))
        ]
        hashes = [file_hash(path) for path in (*self.spec.source_files(), *_OWN_SOURCES)]
        tools = {**tool_versions(), "pyverilator-mm": version("pyverilator-mm")}
        key_parts = [adapter, flags, cargs, _MAKE_FLAGS, included, hashes, tools]
        key = hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()[:16]
        folder = cache_folder() / f"loop-{key}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not (folder / "done").is_file():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                (folder / f"{_TOP}.sv").write_text(adapter)
                for path in _OWN_SOURCES:
                    shutil.copy2(path, folder)
                self._compile(folder, flags, cargs)
                _drop_intermediates(folder)
                (folder / "done").touch()
        return folder / f"V{_TOP}"

    def _compile(self, folder: Path, flags: list[str], cargs: str) -> None:
        flags += [f"-I{place}" for place in self.spec.include_folders()]
        arguments: dict[str, Any] = {
            "top_verilog_file": str(folder / f"{_TOP}.sv"),
            "preceding_files": str(folder / "loop.cpp"),
            "args": [*flags, *map(str, self.spec.source_files())],
            "cargs": cargs,
        }
        problem = _compiled(folder, arguments)
        if "V3Gate" in problem:
            # This Verilator's removal of gates breaks on some functions; without, all is right.
            problem = _compiled(folder, {**arguments, "args": ["-fno-gate", *arguments["args"]]})
        if problem:
            raise SimulationError(f"building {self.name} failed:\n{problem[-4000:]}")


def _compiled(folder: Path, arguments: dict[str, Any]) -> str:
    """Build a model in a folder; what the tools said if they failed."""
    (folder / "arguments.json").write_text(json.dumps(arguments))
    environment = verilator_environment() | {
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        "MAKEFLAGS": _MAKE_FLAGS,
    }
    outcome = subprocess.run(
        [sys.executable, "-m", "calibration.loop.compile_model", str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return outcome.stdout if outcome.returncode else ""
