"""``wafertlm kernel``: every kernel at every level, its variants, and what does not fit."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from workloads.kernels.catalogue import ATTENTION, GEMM, GROUPS, HEADS, KERNELS, LATENT, SUMS

Run = Callable[..., dict[str, Any]]
SHAPES = {
    GEMM: "48,32,40",
    GROUPS: "3,24,32,40",
    HEADS: "32,64,16",
    SUMS: "32,64,4",
    ATTENTION: "1,4,4,32,32,8,8",
    LATENT: "1,4,1,32,32,8,8",
}


PLAN = ("group", "slice", "blocks", "tile_bytes", "received_bytes", "engine_utilization")


def shape_of(name: str) -> str:
    if name.endswith("gemv"):
        return "1,64,80"
    return SHAPES.get(KERNELS[name].form, "32,64")


@pytest.fixture
def kernel(wafertlm: Any) -> Run:
    """Runs a kernel on 4x4 tiles; its result, or what stands on stderr."""

    def run(name: str, *options: object, status: int = 0) -> dict[str, Any]:
        fixed = ("--chip", "rtl-4x4", "--grid", "4x4", "--shape", shape_of(name), "--dtype", "int8")
        ran = wafertlm("kernel", name, *fixed, *options, "--json")
        assert ran.status == status, ran.stderr
        return json.loads(ran.stdout) if status == 0 else {"stderr": ran.stderr}

    return run


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_runs_at_every_level(kernel: Run, name: str) -> None:
    levels = {"at": (), "lt": (), "perf": ("--compute", "at")}
    results = {level: kernel(name, "--level", level, *more) for level, more in levels.items()}
    for level, result in results.items():
        assert sum(result["breakdown_cycles"].values()) == result["cycles"], level
        assert min(result["breakdown_cycles"].values()) >= 0
        assert result["error"]["level_pct"] is not None
        assert 0 <= result["utilization"] < 1
        assert list(result["plan"]) == [*PLAN]
        assert result["plan"] == results["at"]["plan"]
        assert result["plan"]["slice"].keys() == result["plan"]["blocks"].keys()
        multiplies = KERNELS[name].form in (GEMM, GROUPS, ATTENTION, LATENT)
        assert (result["utilization"] > 0) == multiplies
    at, lt, perf = (result["cycles"] for result in results.values())
    # Messages of an exchange meet all over a group.
    assert lt == pytest.approx(at, rel=0.1 if name == "exchange" else 0.05)
    assert perf == pytest.approx(lt, rel=0.15)


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_says_how_its_problem_is_cut(kernel: Run, name: str) -> None:
    plan = kernel(name, "--level", "perf")["plan"]
    assert plan == kernel(name, "--level", "lt")["plan"]
    assert set(plan["slice"]) >= set(plan["blocks"])
    assert min(*plan["slice"].values(), *plan["blocks"].values()) >= 1


def test_the_plan_says_how_the_problem_is_cut(kernel: Run) -> None:
    assert kernel("summa", "--level", "perf")["plan"] == {
        "group": "4x4",
        "slice": {"m": 12, "n": 8, "k": 10},
        "blocks": {"m": 1, "n": 1, "k": 4},
        "tile_bytes": 3 * (12 * 10 + 10 * 8) + 4 * 12 * 8,
        "received_bytes": None,
        "engine_utilization": pytest.approx(0.163, abs=5e-4),
    }
    attention = kernel("decode-attention", "--level", "perf")["plan"]
    tiles, keys = map(int, attention["group"].split("x"))
    assert tiles == 1
    assert keys * attention["slice"]["keys"] * attention["blocks"]["keys"] >= 32


def test_softmax_and_attention_work_on_the_vector_engine(kernel: Run) -> None:
    softmax = kernel("softmax", "--level", "at")["breakdown_cycles"]
    assert softmax["compute"] > 0.7 * sum(softmax.values())
    whole = ("flat-attention", "--level", "at", "--group", "4x4")
    naive = kernel(*whole, "--schedule", "naive")
    overlapped = kernel(*whole)
    assert overlapped["cycles"] < 0.9 * naive["cycles"]


@pytest.mark.parametrize("collective", ["chain", "tree", "sequential"])
@pytest.mark.parametrize("name", ["softmax", "flat-attention", "mesh-gemv"])
def test_collectives_in_software(kernel: Run, name: str, collective: str) -> None:
    network = kernel(name, "--level", "at", "--collective", "network")
    software = kernel(name, "--level", "at", "--collective", collective)
    assert software["cycles"] > network["cycles"]
    # The levels are compared on what a kernel does by itself.
    assert software["error"]["level_pct"] is None


def test_groups_of_a_tree(kernel: Run) -> None:
    one, two = (kernel("mesh-gemv", "--groups", groups)["cycles"] for groups in ("1", "2"))
    pipeline = kernel("pipeline-gemv")["cycles"]
    assert len({one, two, pipeline}) == 3


def test_grids_need_not_be_square(kernel: Run) -> None:
    for name in KERNELS:
        if name == "mesh-gemm-t":
            refused = kernel(name, "--grid", "2x4", status=2)["stderr"]
            assert refused == "error: grid 2x4: this kernel runs on square grids\n"
        else:
            assert kernel(name, "--grid", "2x4")["cycles"] > 0


def test_foreign_chips(kernel: Run) -> None:
    wafer = ("--chip", "wse2", "--grid", "64x64", "--dtype", "fp16")
    for name in ("mesh-gemv", "pipeline-gemv", "ring-gemv"):
        result = kernel(name, *wafer, "--shape", "1,4096,4096")
        assert 0 <= result["error"]["nearest_pct"] <= result["error"]["level_pct"] < 10
        of_profile = result["error"]["profile_pct"]
        assert of_profile is None or 0 < of_profile < 5  # None where sources have changed since
    # Its routers do not combine operands: reductions are trees in software.
    software = kernel("softmax", *wafer, "--shape", "256,256")
    assert (
        software["cycles"]
        == kernel("softmax", *wafer, "--shape", "256,256", "--collective", "tree")["cycles"]
    )
    flat = ("--chip", "flat32", "--grid", "32x32", "--dtype", "fp16")
    heads = ("--shape", "1,8,8,1024,1024,128,128")
    assert kernel("flat-attention", *flat, *heads)["utilization"] > 0.2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("softmax", ("--shape", "4,4,4"), "--shape: found '4,4,4'; write M,N, such as 64,64"),
        (
            "flat-attention",
            ("--shape", "64,64,64"),
            "--shape: found '64,64,64'; write B,Hq,Hkv,Sq,Skv,Dqk,Dv, such as 1,4,4,64,64,16,16",
        ),
        ("cannon", ("--shape", "a,b"), "--shape: found 'a,b'; write whole numbers, such as 64,64"),
        (
            "mesh-gemv",
            ("--shape", "8,8,8"),
            "--shape: found M = 8; a vector times a matrix has M = 1",
        ),
        ("cannon", ("--groups", "2"), "--groups: this kernel has other choices: --skewed"),
        (
            "softmax",
            ("--schedule", "naive"),
            "--schedule: this kernel has other choices: --collective",
        ),
        ("mesh-gemv", ("--groups", "9"), "--groups: found 9 groups of 4; allowed: 1 to 4"),
        ("softmax", ("--collective", "magic"), "unknown collective 'magic'; known: chain, k-tree"),
        ("flat-attention", ("--schedule", "now"), "unknown schedule 'now'; known: async, naive"),
        (
            "mesh-gemm-t",
            ("--chip", "npusim-small", "--dtype", "fp16"),
            "kernel: mesh-gemm-t sums in the network or by streams, and this chip's profile has",
        ),
        (
            "softmax",
            ("--chip", "wse2", "--dtype", "fp16", "--collective", "network"),
            "--collective: found 'network'; this chip's routers do not combine operands",
        ),
        (
            "cannon",
            ("--shape", "4096,4096,4096"),
            "--shape: the kernel's buffers take 8388608 bytes of a tile's memory; allowed on "
            "'rtl-4x4': 65536",
        ),
    ],
)
def test_what_does_not_fit(kernel: Run, name: str, options: tuple[str, ...], message: str) -> None:
    assert kernel(name, *options, status=2)["stderr"].startswith(f"error: {message}")


def test_weights_narrower_than_activations_are_less_to_load(wafertlm: Any) -> None:
    fixed = ("--grid", "8x8", "--shape", "2,4,512,512", "--level", "lt")

    def run(chip: str, dtype: str, *more: str, status: int = 0) -> Any:
        options = ("--chip", chip, "--dtype", dtype, *fixed, *more)
        ran = wafertlm("kernel", "grouped-gemm", *options, "--json")
        assert ran.status == status
        return ran

    memory = ("--memory", "perf")
    wide = json.loads(run("flat32", "fp16", *memory).stdout)
    narrow = json.loads(run("flat32", "fp16", *memory, "--weight-bits", "4.25").stdout)
    saved = wide["memory"]["loaded_bytes"] - narrow["memory"]["loaded_bytes"]
    assert saved == pytest.approx(2 * 512 * 512 * (16 - 4.25) / 8, rel=0.1)  # cuts of A differ, too
    refused = run("rtl-8x8", "int8", "--weight-bits", "4", status=2).stderr
    assert refused == (
        "error: --weight-bits: found 4; allowed here: none, as the project's own tiles do not "
        "widen weights\n"
    )
    refused = run("flat32", "fp16", "--weight-bits", "0", status=2).stderr
    assert refused == "error: --weight-bits: found 0; allowed here: above 0, to 16\n"
