"""Build Verilog once per content and run cocotb benches on it.

The cocotb runner would make every signal of the design public, which costs build time and most of
the speed; here only the top module's ports are, and the rest of the recipe is cocotb's.
"""

import json
import os
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cocotb_tools.config

from cosim.errors import SimulationError, UnfinishedError
from cosim.verilated.cache import ask_verilator, cached
from cosim.verilated.plain_names import PlainNames, plain_names
from cosim.verilated.toolchain import (
    ended_badly,
    one_file_or_many,
    tool_versions,
    verilator_environment,
)
from tlm.calibrated import REPOSITORY, file_hash
from tlm.children import run as run_tool
from tlm.scratch import run_folder

_MOST_ERROR_LINES = 15
_MISSING_DATA = re.compile(r"%Warning: (\S+):0: \$readmem file not found")
#: Some cycles of a mesh never take so long; Verilog that loops within one takes for ever.
STALL_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Simulation:
    """A built model: run benches on it as often as wanted.

    Attributes:
        folder: Where it is.
        top: Its top module.
        sources: Its Verilog.
        waves: Whether runs record a VCD.
        read: Files that it was made of, or reads as it runs, and that nobody had named.
    """

    folder: Path
    top: str
    sources: tuple[Path, ...]
    waves: bool
    read: tuple[Path, ...] = ()

    def run(
        self,
        module: str,
        plan: object,
        *,
        seed: int,
        folder: Path | None = None,
        bench_waves: bool = False,
    ) -> Any:
        """Run the cocotb module; it reads ``$WAFERTLM_PLAN`` and writes ``$WAFERTLM_RESULT``.

        The bench itself bounds its simulated time (cocotb's ``timeout_time``).

        Args:
            module: The bench.
            plan: What it reads, as JSON.
            seed: Seed of the run.
            folder: Where it runs and leaves its files; the caller removes it.
            bench_waves: The Verilog itself says when a wave is recorded, instead of all the time.

        Raises:
            UnfinishedError: if the simulator does not come back from a cycle.
            SimulationError: if a test of the bench fails or the simulator dies; the scratch
                folder with its log is then kept and named. With waves it is kept in any case.
        """
        # cocotb's runner brings pytest along: a quarter of a second that only benches need.
        from cocotb_tools.check_results import get_results
        from cocotb_tools.runner import get_runner

        work = folder or run_folder()
        self._link_data(work)
        (work / "plan.json").write_text(json.dumps(plan))
        rewritten = os.environ.get("COCOTB_REWRITE_ASSERTION_FILES", "")
        environment = verilator_environment() | {
            "WAFERTLM_PLAN": str(work / "plan.json"),
            "WAFERTLM_RESULT": str(work / "result.json"),
            "WAFERTLM_STALL_SECONDS": str(STALL_SECONDS),
            # A model in a folder with a blank was not told where cocotb's libraries are.
            "LD_LIBRARY_PATH": os.pathsep.join(
                [str(cocotb_tools.config.libs_dir), os.environ.get("LD_LIBRARY_PATH", "")]
            ).rstrip(os.pathsep),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
            # Else cocotb loads pytest and its plugins, to show values of a failed assertion: most
            # of a short run. Who looks for a fault in a bench sets it to "*.py".
            "COCOTB_REWRITE_ASSERTION_FILES": rewritten,
        }
        if not rewritten:
            environment["PYGPI_USERS"] = "calibration.benches.begin:begin"
        log = work / "run.log"
        problem = ""
        try:
            results = get_runner("verilator").test(
                test_module=module,
                hdl_toplevel=self.top,
                hdl_toplevel_lang="verilog",
                build_dir=self.folder,
                test_dir=work,
                results_xml=str(work / "results.xml"),
                seed=seed,
                waves=self.waves and not bench_waves,
                extra_env=environment,
                log_file=log,
            )
            failed = get_results(results)[1]
            problem = f"{failed} test(s) failed" if failed else ""
        except (SystemExit, RuntimeError, OSError) as error:
            problem = str(error)
        if problem.endswith(f"return code: {-signal.SIGALRM}"):
            raise UnfinishedError(
                f"{self.top}: no more than 1000 cycles end in {STALL_SECONDS} s: does Verilog loop "
                "within one?"
            )
        output = log.read_text(errors="replace") if log.is_file() else ""
        if missing := _MISSING_DATA.search(output):
            problem = (
                f"{missing[1]}: found no such file of $readmem; allowed: one in the working folder "
                "or below it, or a whole path"
            )
        if problem:
            raise SimulationError(
                f"{module} on {self.top}: {problem}; see {work}\n{_first_errors(output, 1)}"
                f"{output[-4000:]}"
            )
        outcome = json.loads((work / "result.json").read_text())
        if not (self.waves or folder):
            shutil.rmtree(work)
        return outcome

    def _link_data(self, work: Path) -> None:
        """Put what the Verilog reads as it runs where it looks for it: below the run's folder."""
        here = Path.cwd()
        for path in self.read:
            if path.is_relative_to(here):
                link = work / path.relative_to(here)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)


def build(
    top: str,
    sources: Sequence[Path],
    parameters: Mapping[str, int],
    *,
    waves: bool = False,
    flags: Sequence[str] = (),
    include_folders: Sequence[Path] = (),
    written: Mapping[str, str] | None = None,
    shown: str = "",
    nodes: int = 1,
) -> Simulation:
    """Verilate and compile ``top``; the same content is built once, also by two runs at a time.

    Args:
        top: Name of the top module.
        sources: Verilog files and Verilator control files, in order of dependence.
        parameters: Values of the top module's parameters.
        waves: Whether runs record a VCD.
        flags: More Verilator options.
        include_folders: Where included files are looked for.
        written: More Verilog, text by file name, that the caller has written for this model.
        shown: What it is, for messages; empty: the top module.
        nodes: Of a mesh, how many, which says how long it takes to build.

    Raises:
        SimulationError: carrying the first errors and the end of the tools' output.
        InputError: if the folder of built models cannot be written.
    """
    written = dict(written or {})
    content = [
        top, [file_hash(path) for path in sources],
        sorted(written.items()), sorted(parameters.items()), waves, [*flags], tool_versions(),
        files := one_file_or_many(sources, nodes),
    ]  # fmt: skip
    options = [*flags, *(f"-I{place}" for place in include_folders)]

    def model(folder: Path, read: tuple[Path, ...] = ()) -> Simulation:
        all_sources = (*sources, *(folder / name for name in written))
        return Simulation(folder, top, all_sources, waves, read)

    def write(folder: Path) -> Simulation:
        for name, text in written.items():
            (folder / name).write_text(text)
        return model(folder)

    def ask(folder: Path) -> None:
        named = [*_parameters(parameters), *map(str, write(folder).sources)]
        if problem := ask_verilator(folder, top, [*options, *named]):
            raise _failed(top, problem)

    shown = shown or (f"{top} of {nodes} nodes" if nodes > 1 else top)
    found = cached(
        top,
        content,
        lambda folder: _verilate(write(folder), parameters, flags, include_folders, files),
        shown=shown + " with waves" * waves,
        nodes=nodes,
        ask=ask,
        include_folders=include_folders,
    )
    return model(found.folder, found.read)


def _verilate(
    simulation: Simulation,
    parameters: Mapping[str, int],
    flags: Sequence[str],
    include_folders: Sequence[Path],
    files: str,
) -> None:
    with plain_names() as names, names.building(simulation.folder) as folder:
        places = [f"-I{names.of(place)}" for place in include_folders]
        own = (*flags, *places, *_parameters(parameters), "-MAKEFLAGS", files)
        if printed := _compiled(simulation, folder, own, names):
            raise _failed(simulation.top, names.told(printed))


def _compiled(simulation: Simulation, folder: str, flags: Sequence[str], names: PlainNames) -> str:
    """Build a model; what the tools printed if they failed."""
    libraries = names.of(cocotb_tools.config.libs_dir)
    main = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
    command = [
        "verilator", "--cc", "--exe", "--build", "-j", str(os.cpu_count()),
        "--vpi", "--public-depth", "1", "--assert", "--prefix", "Vtop",
        "--top-module", simulation.top, "-Mdir", folder, "-o", simulation.top,
        "--timescale", "1ns/1ps", "-O3", "--x-assign", "fast",
        # The packaged Verilator's precompiled headers are broken for models of several files.
        # Short functions: else an 8x8 mesh compiles for minutes more. At -Og a mesh compiles in two
        # thirds of the time of -O1, and a cycle takes a sixth longer. Few files of C++: each one
        # reads the names of the whole model first.
        "--output-split-cfuncs", "500", "--output-split", "200000", "-MAKEFLAGS", "OPT_FAST=-Og",
        "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include",
        "-MAKEFLAGS", f"VM_TRACE={int(simulation.waves)}",
        "-LDFLAGS", f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator",
        *(["--trace"] if simulation.waves else []),
        *flags,
        *(names.of(path) for path in simulation.sources),
        names.of(main),
    ]  # fmt: skip
    environment = names.environment(verilator_environment())
    outcome = run_tool(command, environment)
    if outcome.returncode and "V3Gate" in outcome.stdout:
        # This Verilator's removal of gates breaks on some functions; the model is right without.
        outcome = run_tool([*command, "-fno-gate"], environment)
    return ended_badly(outcome)


def _parameters(values: Mapping[str, int]) -> list[str]:
    return [f"-G{name}={value}" for name, value in sorted(values.items())]


def _failed(top: str, output: str) -> SimulationError:
    first = _first_errors(output, _MOST_ERROR_LINES)
    return SimulationError(f"building {top} failed:\n{first}{output[-4000:]}")


def _first_errors(output: str, most: int) -> str:
    """The first lines with an error: what follows, such as warnings, may push them out of sight."""
    lines = [line for line in output.splitlines() if "%Error" in line or "%Fatal" in line]
    return "".join(f"{line}\n" for line in lines[:most])
