"""The transfers of a run, as they arrive."""

from dataclasses import dataclass, field

from tlm.interconnect.packets import TileSet
from tlm.trace.recorder import EngineSpan, TransferSpan


@dataclass(slots=True)
class TransferLog:
    """Keeps transfers (`Recorder`).

    Attributes:
        region: Tiles that matter.
        spans: What has arrived, in order.
    """

    region: TileSet
    spans: list[TransferSpan] = field(default_factory=list)

    @property
    def start_cycle(self) -> int:
        """When the first one started."""
        return min(span.start_cycle for span in self.spans)

    @property
    def arrival_cycle(self) -> int:
        """When the last one had been written."""
        return max(span.arrival_cycle for span in self.spans)

    def operation(self, span: EngineSpan) -> None:
        """See `Recorder`; nothing is kept."""

    def transfer(self, span: TransferSpan) -> None:
        """See `Recorder`."""
        self.spans.append(span)
