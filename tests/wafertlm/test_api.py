"""Python calls what the command runs: the same object, the same messages."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import wafertlm
from tests.conftest import Wafertlm
from wafertlm.api.finished import FinishedRun
from wafertlm.api.pictures import calibration_picture, study_picture
from wafertlm.output import TIMES

_KERNEL = {"chip": "rtl-4x4", "grid": "4x4", "shape": "64,64,64", "dtype": "int8"}
_SERVE = {"workload": "fixed:100:10", "rate": "inf", "requests": 5, "slo_tbt": 50}
_NOC = {"mesh": "4x4", "traffic": "uniform", "rate": 0.1, "cycles": 200}

#: A call, and the command line that it is.
CALLS: dict[str, tuple[Callable[[], FinishedRun], str]] = {
    "kernel": (
        lambda: wafertlm.run_kernel("summa", **_KERNEL, serial=True, receive_buffers=1),
        "kernel summa --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8 --serial "
        "--receive-buffers 1",
    ),
    "kernel with figures changed": (
        lambda: wafertlm.run_kernel(
            "flat-attention",
            chip=Path("flat32"),
            grid=(8, 8),
            shape=(1, 4, 4, 64, 64, 64, 64),
            group=(2, 2),
            set={"noc.hop_cycles": 2},
            memory="perf",
        ),
        "kernel flat-attention --chip flat32 --grid 8x8 --shape 1,4,4,64,64,64,64 --group 2x2 "
        "--set noc.hop_cycles=2 --memory perf",
    ),
    "iteration": (
        lambda: wafertlm.iteration("llama3-8b", "flat32", prefill=("64@64", "32"), decode=None),
        "iteration --model llama3-8b --chip flat32 --prefill 64@64 --prefill 32",
    ),
    "serve": (
        lambda: wafertlm.serve("llama3-8b", "flat32", "chunked", **_SERVE),
        "serve --model llama3-8b --chip flat32 --scheduler chunked --workload fixed:100:10 "
        "--rate inf --requests 5 --slo-tbt 50",
    ),
    "compare": (
        lambda: wafertlm.compare("noc", **_NOC, vary={"fifo_depth": [4, 8], "stages": (1, 2)}),
        "compare noc --mesh 4x4 --traffic uniform --rate 0.1 --cycles 200 --vary fifo-depth=4,8 "
        "--vary stages=1,2",
    ),
    "compare what has commas": (
        lambda: wafertlm.compare(
            "kernel",
            **_KERNEL | {"kernel": "summa", "level": "perf"},
            vary={"shape": [(64, 64, 64), "64,64,128"], "serial": [False, True]},
        ),
        "compare kernel summa --chip rtl-4x4 --grid 4x4 --shape 64,64,64 --dtype int8 --level perf "
        "--vary shape=64,64,64;64,64,128 --vary serial=off,on",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_the_command_prints(wafertlm: Wafertlm, name: str) -> None:
    call, line = CALLS[name]
    ran = wafertlm(*shlex.split(line.replace(";", r"\;")), "--json")
    assert ran.status == 0, ran.stderr
    printed, found = json.loads(ran.stdout), json.loads(json.dumps(call().to_dict()))
    assert printed.keys() == found.keys()
    for time in TIMES:
        del printed[time], found[time]
    assert found == printed


@pytest.mark.parametrize("name", CALLS)
def test_a_result_shows_itself(name: str) -> None:
    ran = CALLS[name][0]()
    assert repr(ran).startswith(f"<{ran.result['command']}: ")
    page = ran._repr_html_()
    assert page.count("<table>") == page.count("</table>") >= 1
    figure = ran.plot()
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()


def test_every_kind_of_result_has_its_picture() -> None:
    kinds = [getattr(wafertlm, name) for name in wafertlm.__all__ if name.endswith("Run")]
    assert len(kinds) == 6
    for kind in kinds:
        assert issubclass(kind, FinishedRun) and kind.plot is not FinishedRun.plot


def test_figures_are_properties_of_their_type() -> None:
    kernel = wafertlm.run_kernel("summa", **_KERNEL)
    assert sum(kernel.breakdown_cycles.values()) == kernel.cycles == kernel.result["cycles"]
    assert kernel.maps["wait_cycles"].shape == (4, 4)
    served = wafertlm.serve("llama3-8b", "flat32", "chunked", **_SERVE)
    assert served.ttft_s["mean"] == served.result["ttft_s"]["mean"]
    assert served.goodput_rps == served.result["goodput_rps"]
    step = wafertlm.iteration("llama3-8b", "flat32", decode="8@100")
    assert step.seconds_between is not None
    low, high = step.seconds_between
    assert low <= step.seconds <= high
    assert step.kernels[0]["operator"] in step._repr_html_()


def test_what_is_shown_is_escaped() -> None:
    run = FinishedRun(
        result={"command": "x", "options": {"chip": "<b>"}, "note": "a<b", "set": [{"i": "<i>"}]}
        | dict.fromkeys(TIMES, 0.0)
    )
    assert "a&lt;b" in run._repr_html_()
    assert "<b>:" not in run._repr_html_() and "&lt;b&gt;" in run._repr_html_()
    with pytest.raises(NotImplementedError, match="there is no picture of 'x'"):
        run.plot()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wafertlm.run_kernel("fft", **_KERNEL),
            "unknown kernel 'fft'; known: allgather-gemm",
        ),
        (lambda: wafertlm.run_kernel("summa", chip="wse2"), "kernel: grid not given; see --help"),
        (
            lambda: wafertlm.run_kernel("summa", **_KERNEL, out="x.json"),
            "kernel: unknown field 'out'; known: allow-stale, at-root",
        ),
        (
            lambda: wafertlm.run_kernel("summa", **_KERNEL, threads=2, level="perf"),
            "--threads: found network at level perf; allowed: lt",
        ),
        (
            lambda: wafertlm.serve("llama3-8b", "flat32", "chunked", **_SERVE | {"requests": "x"}),
            "Invalid value for '--requests': 'x' is not a valid integer",
        ),
        (
            lambda: wafertlm.serve("llama3-8b", "flat32", "chunked", **_SERVE | {"requests": 0}),
            "--requests: found 0; allowed: 1 or more",
        ),
        (
            lambda: wafertlm.serve("llama3-8b", "flat32", "chunked", **_SERVE, set=3),
            "serve: set: found 3; allowed: a list",
        ),
        (lambda: wafertlm.iteration("gpt", "flat32", decode="1@1"), "unknown model 'gpt'; known:"),
        (lambda: wafertlm.compare("show", vary={}), "unknown command 'show'; known: iteration, k"),
        (lambda: wafertlm.compare("noc", vary={"mesh": ["4x4"]}), "--vary: found 'mesh=4x4'; wr"),
        (lambda: wafertlm.study("none"), "unknown study 'none'; known: flatattention"),
        (lambda: wafertlm.calibrate(workers=0), "--workers: found 0; allowed: 1 or more"),
        (lambda: wafertlm.calibrate(store_quick=True), "--store-quick: found without --rtl; all"),
        (lambda: wafertlm.chip("moon"), "unknown chip 'moon'; known:"),
    ],
)
def test_bad_input_raises_the_commands_message(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(wafertlm.InputError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_names_and_what_they_stand_for() -> None:
    assert {"wse2", "rtl-RxC"} <= {*wafertlm.chips()}
    assert "llama3-8b" in wafertlm.models() and "summa" in wafertlm.kernels()
    assert wafertlm.chip("flat32", {"noc.hop_cycles": 7}).noc.hop_cycles == 7
    assert wafertlm.model("llama3-8b").layers == 32


def test_pictures_of_what_takes_long() -> None:
    rows = [
        {"paper": 1.0, "model": 1.1, "fit": True},
        {"paper": 20.0, "model": 18.0, "fit": False},
        {"paper": None, "model": 3.0, "fit": False},
        {"paper": 988.0, "model": 1012.0, "fit": "given"},
    ]
    picture = study_picture({"rows": rows, "options": {"name": "waferllm"}})
    picture.draw_without_rendering()
    assert picture.axes[0].get_title(loc="left") == "waferllm: 2 figures"
    errors = [{"name": "unicast", "mean_abs_error_pct": 0.0, "max_abs_error_pct": 0.1}]
    calibration_picture({"experiments": errors}).draw_without_rendering()


def test_the_package_comes_without_what_the_runs_need_and_its_names_stay_functions() -> None:
    program = (
        "import sys, wafertlm\n"
        "print(sorted({'click', 'matplotlib', 'numba', 'numpy'} & set(sys.modules)))\n"
        "import wafertlm.compare.run, wafertlm.iteration\n"
        "print(wafertlm.iteration.__name__, wafertlm.compare.__name__)\n"
        "print([name for name in wafertlm.__all__ if not hasattr(wafertlm, name)])\n"
        "print('serve' in dir(wafertlm), hasattr(wafertlm, 'other'))\n"
        "from wafertlm import cli; print(cli.__name__, wafertlm.serve.__module__)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == (
        "[]\niteration compare\n[]\nTrue False\nwafertlm.cli wafertlm.api.serving_run\n"
    ), ran.stderr
