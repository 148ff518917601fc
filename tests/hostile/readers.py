"""Which options of the program read files, and files that each of them reads."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from tests.hostile.options import PLAIN, command
from tlm.calibrated import RESULTS_FOLDER
from tlm.chips.find import text_of as chip_text
from wafertlm import cli
from wafertlm.commands.common import OutputFile
from workloads.models.find import text_of as model_text

_REPOSITORY = Path(__file__).parents[2]
_REQUESTS = "arrived_at,num_prefill_tokens,num_decode_tokens\n0,10,5\n1.5,20,3\n2e0,7,1\n"
_AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
    "2023-11-16 18:15:50.9951690,396,109\n"
)
_LINES = '{"input_toks": 10, "output_toks": 5, "arrival_time_ns": 0}\n' * 3
_CONFIG = (
    '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2, "vocab_size": 1000,'
    ' "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,'
    ' "torch_dtype": "bfloat16", "tie_word_embeddings": false, "rms_norm_eps": 1e-05}'
)
_PACKETS = "cycle,source,destinations,flits,kind\n0,0:0,1:1,4,unicast\n3,1:0,0:2:0:2,2,multicast\n"
_TILES = "\n".join([",".join(["100"] * 4)] * 4)

_EXPLORED = """command = "kernel"
[options]
kernel = "mesh-gemm"
chip = "rtl-4x4"
grid = "4x4"
dtype = "int8"
level = "perf"
[parameters]
shape = { choices = ["64,64,64", "32,32,32"] }
"set:noc.hop_cycles" = { low = 1, high = 4, step = 1 }
[objectives]
cycles = "minimize"
[constraints]
utilization = { at_least = 0.1 }
[sampler]
kind = "grid"
"""

_RUN = """kernel = "mesh-gemm"
chip = "rtl-4x4"
grid = "4x4"
shape = "64,64,64"
dtype = "int8"
level = "perf"
set = ["noc.hop_cycles=2"]
"""
_LIBERTY = """library (tiny) {
  cell (INV) { area : 1.5; pin (A) { direction : input; } pin (Y) { function : "!A"; } }
}
"""

#: By an option's name: files that it reads, by what they are called.
SEEDS: dict[str, dict[str, str]] = {
    "chip": {f"{name}.toml": chip_text(name) for name in ("flat32", "h100x2", "flat32-wafer")},
    "model": {
        **{f"{name}.toml": model_text(name) for name in ("llama3-8b", "qwen3-30b-a3b")},
        "config.json": _CONFIG,
    },
    "rtl": {"mesh.toml": (_REPOSITORY / "docs/custom_rtl/mesh.toml").read_text()},
    "trace": {"trace.csv": _REQUESTS, "azure.csv": _AZURE, "trace.jsonl": _LINES},
    "traffic": {"packets.csv": _PACKETS},
    "tiles": {"tiles.csv": _TILES},
    "file": {"explore.toml": _EXPLORED},
    "config": {"run.toml": _RUN},
    "liberty": {"cells.lib": _LIBERTY},
    "finding": {"scene.json": '{"experiment": "unicast", "scene": "x", "packets": []}'},
}
SEEDS["name"] = SEEDS["chip"] | SEEDS["model"]
SEEDS["decode_chip"], SEEDS["router"] = SEEDS["chip"], SEEDS["rtl"]
#: What else is wanted of the line, or else.
_WITH = {
    ("explore", "file"): "--workers 1",
    ("serve", "trace"): "--model llama3-8b --chip h100x2 --scheduler chunked",
    ("noc", "traffic"): "--mesh 4x4 --level perf",
    ("replay", "finding"): f"--rtl {_REPOSITORY / 'docs/custom_rtl/mesh.toml'}",
    ("show", "name"): "chip",
}
#: Files beside a name that takes no file, folders with a part of their own here, and Python, which
#: is code.
OTHERS = {
    *(("study", "kept"), ("study", "plots"), ("report", "folder"), ("show", "copied_to")),
    *(("kernel", "kernel"), ("check", "kernel"), ("serve", "scheduler")),
}


class Reader(NamedTuple):
    """An option that reads a file: the command's line, and the option, if it has a name."""

    line: tuple[str, ...]
    option: tuple[str, ...]
    seeds: dict[str, str]


def file_options() -> Iterator[tuple[str, click.Parameter]]:
    """Options of the program that read files, by what they say of themselves."""
    for name in cli.COMMANDS:
        for each in command(name).params:
            metavar = str(each.metavar)
            is_path = isinstance(each.type, click.Path) and not isinstance(each.type, OutputFile)
            told = str(getattr(each, "help", ""))
            if is_path or "FILE" in metavar or "SPEC" in metavar or " file " in told:
                yield name, each


def readers() -> dict[str, Reader]:
    """Every such option."""
    found = {}
    for name, each in file_options():
        field = str(each.name)
        if (name, field) not in OTHERS:
            line = (name, *_WITH.get((name, field), PLAIN.get(name, "")).split())
            option = (each.opts[0],) if isinstance(each, click.Option) else ()
            found[f"{name} {field}"] = Reader(line, option, SEEDS[field])
    return found


def results(folder: Path) -> dict[str, str]:
    """What the report reads: stored runs in a folder, which are written here by the program."""
    kernel = ("kernel", "mesh-gemm", "--chip", "rtl-2x2", "--grid", "2x2", "--shape", "8,8,8")
    more = ("--dtype", "int8", "--out", str(folder / "k.json"), "--map", str(folder / "k.npz"))
    serve = ("serve", *PLAIN["serve"].split(), "--out", str(folder / "s.json"))
    assert cli.run([*kernel, *more]) == 0
    assert cli.run([*serve, "--requests-csv", str(folder / "s.csv")]) == 0
    assert np.load(folder / "k.npz").files
    return {path.name: str(path) for path in sorted(folder.iterdir())}


def calibration(name: str) -> bytes:
    """A stored calibration."""
    return (RESULTS_FOLDER / f"{name}.json").read_bytes()
