"""The stored gate counts are those of the Verilog at hand; features that are out cost nothing."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cosim.synthesis.yosys import yosys_version
from tlm.errors import InputError
from verification import gates
from verification.gates import BASE, VARIANTS, Cost, StoredGates, differences, synthesise
from verification.stored import with_block


@pytest.fixture(scope="module")
def stored() -> StoredGates:
    return StoredGates.load()


def test_stored_counts_are_of_this_verilog_and_tool(stored: StoredGates) -> None:
    assert not stored.changed_sources()
    assert {Path(name).name for name in stored.sources} >= {"router.sv", "fork_fifo.sv", "fifo.sv"}
    assert stored.yosys == yosys_version()
    assert stored.base == BASE
    assert list(stored.costs) == list(VARIANTS)


def test_readme_shows_the_stored_counts(stored: StoredGates) -> None:
    block = gates.markdown(stored)
    assert with_block(gates.README, "gates", block) == gates.README.read_text()


def test_what_is_written_is_what_is_read(
    stored: StoredGates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "STORED", tmp_path / "gates.json")
    monkeypatch.setattr(gates, "README", tmp_path / "README.md")
    marks = "before\n<!-- gates: begin -->\nold\n<!-- gates: end -->\nafter\n"
    gates.README.write_text(marks)
    gates.write(stored)
    assert StoredGates.load() == stored
    assert gates.README.read_text() == marks.replace("old\n", gates.markdown(stored))


@pytest.mark.slow  # before its first run, Yosys is compiled for more than a minute
def test_features_that_are_out_cost_nothing(stored: StoredGates) -> None:
    features_only = {"CutThrough": 0, "Loopback": 0, "ElementWidth": 64, "ReduceStages": 0}
    assert all(BASE[name] != value for name, value in features_only.items())
    assert synthesise(features_only)[0] == stored.costs["unicast only"]


@pytest.mark.parametrize("feature", ["multicast", "reduction"])
def test_features_cost_gates_and_flip_flops(stored: StoredGates, feature: str) -> None:
    without = stored.costs["unicast only"]
    assert without.nand2 < stored.costs[feature].nand2
    assert without.flip_flops < stored.costs[feature].flip_flops


def test_what_differs_is_named(stored: StoredGates) -> None:
    cost = stored.costs["2 stages"]
    larger = Cost(nand2=cost.nand2 + 1, flip_flops=cost.flip_flops)
    changed = stored.model_copy(
        update={
            "costs": stored.costs | {"2 stages": larger},
            "sources": stored.sources | {"rtl/noc/router.sv": "0"},
        }
    )
    assert differences(stored, stored) == []
    assert differences(stored, changed) == [
        "rtl/noc/router.sv has changed",
        f"2 stages: {cost.nand2 + 1} gates and {cost.flip_flops} flip-flops, "
        f"stored as {cost.nand2} gates and {cost.flip_flops} flip-flops",
    ]


def test_check_fails_on_a_difference(stored: StoredGates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "count_all", lambda: stored)
    assert CliRunner().invoke(gates.main, ["--check"]).exit_code == 0
    costs = stored.costs | {"both": Cost(nand2=1, flip_flops=1)}
    other = stored.model_copy(update={"costs": costs})
    monkeypatch.setattr(gates, "count_all", lambda: other)
    result = CliRunner().invoke(gates.main, ["--check"])
    assert result.exit_code == 1
    assert "check failed: both: 1 gates and 1 flip-flops, stored as" in result.output


def test_a_parameter_that_the_router_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="^router has no parameter Depth; it has Rows, Cols, "):
        synthesise({"Depth": 4})


def test_a_document_without_marks_is_refused(tmp_path: Path) -> None:
    document = tmp_path / "README.md"
    document.write_text("# The Verilog\n")
    with pytest.raises(InputError, match="README.md: found no '<!-- gates: begin -->' with "):
        with_block(document, "gates", "")


@pytest.mark.slow
def test_all_routers_counted_again(stored: StoredGates) -> None:
    assert differences(stored, gates.count_all()) == []
