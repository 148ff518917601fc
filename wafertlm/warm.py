"""Compile the models' hot loops beforehand, as ``make install`` does: ``python -m wafertlm.warm``.

Numba compiles a loop when it is first run, and keeps the machine code beside its source until that
changes. So small runs of commands, of which each compiles what none before it does, compile all.
"""

import gc
from concurrent.futures import as_completed
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from tlm import children
from tlm.tiles import outside_mesh
from wafertlm import cli
from wafertlm.output import log, progress

_GEMM = "--chip rtl-2x2 --grid 2x2 --shape 16,16,16 --dtype int8 --allow-stale"
_WAFER = "--chip wse2 --grid 4x4 --shape 32,32,32 --dtype fp16"
_ATTENTION = "--chip flat32 --grid 4x4 --shape 1,4,4,64,64,64,64 --dtype fp16"
_OFFCHIP = "--chip rtl-2x2 --grid 2x2 --shape 1,1,1,16,16,8,8 --dtype int8 --allow-stale"
_MEMORY = "memory --device hbm3 --requests 10 --policy"
#: Those that take long first: the others fill the second processor.
RUNS = (
    f"kernel summa {_WAFER} --level lt --allow-stale",
    f"kernel summa {_GEMM} --level at",
    f"{_MEMORY} ramulator",
    f"kernel stream-gemm {_WAFER} --level perf --allow-stale",
    f"kernel flash-attention-2 {_OFFCHIP} --level at --memory at",
    f"kernel partitioned-gemm {_WAFER} --level perf --allow-stale",
    f"kernel flash-attention-2 {_ATTENTION} --level lt --memory perf --allow-stale",
    f"kernel summa {_GEMM} --level lt",
    f"check flat-attention {_ATTENTION}",
    f"{_MEMORY} dramsim3",
    f"{_MEMORY} dramsys",
    f"check mesh-gemm {_WAFER}",
    f"check summa {_WAFER}",
    "noc --mesh 2x2 --traffic uniform --rate 0.1 --cycles 100 --level at",
    "dies --chip flat32-wafer --collective all-to-all --bytes 64",
    "serve --model llama3-8b --chip flat32 --scheduler chunked --workload sharegpt --rate 4 "
    "--requests 5",
)


def main() -> None:
    """Compile, in a process for each processor; what fails is told, and compiled on its use."""
    gc.set_threshold(100_000)  # a tenth of the time would go into looking for circles of objects
    log("compiling the models, about a minute, once")
    with children.pool() as pool, progress("models compiled") as bar:
        runs = [pool.submit(_run, arguments) for arguments in RUNS]
        runs.append(pool.submit(_prepare_tiles))
        for done, run in enumerate(as_completed(runs), start=1):
            if problem := run.result():
                log(problem)
            bar(done, len(runs))


def _run(arguments: str) -> str:
    """Run a command for what it compiles; what it says if it fails."""
    said = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(said):
        status = cli.run([*arguments.split(), "--json"])
    return f"not compiled: {arguments}: {said.getvalue()}" if status else ""


def _prepare_tiles() -> str:
    """Tiles beside routers in Verilog, which would have to be built."""
    outside_mesh.ready()
    return ""


if __name__ == "__main__":
    main()
