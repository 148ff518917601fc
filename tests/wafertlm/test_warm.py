"""What ``make install`` compiles."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_GEMM = "--chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8"
_WAFER = "--chip wse2 --grid 16x16 --shape 128,128,128 --dtype fp16"
_ATTENTION = "--shape 1,8,8,128,128,64,64 --dtype fp16 --chip flat32 --grid 8x8"
_OFFCHIP = "--chip rtl-4x4 --grid 4x4 --shape 1,4,4,32,32,16,16 --dtype int8 --level at"
_COMMANDS = [
    *(f"kernel {name} {_WAFER} --level lt" for name in ("mesh-gemm", "summa", "cannon")),
    *(f"kernel {name} {_GEMM} --level at" for name in ("mesh-gemm-t", "summa")),
    f"kernel summa {_GEMM} --level lt",
    f"kernel summa {_GEMM} --level at --noc lt",
    f"kernel summa {_GEMM} --level at --compute perf",
    f"kernel summa {_GEMM} --level perf",
    *(f"kernel {name}-gemm {_WAFER} --level perf" for name in ("stream", "partitioned")),
    f"kernel mesh-gemv {_GEMM.replace('64,', '1,', 1)} --level lt",
    f"kernel flat-attention {_ATTENTION} --level lt",
    f"kernel flash-attention-3 {_ATTENTION} --level lt --memory perf",
    f"kernel flat-attention {_OFFCHIP} --memory at",
    "noc --mesh 4x4 --traffic uniform --rate 0.2 --cycles 1000 --multicast-fraction 0.1",
    "noc --mesh 4x4 --collective reduce --group row --source 1,0 --flits 16",
    *(
        f"memory --policy {policy} --pattern mixed --requests 100"
        for policy in ("ramulator", "dramsim3", "dramsys")
    ),
    "dies --chip flat32-wafer --collective all-to-all --bytes 65536",
    f"check mesh-gemm-t {_GEMM}",
    f"check flat-attention {_ATTENTION}",
    "serve --model llama3-8b --chip flat32 --scheduler chunked --workload sharegpt "
    "--rate 4 --requests 20",
]


@pytest.mark.slow
def test_what_is_compiled_beforehand_is_all_that_commands_need(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        # Level `at` says what it costs, whether it compiles or not.
        lines = ran.stderr.splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("level at: "))

    assert said("wafertlm.warm") == "compiling the models, about a minute, once\n"
    compiling = [line for line in _COMMANDS if said("wafertlm.cli", *line.split())]
    assert compiling == []
