"""What happened when: timelines for Perfetto, and maps of links and tiles (docs/traces.md)."""

from tlm.trace.maps import link_flits
from tlm.trace.recorder import EngineSpan, Recorder, TransferSpan
from tlm.trace.timeline import Timeline
from tlm.trace.transfer_log import TransferLog

__all__ = ["EngineSpan", "Recorder", "Timeline", "TransferSpan", "TransferLog", "link_flits"]
