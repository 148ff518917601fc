"""A built model is taken as long as all is as it was that Verilator read, named or not."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from calibration.routers.mesh import BlackBoxMesh
from calibration.simulator import build
from cosim.block import RtlBlock, block_model
from cosim.errors import SimulationError
from cosim.spec.mesh import MeshSpec, load_spec
from cosim.verilated import plain_names, progress, toolchain
from cosim.verilated.library import Library
from tests.specifications import TOY
from tlm.interconnect.packets import Packets, TileSet

_TOP = """
`include "step.svh"
module counter (
  input  logic       clk_i,
  input  logic       rst_ni,
  output logic [7:0] count_o
);
  logic [7:0] first [1];
  localparam string File = "DATA";
  initial $readmemh(File, first);
  logic [7:0] next;
  adder u_adder (.a_i(count_o), .b_i(8'(`STEP)), .sum_o(next));
  always_ff @(posedge clk_i) count_o <= rst_ni ? next : first[0];
endmodule
"""
_WIRE = "module wire_m (input a_i, output b_o); assign b_o = a_i; endmodule"
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
    assert "building" in capsys.readouterr().err
    (answer,) = (tmp_path / "cache" / "asked").glob("*.json")
    names = {Path(path).name for path in json.loads(answer.read_text())}
    assert names == {"adder.sv", "options.f", "step.svh"}  # data are looked for each time
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


def toy(folder: Path, name: str) -> MeshSpec:
    """The toy under another name, elsewhere."""
    shutil.copytree(TOY.parent, folder)
    text = (folder / "toy.toml").read_text().replace('name = "toy"', f'name = "{name}"')
    (folder / "toy.toml").unlink()
    (folder / f"{name}.toml").write_text(text)
    return load_spec(folder / f"{name}.toml")


@pytest.mark.rtl
def test_specifications_of_one_verilog_share_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WAFERTLM_CACHE", str(tmp_path / "cache"))
    one, other = (toy(tmp_path / name, name) for name in ("one", "other"))
    first = BlackBoxMesh(one, 3, 4).build()
    assert capsys.readouterr().err.startswith("building one 3x4, about 30 s, once\n")
    second = BlackBoxMesh(other, 3, 4).build()
    assert capsys.readouterr().err == ""
    assert second.folder == first.folder
    # Each knows what it is made of by its own files.
    assert [path.parent.name for path in first.read] == ["one"]
    assert [path.parent.name for path in second.read] == ["other"]
    # A file that might be included but is not read changes nothing; one that is read does.
    (other.folder / "notes.svh").write_text("// not included\n")
    assert BlackBoxMesh(other, 3, 4).build().folder == first.folder
    size = other.folder / "toy_size.svh"
    size.write_text(f"{size.read_text()}\n// more\n")
    assert BlackBoxMesh(other, 3, 4).build().folder != first.folder
    assert "building other 3x4" in capsys.readouterr().err


@pytest.mark.rtl
@pytest.mark.slow
def test_data_lie_below_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = toy(tmp_path / "toy", "toy")
    (verilog,) = spec.source_files()
    text = verilog.read_text().replace("(take_ready[tile]", "(on[0] && take_ready[tile]")
    read = '  logic [0:0] on [1];\n  initial $readmemh("data/on.hex", on);\n'
    verilog.write_text(text.replace(");\n", f");\n{read}", 1))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "on.hex").write_text("1\n")
    monkeypatch.chdir(tmp_path)
    mesh = BlackBoxMesh(spec, 3, 4)
    packets = Packets.of([(0, 0, TileSet.tile(0, 1), 1)])
    assert mesh.simulate(packets).packet.tolist() == [0]
    built = mesh.build()
    assert tmp_path / "data" / "on.hex" in built.read
    monkeypatch.setattr(BlackBoxMesh, "build", lambda mesh: built)
    (tmp_path / "data" / "on.hex").unlink()
    with pytest.raises(SimulationError, match=r"data/on.hex: found no such file of \$readmem"):
        mesh.simulate(packets)


def test_a_build_says_how_far_it_is_and_how_long_the_last_one_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_EVERY_S", 0.01)
    folder = tmp_path / "model"
    folder.mkdir()

    def wait_for(text: str) -> None:
        seen = ""
        while text not in seen:
            seen += capsys.readouterr().err

    with progress.told("a mesh", folder, nodes=16):
        wait_for("building a mesh, about 40 s, once\na mesh: Verilator reads the Verilog, 0 s\n")
        (folder / "Vtop.cpp").touch()
        (folder / "Vtop_more.cpp").touch()
        (folder / "Vtop.o").touch()
        wait_for("a mesh: 1 of 2 C++ files compiled, 0 s\n")
        (folder / "Vtop__ALL.cpp").touch()  # includes the others
        wait_for("a mesh: 0 of 1 C++ files compiled, 0 s\n")
    assert capsys.readouterr().err.endswith("built a mesh in 0 s\n")
    with pytest.raises(SimulationError), progress.told("a mesh", folder, nodes=16):
        wait_for("building a mesh, 0 s the last time\n")
        raise SimulationError
    assert "built" not in capsys.readouterr().err


@pytest.mark.rtl
def test_a_folder_may_be_called_as_one_likes(
    model: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verilator has a shell run make: names with blanks broke builds, others ran as commands."""
    tools = tmp_path / "my tools; touch ran"
    tools.mkdir()
    environment = toolchain.verilator_environment()
    (tools / "verilator").symlink_to(environment["VERILATOR_ROOT"])
    odd = environment | {"VERILATOR_ROOT": str(tools / "verilator")}
    for module in ("cosim.verilated.library", "calibration.simulator"):
        monkeypatch.setattr(f"{module}.verilator_environment", lambda: odd)
    cache = tmp_path / "my cache; touch ran; $(touch ran) 'x"
    monkeypatch.setenv("WAFERTLM_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)
    assert counts(model) == (5, 6)
    source = tmp_path / "my sources"
    source.mkdir()
    (source / "wire.sv").write_text(_WIRE)
    built = build("wire_m", [source / "wire.sv"], {})
    assert (built.folder / "wire_m").is_file()
    assert not [*tmp_path.rglob("ran")]


def test_the_library_of_verilator_is_compiled_once(tmp_path: Path) -> None:
    """For all models whose options mean the same to it; a model's own files are, each time."""
    compiler, include = tmp_path / "compiler", tmp_path / "tools" / "include"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] || { echo "$@" >>ran; touch "$2"; }\n')
    compiler.chmod(0o755)
    include.mkdir(parents=True)
    header = include / "verilated.h"
    for path in (header, include / "verilated.cpp"):
        path.touch()
    environment = os.environ | {"WAFERTLM_OBJECTS": str(tmp_path / "the objects")}

    def compiled(number: int, source: Path, *options: str) -> str:
        """What the compiler was told in a folder; nothing if it was not called."""
        folder = tmp_path / f"model {number}"
        folder.mkdir()
        object_file = f"{source.stem}.o"
        words = [str(compiler), "-o", object_file, *options, str(source)]
        script = Path(plain_names.__file__).with_name("keep_object.sh")
        subprocess.run(["sh", script, *words], cwd=folder, env=environment, check=True)
        assert (folder / object_file).exists()
        ran = folder / "ran"
        return ran.read_text() if ran.exists() else ""

    library, own = include / "verilated.cpp", tmp_path / "Vtop.cpp"
    assert "verilated.cpp" in compiled(1, library, "-O1", "-DVM_TRACE=0")
    assert compiled(2, library, "-O1", "-DVM_TRACE=0") == ""
    assert "OWN" not in compiled(3, library, "-O2", "-DOWN=1")
    assert compiled(4, library, "-O2", "-DOWN=2") == ""
    assert "VM_TRACE=1" in compiled(5, library, "-O1", "-DVM_TRACE=1")
    header.write_text("// changed")
    assert "-O1" in compiled(6, library, "-O1", "-DVM_TRACE=0")
    assert compiled(7, own, "-O1", "-DOWN") == compiled(8, own, "-O1", "-DOWN") != ""
