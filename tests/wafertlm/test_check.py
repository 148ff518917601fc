"""``wafertlm check``."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wafertlm
from tlm.check import TileLimits, check_program
from tlm.errors import InputError
from wafertlm import cli
from wafertlm.checked import ToCheck, check_kernels, of_layer
from wafertlm.commands.check import report_figures
from wafertlm.kernel import KernelOptions, resolve
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.parts.collectives import METHODS
from workloads.models.model import model_text

_SUMMA = ("check", "summa", "--chip", "wse2", "--shape", "64,64,64", "--dtype", "fp16")
#: Ways that take any root, as these kernels' lines need.
_ROOTED = ("network", "chain", "tree", "sequential")


#: Of kernels that do not run the example of their form, by the last word of their names.
_SHAPES = {"gemv": "1,64,64"}


def program_figures(kernel: str, **choices: str) -> dict[str, Any]:
    options = KernelOptions(
        kernel=kernel,
        chip="rtl-4x4",
        grid="4x4",
        shape=_SHAPES.get(kernel.split("-")[-1], KERNELS[kernel].form.example),
        dtype="int8",
        **choices,
    )
    limits = TileLimits(tile_bytes=64 * 1024, routing_paths=32)
    return report_figures(check_program(resolve(options).program, limits), (4, 4))


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_passes(kernel: str) -> None:
    figures = program_figures(kernel)
    # Each tile of an exchange sends to each, over more routes than a router of a wafer holds.
    broken = {each["rule"] for each in figures["findings"]}
    assert broken == ({"routing"} if kernel == "exchange" else set())
    assert figures["holds"] == (not broken)
    works = kernel not in ("rows-to-blocks", "blocks-to-rows", "exchange", "hand-over")
    assert figures["plmr"]["parallelism"]["busy_share"] == works
    in_tiles = kernel not in ("residual", "kv-append")  # theirs are blocks of off-chip memory
    assert (figures["plmr"]["memory"]["peak_bytes"] > 0) == in_tiles


@pytest.mark.parametrize(
    ("kernel", "method"),
    [
        *(("mesh-gemv", method) for method in METHODS),
        *(
            (kernel, method)
            for kernel in ("softmax", "rms-norm", "flat-attention")
            for method in _ROOTED
        ),
    ],
)
def test_every_way_to_reduce_passes(kernel: str, method: str) -> None:
    assert program_figures(kernel, collective=method)["findings"] == []


@pytest.mark.parametrize("kernel", ["softmax", "flat-attention"])
def test_a_tree_with_a_root_of_its_own_is_refused_where_a_kernel_chooses_it(kernel: str) -> None:
    with pytest.raises(InputError, match="--collective: found 'k-tree'; this kernel chooses"):
        program_figures(kernel, collective="k-tree")


def test_blocks_in_offchip_memory_take_no_room_of_a_tile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A head of 151,936 columns, whose blocks of weights and results are larger than a tile."""
    head = ["stream-gemm", "--chip", "flat32", "--grid", "32x32", "--shape", "17,151936,2048"]
    assert cli.run(["check", *head, "--dtype", "fp16", "--json"]) == 0
    memory = json.loads(capsys.readouterr().out)["plmr"]["memory"]
    assert 0 < memory["peak_bytes"] <= memory["limit_bytes"] == 384 * 1024


def test_limits_of_the_chip_decide_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*_SUMMA, "--grid", "16x16", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["holds"] is True
    assert cli.run([*_SUMMA, "--grid", "17x17", "--json"]) == 1
    out, err = capsys.readouterr()
    message = "tile (0, 0): 34 distinct routes begin, pass or end here; a router holds 32"
    assert err == f"check failed: {message}\n"
    result = json.loads(out)
    assert result["holds"] is False
    assert result["plmr"]["routing"] == {
        "most_paths": 34, "at_least": False, "tile": [0, 0], "limit_paths": 32
    }  # fmt: skip
    found = {each["property"]: each for each in result["verdicts"]}
    assert list(found) == ["P", "L", "M", "R"]
    assert [found[letter]["holds"] for letter in found] == [True, False, True, False]
    assert (found["R"]["found"], found["R"]["bound"], found["L"]["bound"]) == (34, 32, 2)
    assert result["findings"] == [
        {
            "rule": "routing",
            "message": message,
            "operation": None,
            "label": None,
            "tile": [0, 0],
            "token": None,
        }
    ]


def test_an_over_full_tile_is_a_finding_and_not_bad_input(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sizes = ("--grid", "2x2", "--shape", "512,512,512", "--dtype", "fp16")
    assert cli.run(["check", "mesh-gemm", "--chip", "wse2", *sizes]) == 1
    assert "buffers take 655360 bytes; a tile has 49152" in capsys.readouterr().err


def verdicts_of(each: dict[str, Any]) -> str:
    """Letters of what is missed."""
    return "".join(v["property"] for v in each["verdicts"] if not v["holds"])


@pytest.mark.parametrize(
    ("shape", "missed"),
    [
        (
            "4096,4096,4096",
            {"allgather-gemm": "LMR", "summa": "LMR", "cannon": "L", "mesh-gemm": ""},
        ),
        ("1,4096,4096", {"pipeline-gemv": "L", "ring-gemv": "L", "mesh-gemv": ""}),
    ],
)
def test_methods_side_by_side(
    shape: str, missed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The tables of WaferLLM's sections 5.1 and 6.1; a comparison does not fail."""
    sizes = ("--grid", "64x64", "--shape", shape, "--dtype", "fp16")
    assert cli.run(["check", "--methods", "--chip", "wse2", *sizes, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {each["kernel"]: verdicts_of(each) for each in result["kernels"]} == missed
    assert cli.run(["check", "--methods", "--chip", "wse2", *sizes]) == 0
    assert "63 !" in capsys.readouterr().out


def test_a_program_without_work_is_not_judged_by_parallelism() -> None:
    """An exchange stood as nearest to its bound for a prompt on a wafer: "0% of 100%"."""
    found = []
    for kernel in ("exchange", "mesh-gemm"):
        shape = KERNELS[kernel].form.example
        setup = resolve(
            KernelOptions(kernel=kernel, chip="flat32", grid="4x4", shape=shape, dtype="fp16")
        )
        found.append(ToCheck(kernel, 1, setup, kernel))
    checked = check_kernels(found, None)
    exchange, _ = checked
    assert (exchange.verdicts[0].found, exchange.verdicts[0].bound) == (0.0, None)
    assert of_layer(checked)[0]["operator"] == "mesh-gemm"


def test_a_layer_has_a_verdict_of_each_letter(capsys: pytest.CaptureFixture[str]) -> None:
    layer = ("check", "--model", "llama3-8b", "--chip", "wse2", "--phase", "decode")
    assert cli.run([*layer, "--grid", "60x60", "--json"]) == 1
    read = capsys.readouterr()
    assert "gate and up: buffers take 67058 bytes; a tile has 49152" in read.err
    result = json.loads(read.out)
    assert [each["property"] for each in result["verdicts"]] == ["P", "L", "M", "R"]
    names = {each["operator"] for each in result["kernels"]}
    assert {"query, key and value", "softmax maximum", "down"} <= names
    memory = result["verdicts"][2]
    assert (memory["operator"], memory["holds"], memory["bound"]) == ("head", False, 48 * 1024)
    assert cli.run([*layer, "--tokens", "512"]) == 0
    assert "R holds: routes of the busiest router, 5 of 32" in capsys.readouterr().out


def test_a_model_of_a_file_is_kept_by_its_content(wafertlm: Wafertlm, tmp_path: Path) -> None:
    text, hashes = model_text("qwen3-1.7b"), set()
    for layers in (28, 27):
        file = tmp_path / "mine.toml"
        file.write_text(text.replace("layers = 28", f"layers = {layers}"))
        layer = ("check", "--model", file, "--chip", "flat32", "--phase", "decode", "--tokens", 64)
        found = json.loads(wafertlm(*layer, "--json").stdout)
        assert found["options"]["model"] == "mine"
        hashes.add(found["provenance"]["config_hash"])
    assert len(hashes) == 2


def test_a_layer_on_a_chip_with_offchip_memory(capsys: pytest.CaptureFixture[str]) -> None:
    layer = ("check", "--model", "qwen3-1.7b", "--chip", "flat32", "--phase", "decode")
    assert cli.run([*layer, "--tokens", "256", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {each["kernel"] for each in result["kernels"]} > {"stream-gemm", "decode-attention"}
    assert result["verdicts"][3]["bound"] is None


def test_a_run_warns_of_what_a_program_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ("--grid", "17x17", "--shape", "64,64,64", "--dtype", "fp16", "--level", "perf")
    chip = ("--chip", "wse2", "--allow-stale", "--json")
    warnings = [
        "summa on 17x17 breaks L (latency): hops of a step's longest transfer: found 16; allowed: "
        "2",
        "summa on 17x17 breaks R (routing): routes of the busiest router: found 34; allowed: 32",
    ]
    assert cli.run(["kernel", "summa", *chip, *sizes]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["warnings"] == warnings
    assert err.splitlines() == [f"warning: {line}" for line in warnings]
    assert cli.run(["kernel", "mesh-gemm", *chip, *sizes]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["warnings"], err) == ([], "")
    # Routers that look at each header have no routes to run out of.
    assert cli.run(["kernel", "summa", "--chip", "flat32", *chip[2:], *sizes]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_an_iteration_warns_too(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--model", "llama3-8b", "--chip", "wse2", "--decode", "1@4096", "--allow-stale")
    few = ("--set", "limits.routing_paths=4")
    assert cli.run(["iteration", *asked, *few, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["warnings"]
    assert found and all("breaks R (routing)" in line for line in found)
    assert cli.run(["iteration", *asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []


def _warned(*arguments: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    asked = ("--model", "llama3-8b", "--chip", "wse2", "--json")
    assert cli.run([*arguments, *asked]) == 0
    warnings: list[str] = json.loads(capsys.readouterr().out)["warnings"]
    return warnings


def test_serving_warns_of_what_its_load_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Long prompts run on a grid of their own: the way there and back takes too many routes."""
    load = ("--rate", "1", "--requests", "2", "--workload")
    found = _warned("serve", *load, "fixed:4096:2", capsys=capsys)
    assert found == _warned("iteration", "--prefill", "4096", capsys=capsys)
    assert found and all("exchange on" in line and "breaks R" in line for line in found)
    assert _warned("serve", *load, "fixed:16:2", capsys=capsys) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "--tokens", "1_0"), "Invalid value for '--tokens': '1_0' is not a"),
        (("check", "--phase", "decode"), "check: found --phase or --tokens without --model"),
        (
            ("check", "summa", "--model", "llama3-8b"),
            "check: found kernel with --model; allowed: a layer by itself",
        ),
        (
            ("check", "--model", "llama3-8b", "--chip", "wse2", "--phase", "both"),
            "unknown phase 'both'; known: decode, prefill",
        ),
        (
            ("check", "summa", "--methods"),
            "check: found kernel 'summa' with --methods; allowed: none",
        ),
        (("check",), "check: kernel not given; see --help and --list"),
        ((*_SUMMA, "--grid", "1000x2"), "--grid: chip 'wse2' has 921x921 tiles, found 1000x2"),
        (("check", "sort", *_SUMMA[2:], "--grid", "2x2"), "unknown kernel 'sort'; known: "),
    ],
)
def test_bad_input(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
