"""A built model is taken as long as all is as it was that Verilator read, named or not."""

from pathlib import Path

import pytest

from cosim.block import RtlBlock, block_model
from cosim.errors import SimulationError
from cosim.verilated.cache import read_files
from cosim.verilated.library import Library

_TOP = """
`include "step.svh"
module counter (
  input  logic       clk_i,
  input  logic       rst_ni,
  output logic [7:0] count_o
);
  logic [7:0] first [1];
  initial $readmemh("DATA", first);
  logic [7:0] next;
  adder u_adder (.a_i(count_o), .b_i(8'(`STEP)), .sum_o(next));
  always_ff @(posedge clk_i) count_o <= rst_ni ? next : first[0];
endmodule
"""
_ADDER = """
module adder (input logic [7:0] a_i, input logic [7:0] b_i, output logic [7:0] sum_o);
  assign sum_o = a_i + b_i;
endmodule
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """A counter whose step, adder and first value are in files that nobody names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAFERTLM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "adder.sv").write_text(_ADDER)
    (tmp_path / "step.svh").write_text("`define STEP 1\n")
    (tmp_path / "first.hex").write_text("05\n")
    (tmp_path / "options.f").write_text("-y lib\n")
    top = tmp_path / "counter.sv"
    top.write_text(_TOP.replace("DATA", str(tmp_path / "first.hex")))
    found = block_model([top], {})
    return Library(
        name=found.name,
        top=found.top,
        text=found.text,
        driver=found.driver,
        defines=found.defines,
        sources=(),
        flags=["-f", "options.f"],
    )


def counts(model: Library) -> tuple[int, int]:
    """After reset, and a cycle later."""
    with RtlBlock(model) as block:
        block.settle()
        first = block.get("count_o")
        block.clock()
        block.settle()
        return first, block.get("count_o")


@pytest.mark.rtl
def test_what_is_read_beside_the_sources_counts(
    model: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, later = counts(model)
    assert later - first == 1
    folder = model.build().parent
    assert "building" in capsys.readouterr().err
    names = {path.name for path in read_files(folder)}
    assert names == {"adder.sv", "first.hex", "options.f", "step.svh"}
    counts(model)
    assert capsys.readouterr().err == ""  # as it was
    (tmp_path / "step.svh").write_text("`define STEP 2\n")
    (tmp_path / "first.hex").write_text("09\n")
    changed, later = counts(model)
    assert capsys.readouterr().err.startswith("building counter")
    assert (changed - first, later - changed) == (4, 2)
    (tmp_path / "lib" / "adder.sv").unlink()
    with pytest.raises(SimulationError, match="building counter failed"):
        counts(model)
