"""``wafertlm check``."""

import json
from typing import Any

import pytest

from tlm.check import TileLimits, check_program
from tlm.errors import InputError
from wafertlm import cli
from wafertlm.commands.check import report_figures
from wafertlm.kernel import KernelOptions, resolve
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.parts.collectives import METHODS

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
    return report_figures(check_program(resolve(options).program, limits))


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_passes(kernel: str) -> None:
    figures = program_figures(kernel)
    assert figures["findings"] == []
    assert figures["holds"]
    works = kernel not in ("rows-to-blocks", "blocks-to-rows")
    assert figures["plmr"]["parallelism"]["busy_share"] == works
    assert figures["plmr"]["memory"]["peak_bytes"] > 0


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
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
