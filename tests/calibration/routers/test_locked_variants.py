"""Locked channels are recognised: by made-up measurements, and of changed Verilog."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.experiment import LawContradictedError
from calibration.routers.custom import calibrate_custom
from calibration.routers.locking import LockedBuffering, LockedContention, LockedUnicast
from calibration.routers.scenes import play_model
from calibration.routers.subject import Subject
from cosim.spec.mesh import load_spec
from tests.calibration.routers.variants import Change, Moved, holds, variant, with_moved
from tlm.calibrated import REPOSITORY
from tlm.interconnect.zero_load import ARBITERS, CHANNELS, NocTiming

_LOCKED = REPOSITORY / "docs" / "custom_rtl" / "locked_mesh" / "locked_mesh.toml"
_PORTS = ("north", "east", "south", "west", "local")
_FOUND = {
    "fifo_depth": 2,
    "output_depth": 2,
    "tile_depth": 2,
    "channel": CHANNELS.index("output"),
    "request_cycles": 1,
    "acknowledge_cycles": 2,
    "data_cycles": 1,
    "ejection_cycles": 2,
    "hop_cycles": 2,
    "link_interval_cycles": 1,
    "serialisation_cycles": 1,
    "lock_grain": 1,
    "y_first": 0,
    "arbiter": ARBITERS.index("round-robin"),
    "lock_on_transfer": 1,
    "return_cycles": 1,
    "turnaround_cycles": 0,
    **{f"place_{port}": place for place, port in enumerate(_PORTS)},
}
_BY_RECEIVER = {"channel": CHANNELS.index("receiver"), "lock_grain": 0}
_FIXED = {"arbiter": ARBITERS.index("fixed")}


def _parameters(**values: int) -> Change:
    text = "\n".join(f"{name} = {value}" for name, value in values.items())
    return ("spec.toml", "[mesh]\n", f"[rtl.parameters]\n{text}\n[mesh]\n")


_COLUMNS_FIRST = (
    "locked_pkg.sv",
    """    if (to.col > at.col) output_of[East] = 1'b1;
    else if (to.col < at.col) output_of[West] = 1'b1;
    else if (to.row > at.row) output_of[South] = 1'b1;
    else if (to.row < at.row) output_of[North] = 1'b1;
""",
    """    if (to.row > at.row) output_of[South] = 1'b1;
    else if (to.row < at.row) output_of[North] = 1'b1;
    else if (to.col > at.col) output_of[East] = 1'b1;
    else if (to.col < at.col) output_of[West] = 1'b1;
""",
)
#: The winner waits for room, whoever comes meanwhile.
_CHOSEN_AT_ONCE = (
    "locked_output.sv",
    "    chosen = '0;\n",
    "    if (kept_q != '0) grant = kept_q;\n    chosen = '0;\n",
)
_KEPT = (
    "locked_output.sv",
    "  logic room, held, rested;\n",
    "  logic room, held, rested;\n  ports_t kept_q;\n"
    "  always_ff @(posedge clk) kept_q <= (rst || room) ? '0 : grant;\n",
)
#: A full buffer of an input takes a flit in the cycle in which one leaves.
_AT_ONCE: list[Change] = [
    (
        "locked_fifo.sv",
        "parameter int Depth = 2\n",
        "parameter int Depth = 2,\n  parameter int AtOnce = 0\n",
    ),
    (
        "locked_fifo.sv",
        "assign in_ready = count_q < CountWidth'(Depth);",
        "assign in_ready = count_q < CountWidth'(Depth) || (AtOnce != 0 && out_ready);",
    ),
    (
        "locked_router.sv",
        ".Depth((s < ExtraStages) ? 2 : InDepth)",
        ".Depth((s < ExtraStages) ? 2 : InDepth), .AtOnce(1)",
    ),
]

_VARIANTS: dict[str, tuple[list[Change], Moved]] = {
    "as-it-stands": ([], {}),
    "by-receiver": ([_parameters(ByReceiver=1)], _BY_RECEIVER),
    "three-cycle-router-by-receiver": (
        [_parameters(ExtraStages=1, ByReceiver=1)],
        _BY_RECEIVER | {"hop_cycles": 3, "ejection_cycles": 3, "fifo_depth": 4, "return_cycles": 2},
    ),
    "four-cycle-router": (
        [_parameters(ExtraStages=2)],
        {"hop_cycles": 4, "ejection_cycles": 4, "fifo_depth": 6, "return_cycles": 3},
    ),
    "throttled-links-by-receiver": (
        [_parameters(LinkInterval=2, ByReceiver=1)],
        _BY_RECEIVER | {"link_interval_cycles": 2, "serialisation_cycles": 2},
    ),
    "fixed-priority": ([_parameters(Arbiter=1)], _FIXED),
    "other-buffers-by-receiver": (
        [_parameters(InDepth=4, OutDepth=3, ByReceiver=1)],
        _BY_RECEIVER | {"fifo_depth": 4, "output_depth": 3, "tile_depth": 3},
    ),
    "deep-buffers": (
        [_parameters(InDepth=8, OutDepth=4)],
        {"fifo_depth": 8, "output_depth": 4, "tile_depth": 4},
    ),
    "slow-interfaces": (
        [_parameters(RequestCycles=3, AcknowledgeCycles=7, DataCycles=4)],
        {"request_cycles": 3, "acknowledge_cycles": 7, "data_cycles": 4},
    ),
    "slow-data-by-receiver": (
        [_parameters(AcknowledgeCycles=1, DataCycles=6, ByReceiver=1)],
        _BY_RECEIVER | {"acknowledge_cycles": 1, "data_cycles": 6},
    ),
    "columns-first": ([_COLUMNS_FIRST], {"y_first": 1}),
    "chosen-at-once": ([_CHOSEN_AT_ONCE, _KEPT], {"lock_on_transfer": 0}),
    "places-return-at-once": (
        [_parameters(ByReceiver=1), *_AT_ONCE],
        _BY_RECEIVER | {"return_cycles": 0},
    ),
}


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("name", _VARIANTS)
def test_changes_of_the_locked_mesh(name: str, tmp_path: Path) -> None:
    changes, expected = _VARIANTS[name]
    holds(variant(_LOCKED, tmp_path, changes), with_moved(_FOUND, expected))


#: The own request goes before acknowledges for others.
_REQUEST_FIRST: list[Change] = [
    (
        "locked_interface.sv",
        "end else if (!sending && answers) begin",
        "end else if (!sending && answers && !asks) begin",
    ),
    ("locked_interface.sv", "if (asks && !answers && sent)", "if (asks && sent)"),
    (
        "locked_interface.sv",
        ".out_ready(!sending && net_out_ready)",
        ".out_ready(!sending && !asks && net_out_ready)",
    ),
]


@pytest.mark.rtl
@pytest.mark.slow
def test_an_interface_that_the_model_cannot_be_is_told(tmp_path: Path) -> None:
    calibration = calibrate_custom(variant(_LOCKED, tmp_path, _REQUEST_FIRST), quick=True)
    assert calibration.not_represented[0].startswith(
        "request, acknowledge and data of a message: no form of the model explains every fit case"
    )
    # Alone and nearly so in a crowd it is like the one that is represented.
    worst = {result.name: result.max_abs_error_pct for result in calibration.results}
    assert worst["unicast"] == 0 < worst["traffic"] < 5


_PLAIN = NocTiming(
    hop_cycles=2,
    ejection_cycles=2,
    fifo_depth=2,
    multicast_gap_cycles=0,
    flit_bytes=8,
    output_depth=2,
    cut_through=False,
    line=(1, 2, 3, 4, 0, 5),
    channel="output",
)


def _subject(true: NocTiming, monkeypatch: pytest.MonkeyPatch) -> Subject:
    """A mesh that shows its set-up."""
    made = Subject(load_spec(_LOCKED))
    shown: Mapping[str, object] = {
        "channel": true.channel,
        "flits_mix": true.channel == "receiver",
        "set_up_cycles": true.set_up_cycles(1),
    }
    for name, value in shown.items():
        monkeypatch.setitem(made.__dict__, name, value)
    return made


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"channel": "receiver", "request_cycles": 4, "acknowledge_cycles": 3, "data_cycles": 2},
        {"hop_cycles": 4, "ejection_cycles": 3, "data_cycles": 8, "turnaround_cycles": 1},
        {"channel": "receiver", "arbiter": "fixed", "lock_on_transfer": True, "y_first": True},
        {"link_interval_cycles": 2, "return_cycles": 0, "acknowledge_cycles": 5},
    ],
)
def test_forms_are_found_in_made_up_measurements(
    form: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    true = replace(_PLAIN, **form)
    subject = _subject(true, monkeypatch)
    depths = LockedBuffering(subject)
    paths = depths.fit_cases()
    held = (true.fifo_depth, true.output_depth, true.tile_places)
    depths.identify(paths, [float(np.dot(path.places, held)) for path in paths])
    for experiment in (LockedUnicast(subject), LockedContention(subject)):
        cases = experiment.fit_cases()
        experiment.identify(cases, play_model(cases, true))
    assert subject.timing == true
    assert subject.not_represented == []


def test_messages_that_buffers_hold_whole_show_no_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = _subject(_PLAIN, monkeypatch)
    limited = subject.spec.limits.model_copy(update={"packet_flits": 8})
    subject.spec = subject.spec.model_copy(update={"limits": limited})
    depths = LockedBuffering(subject)
    paths = depths.fit_cases()
    with pytest.raises(LawContradictedError, match="hold whole messages of 8 flits"):
        depths.identify(paths, [8.0 * len(depths.counted(path)) for path in paths])
