"""``wafertlm iteration``: the kernels of an iteration are those that ``wafertlm kernel`` runs."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wafertlm
from tlm.calibrated import Comparison, forget
from wafertlm.iteration import IterationOptions, run_iteration
from wafertlm.kernel import KernelOptions, run_kernel
from workloads.kernels.catalogue import KERNELS
from workloads.models import find_model

TINY = {
    "model_type": "qwen3", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 500,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu",
    "max_position_embeddings": 4096,
}  # fmt: skip
_SMALL = {"model": "qwen3-1.7b", "chip": "flat32", "grid": "8x8", "decode": "4@200"}


def iteration(wafertlm: Wafertlm, *options: object) -> dict[str, Any]:
    ran = wafertlm("iteration", *options, "--allow-stale", "--json")
    assert ran.status == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("level", ["perf", "lt"])
def test_each_kernel_is_the_one_that_kernel_runs(level: str) -> None:
    ran = run_iteration(IterationOptions(**_SMALL, level=level, prefill=("30",), allow_stale=True))
    found = ran.record({})
    assert found["cycles"] == sum(each["count"] * each["cycles"] for each in found["kernels"])
    for each in found["kernels"]:
        assert sum(each["breakdown_cycles"].values()) == each["cycles"]
        alone = run_kernel(
            KernelOptions(
                kernel=each["kernel"], chip="flat32", grid="8x8", shape=each["shape"],
                dtype="fp16", level=level, memory="perf", allow_stale=True, **each["choices"],
            )
        )  # fmt: skip
        assert alone.cycles == each["cycles"], each["operator"]
        assert alone.record({})["memory_bytes"] == each["memory_bytes"]


def test_levels_are_near_each_other() -> None:
    perf, lt = (
        run_iteration(IterationOptions(**_SMALL, level=level, allow_stale=True)).cycles
        for level in ("perf", "lt")
    )
    assert perf == pytest.approx(lt, rel=0.05)


@pytest.mark.parametrize("chip", ["rtl-4x4", "npusim-small"])
def test_what_is_stale_has_bounds_where_that_is_allowed(
    wafertlm: Wafertlm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chip: str
) -> None:
    model = tmp_path / "config.json"
    model.write_text(json.dumps(TINY | {"hidden_size": 64, "head_dim": 16}))
    options = ("--model", model, "--chip", chip, "--grid", "4x4", "--decode", "1@4")
    monkeypatch.setattr(Comparison, "changed_sources", lambda comparison: ["tlm/heap.py"])
    forget()
    found = iteration(wafertlm, *options, "--memory", "perf")
    assert found["seconds_low"] <= found["seconds"] <= found["seconds_high"]
    refused = wafertlm("iteration", *options, "--memory", "perf", "--json")
    assert refused.status == 2
    assert "is stale: tlm/heap.py changed since it was made" in refused.stderr
    forget()


def test_level_at_on_a_foreign_chip(tmp_path: Path, wafertlm: Wafertlm) -> None:
    model = tmp_path / "config.json"
    model.write_text(json.dumps(TINY))
    options = ("--model", model, "--chip", "npusim-large", "--grid", "4x4", "--decode", "2@20")
    at, lt = (iteration(wafertlm, *options, "--level", level) for level in ("at", "lt"))
    assert at["cycles"] == pytest.approx(lt["cycles"], rel=0.01)
    assert at["error"]["level_pct"] is at["error"]["profile_pct"] is None
    # Refused before anything runs, by the cost of all kernels together.
    asked = ("iteration", "--model", "llama3-8b", "--chip", "flat32", "--level", "at")
    refused = wafertlm(*asked, "--prefill", "2048", "--allow-stale")
    assert refused.status == 2
    assert refused.stderr.startswith("error: --level: at takes ")


def test_all_weights_are_read_once(wafertlm: Wafertlm) -> None:
    found = iteration(wafertlm, "--model", "llama3-8b", "--chip", "flat32", "--decode", "1@1")
    read = sum(each["count"] * each["memory_bytes"]["read"] for each in found["kernels"])
    model = find_model("llama3-8b")
    weights = 2 * (model.layers * model.layer_macs_per_token / model.layers + model.head.weights)
    assert weights < read < 1.02 * weights
    # No faster than the memory, and as much energy as reading from it takes.
    assert found["seconds"] > read / 2e12
    assert found["energy_j"] > 0
    # A kernel's is of the level below, the iteration's of its own seconds.
    errors = [each["level_pct"] for each in found["kernels"]]
    assert min(errors) <= found["error"]["level_pct"] <= max(errors) / (1 - max(errors) / 100)
    assert found["seconds_low"] < found["seconds"] < found["seconds_high"]


def test_a_time_of_whole_cycles_lies_between_its_bounds(wafertlm: Wafertlm) -> None:
    options = ("--model", "llama3-8b", "--chip", "wse2", "--level", "lt", "--allow-stale")
    found = iteration(wafertlm, *options, "--decode", "64@1")  # half a cycle more than its kernels
    assert found["seconds_low"] <= found["seconds"] <= found["seconds_high"]


def test_experts_run_in_one_pipeline(wafertlm: Wafertlm) -> None:
    found = iteration(wafertlm, "--model", "qwen3-30b-a3b", "--chip", "flat32", "--decode", "8@64")
    experts = [each for each in found["kernels"] if each["operator"].startswith("expert g")]
    assert [each["kernel"] for each in experts] == ["grouped-gemm"]
    assert int(experts[0]["shape"].split(",")[0]) > 8


def test_a_latent_cache_is_absorbed_in_decoding(wafertlm: Wafertlm) -> None:
    fixed = ("--model", "deepseek-v3-671b", "--chip", "flat32", "--decode", "8@64")
    found = iteration(wafertlm, *fixed, "--set", "memory.capacity_bytes=2000000000000")
    shapes = {each["operator"]: each["shape"] for each in found["kernels"]}
    assert shapes["decode attention"] == "8,128,1,1,65,576,512"
    assert shapes["rotary embedding"] == "8,8256,64"


def test_a_changed_chip_changes_the_kernels_that_it_binds(wafertlm: Wafertlm) -> None:
    fixed = ("--model", "qwen3-1.7b", "--chip", "flat32", "--decode", "4@200")
    plain = iteration(wafertlm, *fixed)
    halved = ("--set", "memory.bandwidth_bytes_per_s=1e12")
    slow = iteration(wafertlm, *fixed, *halved)
    assert slow["options"]["set"] == ["memory.bandwidth_bytes_per_s=1e12"]
    assert 1.5 < slow["cycles"] / plain["cycles"] < 2.1


def test_errors_of_kernels_do_not_hang_on_the_links_between_dies() -> None:
    """Levels were compared on one die of the shipped wafer."""
    plain, slower = (
        run_iteration(
            IterationOptions(
                model="deepseek-v3-671b", chip="flat32-wafer", set=changes, decode="64@100",
                allow_stale=True,
            )
        )
        for changes in ((), ("dies.link_bytes_per_s=5e11",))
    )  # fmt: skip
    assert plain.ground.compared_as == slower.ground.compared_as == "flat32-wafer"
    errors = [[ran.result.error["level_pct"] for ran in each.kernels] for each in (plain, slower)]
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "iteration: found no work; give --prefill, --decode or both"),
        (("--decode", "16"), "--decode: found '16'; write N@CONTEXT, such as 32@2048"),
        (("--prefill", "0"), "--prefill: found '0'; write NEW or NEW@CONTEXT, such as 512@1024"),
        (("--decode", "1@9", "--level", "rtl"), "--level: found 'rtl'; allowed: perf, lt, at"),
        (("--decode", "1@9", "--chip", "wse2", "--memory", "perf"), "found no off-chip memory"),
        (("--decode", "1@9", "--chip", "wse2", "--grid", "4x8"), "--grid: found 4x8; allowed on"),
        (("--decode", "1@9", "--chip", "h100x2"), "--chip: 'h100x2' is a server of GPUs"),
        (("--decode", "1@9", "--model", "gpt-5"), "unknown model 'gpt-5'; known: codellama-34b"),
        (
            ("--decode", "64@131072"),
            "--decode, --prefill: found 8388672 tokens; allowed: the 569168 whose keys and values "
            "'flat32' holds beside the weights",
        ),
        (
            ("--decode", "512@100000", "--chip", "npusim-large"),
            "--decode, --prefill: found 51200512 tokens; allowed",
        ),
        (("--decode", "1@9", "--model", "deepseek-v3-671b"), "allowed: less than the memory's"),
        (
            ("--decode", "1@9", "--set", "tile.sram_kib=1"),
            "--model: rotary embedding: the smallest",
        ),
        (("--decode", "1@9", "--chip", "rtl-4x4"), "--model: query, key and value: the kernel's"),
    ],
)
def test_what_does_not_fit_is_refused(
    wafertlm: Wafertlm, options: tuple[str, ...], message: str
) -> None:
    given = ("--model", "qwen3-1.7b", "--chip", "flat32", *options)
    ran = wafertlm("iteration", *given)
    assert ran.status == 2
    assert message in ran.stderr


def test_the_document_shows_what_the_command_and_the_call_print(
    wafertlm: Wafertlm, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "iteration.md").read_text()
    command, table = re.findall(r"```text\n(.*)\n```\n\n((?:    .*\n)+)", text)[0]
    ran = wafertlm(*shlex.split(command)[1:])
    shown = [line[4:] for line in table.splitlines()]
    # But for the last line, which says what it cost.
    assert [line.rstrip() for line in ran.stdout.splitlines()[:-1]] == shown
    code, told = re.findall(r"```python\n([^`]*)```\n\n((?:    .*\n)+)", text)[0]
    exec(compile(code, "docs/iteration.md", "exec"), {})
    assert capsys.readouterr().out == "".join(line[4:] + "\n" for line in told.splitlines())


def test_a_variant_has_no_error_of_the_default_one(wafertlm: Wafertlm) -> None:
    fixed = ("--model", "qwen3-1.7b", "--chip", "rtl-4x4", "--decode", "1@16", "--memory", "perf")
    found = iteration(wafertlm, *fixed, "--collective", "tree")
    assert found["options"]["collective"] == "tree"
    assert {each["level_pct"] for each in found["kernels"]} == {None}
    ran = run_iteration(
        IterationOptions(**_SMALL, collective="tree", schedule="naive", allow_stale=True)
    )
    for each in ran.kernels:
        options = each.result.setup.options
        wanted = "tree" if "collective" in KERNELS[options.kernel].choices else None
        assert options.collective == wanted
