"""``wafertlm dies``."""

import json
from typing import Any

import pytest

from tlm.errors import InputError
from wafertlm import cli
from wafertlm.dies import DiesOptions, run_dies


def figures(**options: Any) -> dict[str, Any]:
    given = {"chip": "flat32-wafer", "collective": "all-to-all", "bytes": 4096, **options}
    return run_dies(DiesOptions(**given))


def test_figures_of_a_collective() -> None:
    """64 dies: each sends to 63 others; 8 x 4 x 4 messages through a link in the middle."""
    found = figures()
    assert (found["messages"], found["bytes"]) == (64 * 63, 64 * 63 * 4096)
    assert found["busiest_link_bytes"] == 128 * 4096
    # 14 hops of 256 ns and the packets' way at the very least.
    assert 14 * 256e-9 < found["seconds"] < 2 * 14 * 256e-9


def test_pieces_move_the_same_bytes() -> None:
    whole, pieces = figures(), figures(piece_bytes=1024)
    assert pieces["messages"] == 4 * whole["messages"]
    assert pieces["bytes"] == whole["bytes"]
    assert pieces["busiest_link_bytes"] == whole["busiest_link_bytes"]


def test_perf_says_how_far_it_is_from_the_links() -> None:
    lt, perf = figures(), figures(level="perf")
    assert perf["perf_error_pct"] is None
    off = 100 * (perf["seconds"] / lt["seconds"] - 1)
    assert lt["perf_error_pct"] == pytest.approx(off)


def test_a_run_in_turns_and_overlapped() -> None:
    run = figures(kernel_s=5e-6, repeat=4, collective="all-reduce", bytes=2**20)["run"]
    assert run["in_turns_s"] == pytest.approx(run["kernel_s"] + run["collective_s"])
    assert run["kernel_s"] == pytest.approx(20e-6)
    assert max(run["kernel_s"], run["overlapped_collective_s"]) < run["overlapped_s"]
    assert run["overlapped_s"] < run["kernel_s"] + run["overlapped_collective_s"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chip": "flat32"}, "--chip: 'flat32' is a single die; the profile has no [dies]"),
        ({"level": "at"}, "unknown level 'at'; known: lt, perf"),
        ({"kernel_s": -1.0}, "--kernel-s: found -1; allowed: 0 to 1000"),
        ({"piece_bytes": 0}, "--piece-bytes: found 0; allowed: 1 or more"),
        (
            {"piece_bytes": 64, "collective": "all-gather"},
            "--piece-bytes: found with --collective all-gather; allowed: with all-to-all",
        ),
        ({"repeat": 0}, "--repeat: found 0; allowed: 1 to 10000"),
        ({"repeat": 5}, "--repeat: found 5 without --kernel-s; allowed: with kernels"),
        (
            {"group": "0:20,0:1"},
            "--group: rectangle 0:20,0:1 is empty or lies outside the 8x8 mesh",
        ),
        ({"micro_batches": 0}, "--micro-batches: found 0; allowed: 1 to 10000"),
        (
            {"bytes": 2**37},
            "messages of 270582939648 packets; allowed: 16777216, or larger packets",
        ),
        ({"bytes": 4 * 10**18}, f"--bytes: found 4{'0' * 18}; allowed: 1 to 281474976710"),
        (
            {"bytes": 10**22, "level": "perf"},
            f"--bytes: found {10**22}; allowed: 1 to 281474976710",
        ),
    ],
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        figures(**options)
    assert str(caught.value) == message


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["dies", "--chip", "flat32-wafer", "--collective", "hand-over", "--bytes", "4096"]
    assert cli.run([*command, "--group", "0:4,0:4", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["options"]["group"] == "0:4,0:4"
    assert result["messages"] == 48
    assert cli.run([*command, "--group", "0:4,0:4"]) == 0
    assert "hand-over of 4,096 bytes" in capsys.readouterr().out
