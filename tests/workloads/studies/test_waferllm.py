"""The WaferLLM study: its cases by hand, its rows, and its plots."""

import re
from pathlib import Path

import pytest

from tests.documents import target_row, text_of
from workloads.models import load_model
from workloads.studies.waferllm.cases import (
    EnergyCase,
    KernelCase,
    LayerCase,
    RequestCase,
    RoomCase,
    simulate,
)
from workloads.studies.waferllm.facts import facts
from workloads.studies.waferllm.plots import draw
from workloads.studies.waferllm.study import run_study, summary


def figure(case: object, name: str) -> float:
    value = simulate(case, 0)[name]
    assert value is not None
    return value


def test_tokens_a_second_are_those_of_as_many_layers_as_the_model_has() -> None:
    case = LayerCase("llama3-8b", "decode", 420, 4096)
    cycles, layers = figure(case, "layer_cycles"), load_model("llama3-8b").layers
    assert figure(case, "tokens_per_s") == pytest.approx(1.1e9 / (cycles * layers))
    prompt = LayerCase("llama3-8b", "prefill", 720, 4096)
    cycles = figure(prompt, "layer_cycles")
    assert figure(prompt, "tokens_per_s") == pytest.approx(1.1e9 * 4096 / (cycles * layers))


def test_a_request_is_its_prompt_and_each_of_its_tokens() -> None:
    case = RequestCase("llama3-8b", 660, 360, 710, 20)
    prompt = 710 / figure(LayerCase("llama3-8b", "prefill", 660, 710), "tokens_per_s")
    tokens = [
        1 / figure(LayerCase("llama3-8b", "decode", 360, context), "tokens_per_s")
        for context in range(710, 730)
    ]
    assert tokens[-1] > tokens[0]  # its row of tiles is the third, the first token's the second
    assert figure(case, "tokens_per_s") == pytest.approx(20 / (prompt + sum(tokens)))


def test_room_and_energy_by_hand() -> None:
    # Weights of six layers, padded to 360: 2 * (2 * 12 * 12 + 2 * 12 * 3 + 3 * 12 * 40) bytes each.
    left = 48 * 1024 - 6 * 3600
    assert figure(RoomCase("llama3-8b", 360), "concat_tokens") == left // (6 * 2 * 3 * 2) == 382
    assert figure(RoomCase("llama3-8b", 360), "shift_tokens") == 360 * 382
    assert figure(EnergyCase(8, 10.0), "ratio") == round(8 * 400 / 15000 * 10, 2)


def test_kernels_are_those_of_the_command_and_lt_is_near() -> None:
    case = KernelCase("mesh-gemv", (1, 256, 256), 32)
    perf, lt = (figure(case._replace(level=level), "cycles") for level in ("perf", "lt"))
    assert perf == pytest.approx(lt, rel=0.05)


def test_rows_have_the_names_of_the_tables() -> None:
    rows = {fact.name: fact for fact in facts(quick=False)}
    assert len(rows) == len(facts(quick=False))
    assert all(name.count("/") == 3 for name in rows)
    withheld = rows["T4/QWen2-72B/540x540/decode"]
    assert withheld.paper is None
    assert withheld.case == LayerCase("qwen2-72b", "decode", 540, 4096)
    assert withheld.fit == "predicted"
    assert rows["T3/LLaMA3-8B/480x480/prefill"].fit == "fitted"
    ladder = rows["T3/LLaMA3-8B/480x480/Ladder_prefill"]
    assert (ladder.fit, ladder.case) == ("not scored", None)


@pytest.mark.slow
def test_targets_and_plots(tmp_path: Path) -> None:
    result = run_study(quick=True)
    for side in (480, 600, 720):
        (row,) = (
            each
            for each in result["rows"]
            if each["id"] == f"T3/CodeLLaMA-34B/{side}x{side}/prefill"
        )
        assert row["model"] > 0
        assert row["error_pct"] is None
    missed = {each["target"] for each in result["targets"] if not each["met"]}
    assert missed == {
        "F9: MeshGEMM is first, 8K on 360x360",
        "F9: MeshGEMM at 2K is stable, within 15 %",
    }
    text = text_of("waferllm.md")
    assert [row for row in map(target_row, result["targets"]) if row not in text] == []
    wafer = result["errors_by_chip"]["wse2"]
    assert wafer["models"] == ["llama2-13b"]
    assert wafer["mean_abs_error_pct"] == result["summary"]["predicted"]["mean_abs_error_pct"]
    assert {path.stem for path in draw(result, tmp_path)} == {"layers", "gemm", "gemv"}


def test_rows_that_are_not_scored_are_in_no_error() -> None:
    row = {"id": "T3/M/1x1/prefill", "fit": "fitted", "error_pct": -2.0}
    rows = [row, row | {"fit": "not scored", "error_pct": 50.0}, row | {"error_pct": None}]
    found = summary(rows)
    assert found["fitted"] == {
        "rows": 1,
        "mean_abs_error_pct": 2.0,
        "max_abs_error_pct": 2.0,
        "worst_row": "T3/M/1x1/prefill",
    }
    assert set(found) == {"fitted", "fitted of T3, M"}


def test_the_document_has_the_figures_of_the_study() -> None:
    text = (Path(__file__).parents[3] / "docs" / "waferllm.md").read_text()
    shown = {
        name: (paper, model, error, fit)
        for name, paper, model, error, fit in re.findall(
            r"^\| (T\d/\S+) \| (\S+) \| (\S+) \| (\S+) \| ([a-z ]+) \|$", text, re.MULTILINE
        )
    }
    for fact in facts(quick=True):
        if fact.name.startswith("T") and fact.case is not None:
            model = figure(fact.case, fact.figure)
            paper = "-" if fact.paper is None else f"{fact.paper:,.6g}"
            error = "-" if fact.paper is None else f"{100 * (model / fact.paper - 1):+.1f}%"
            assert shown.pop(fact.name) == (paper, f"{model:,.5g}", error, fact.fit)
    assert not shown
