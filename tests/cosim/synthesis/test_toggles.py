"""Toggles of nets: what a wave says, and what the routers of a mesh switch."""

from pathlib import Path

import pytest

from cosim.spec.mesh import load_spec
from cosim.spec.project import MeshParameters, project_spec
from cosim.synthesis import switching
from cosim.synthesis.switching import MeshToggles, mesh_toggles
from cosim.synthesis.toggles import toggles
from tests.specifications import TOY

_HEAD = """$timescale 1ps $end
$scope module top $end
$var wire 1 ! clk $end
$var wire 4 " data [3:0] $end
$scope module u $end
$var wire 4 " port [3:0] $end
$var wire 1 # lsb $end
$var wire 2 $ other [1:0] $end
$var real 64 % share $end
$upscope $end
$upscope $end
$enddefinitions $end
"""
_START = '#0\n0!\nb0000 "\n0#\nb00 $\nr0.5 %\n'


def wave(folder: Path, changes: str) -> Path:
    path = folder / "wave.vcd"
    path.write_text(_HEAD + _START + changes)
    return path


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ("", 0),
        # The clock rises and falls again: nothing is seen of it.
        ("#10\n1!\n#20\n0!\n#30\n1!\n#40\n0!\n", 0),
        # Two bits in one cycle, one of them back in the next.
        ("#10\n1!\nb0011 \"\n#20\n0!\n#30\nb0001 \"\n", 3),
        # Bit 0 has two names, one of which is a signal of its own.
        ("#10\nb0101 \"\n1#\n#30\nb0100 \"\n0#\n", 3),
        # One that changes in the same cycle and in another is a net of its own.
        ("#10\nb0001 \"\n1#\n#30\n0#\n", 3),
        # There and back within a cycle is nothing; a change after the rise is of the next cycle.
        ("#10\nb1000 \"\n#20\nb0000 \"\n#40\nb1 $\n#50\nb11 $\n", 2),
    ],
)  # fmt: skip
def test_bits_that_change_are_counted(tmp_path: Path, changes: str, count: int) -> None:
    assert toggles(wave(tmp_path, changes), 10).total == count


def test_the_start_is_left_out(tmp_path: Path) -> None:
    file = wave(tmp_path, '#10\nb0001 "\n#30\nb0011 "\n#50\nb0111 "\n')
    assert [toggles(file, 10, first).total for first in (0, 1, 2, 3, 4)] == [3, 3, 2, 1, 0]


def test_nets_that_other_data_change_are_told_apart(tmp_path: Path) -> None:
    one = toggles(wave(tmp_path, '#10\nb0001 "\n#30\nb0111 "\n1#\n'), 10)
    other = toggles(wave(tmp_path, '#10\nb0101 "\n#30\nb0011 "\n1#\n'), 10)
    assert (one.total, one.apart(other), one.apart(one)) == (2, 0, 0)
    third = toggles(wave(tmp_path, '#10\nb0001 "\n'), 10)
    assert (one.apart(third), third.apart(one)) == (1, 0)


def test_wider_payloads_switch_more() -> None:
    found = MeshToggles(control=10.4, payload_bit=1.5, operations=("unicast",))
    assert [found.router(bits) for bits in (0, 64, 1024)] == [10, 106, 1546]


#: A register that changes in each cycle, one more name of a net, and a copy of the payload.
_BEAT = "logic beat; always_ff @(posedge clk) beat <= reset ? 1'b0 : !beat;"
_NAME = "logic [`FLIT-1:0] same; assign same = flit;"
_COPY = "logic [63:0] copy; always_ff @(posedge clk) copy <= flit[71:8];"


@pytest.mark.rtl
def test_each_net_of_a_mesh_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switching, "_CYCLES", 60)

    def counted(more: str) -> MeshToggles:
        text = (TOY.parent / "toy.sv").read_text()
        (tmp_path / "toy.sv").write_text(text.replace("endmodule", f"  {more}\nendmodule"))
        spec = TOY.read_text().replace('["."]', f'["{TOY.parent}"]')
        (tmp_path / "toy.toml").write_text(spec)
        return mesh_toggles(load_spec(tmp_path / "toy.toml"))

    plain, named, more = counted(""), counted(_NAME), counted(f"{_NAME} {_BEAT} {_COPY}")
    assert plain.operations == ("unicast",)
    assert named == plain
    # The payload's register switches as often as the payload itself, a 32nd for each bit of a node.
    assert plain.payload_bit < more.payload_bit < 2 * plain.payload_bit
    beats = more.control - plain.control
    assert beats > 60 / 12


@pytest.mark.slow
@pytest.mark.rtl
def test_deeper_buffers_switch_alike_and_collectives_are_in_it() -> None:
    shallow, deep = (
        mesh_toggles(project_spec(MeshParameters(4, 4, fifo_depth=depth))) for depth in (2, 4)
    )
    assert shallow.operations == deep.operations == ("unicast", "multicast", "sum", "maximum")
    # What is written is written once, however many places there are.
    assert deep.payload_bit == pytest.approx(shallow.payload_bit, rel=0.15)
    assert deep.control != shallow.control
