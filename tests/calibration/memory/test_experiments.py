"""The times of a memory channel: found again, contradicted, and those of the Verilog."""

import pytest

from calibration.experiment import LawContradictedError
from calibration.memory.cases import HBM2
from calibration.memory.experiments import MemoryLatency, Probe
from tlm.calibrated import load_result

#: Times of a channel that is not the project's, no two alike.
OTHER_TIMES = {
    name: 3 + 2 * number
    for number, name in enumerate(
        ("read_latency", "write_latency", "t_rcd_rd", "t_rcd_wr", "t_rp", "t_ras", "t_rrd_s")
        + ("t_rrd_l", "t_ccd_s", "t_ccd_l", "t_rtw", "t_wtr_s", "t_wtr_l", "t_rtp", "t_wtp")
        + ("t_rfc", "t_refi")
    )
}


def other_channel(probe: Probe) -> float:
    return float(sum(OTHER_TIMES[name] for name in probe.law))


def test_times_of_another_memory_channel_are_recovered() -> None:
    probes = MemoryLatency().fit_cases()
    found = MemoryLatency().identify(probes, [other_channel(probe) for probe in probes])
    assert {name: parameter.value for name, parameter in found.items()} == OTHER_TIMES
    # They say what the probes were.
    assert MemoryLatency().predict(found, probes) == [other_channel(probe) for probe in probes]


@pytest.mark.parametrize("label", ["write row 1 bank 0 group 0", "read in refresh 3"])
def test_an_answer_that_is_late_contradicts_the_law_of_the_channel(label: str) -> None:
    probes = MemoryLatency().fit_cases()
    values = [other_channel(p) + p.label.startswith(label) for p in probes]
    with pytest.raises(LawContradictedError, match="no whole constants fit: nearest "):
        MemoryLatency().identify(probes, values)


def test_the_times_of_the_memory_channel_are_those_of_its_verilog() -> None:
    found = load_result("memory").parameters
    times = HBM2.timings
    latencies = {"read_latency": times.rl, "write_latency": times.wl}
    assert {name: parameter.value for name, parameter in found.items()} == {
        name: latencies[name] + times.bl + 1 if name in latencies else getattr(times, name)
        for name in found
    }
