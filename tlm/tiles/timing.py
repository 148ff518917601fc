"""What a tile's blocks cost: its engines' streams, its sequencer, its network interface.

The constants of rtl/tile are measured (`tile-streams` and `tile-queues` among the calibrations).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tlm.calibrated import Parameter, load_result
from tlm.errors import hold_least


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """Constants of the streams, which calibration identifies.

    Attributes:
        lead_cycles: From the start of a job to the cycle in which its first operand is there; at
            least 2.
        places: Words that a reader holds or has asked for.
        pipeline_cycles: From an operand's entry into the vector unit to its result.
    """

    lead_cycles: int
    places: int
    pipeline_cycles: int

    @property
    def ask_cycles(self) -> int:
        """From the start of a job to the cycle in which it asks for its first word."""
        return self.lead_cycles - 2


@dataclass(frozen=True, slots=True)
class QueueTiming:
    """Costs of descriptors (rtl/tile/README.md, "Sequencer" and "Network interface").

    Attributes:
        launch_cycles: From the start of a transfer to its first flit at the network.
        outstanding: Transfers that a network interface has at a time: with 2 the words of one are
            read while those of another leave.
        starts_take_turns: One operation of a tile starts in a cycle; engines that could start
            together take turns.
        least_work_cycles: Least cycles of work that is no job of an engine.
        credit_interval_cycles: From credit to credit of those that a tile sends; 0: credits are on
            their way undisturbed, and nothing waits for them to leave.
        credits_at_end: Most credits that a descriptor gives; more are given by waits behind it.
        credit_depth: Credits that an input buffer of their routers holds.

    Raises:
        InputError: if one is too small.
    """

    launch_cycles: int = 0
    outstanding: int = 1
    starts_take_turns: bool = False
    least_work_cycles: int = 0
    credit_interval_cycles: int = 0
    credits_at_end: int = 2**62
    credit_depth: int = 1

    def __post_init__(self) -> None:
        least = {
            "launch_cycles": 0,
            "outstanding": 1,
            "least_work_cycles": 0,
            "credit_interval_cycles": 0,
            "credits_at_end": 1,
            "credit_depth": 1,
        }
        for name, allowed in least.items():
            hold_least(name, getattr(self, name), allowed)


#: A sequencer and an interface that cost nothing: an operation starts in the cycle in which its
#: tokens are there, and its first flit leaves in that cycle, too.
FREE = QueueTiming()


@dataclass(frozen=True, slots=True)
class TileTiming:
    """A tile of rtl/tile.

    Attributes:
        array_size: Rows, and columns, of the systolic array: operands of a word.
        banks: Banks of the scratchpad.
        streams: Costs of the engines' streams.
        queues: Costs of the sequencer and of the network interface.
        words: Words of the scratchpad.
    """

    array_size: int
    banks: int
    streams: StreamTiming
    queues: QueueTiming
    words: int = 2**62


def stream_timing(parameters: Mapping[str, Parameter]) -> StreamTiming:
    """Costs of streams from parameters of their names."""
    names = ("lead_cycles", "places", "pipeline_cycles")
    return StreamTiming(**{name: round(parameters[name].value) for name in names})


def queue_timing(parameters: Mapping[str, Parameter]) -> QueueTiming:
    """Costs of descriptors from parameters of their names."""
    return QueueTiming(
        launch_cycles=round(parameters["launch_cycles"].value),
        outstanding=round(parameters["outstanding"].value),
        starts_take_turns=parameters["start_interval_cycles"].value > 0,
        least_work_cycles=round(parameters["least_work_cycles"].value),
        credit_interval_cycles=round(parameters["credit_interval_cycles"].value),
        credits_at_end=round(parameters["credits_at_end"].value),
        credit_depth=round(parameters["credit_depth"].value),
    )


def rtl_tile(array_size: int, banks: int, words: int = 2**62) -> TileTiming:
    """A tile of rtl/tile, its timing as the stored calibrations have it.

    Args:
        array_size: Rows, and columns, of the systolic array.
        banks: Banks of the scratchpad.
        words: Its words.

    Raises:
        InputError: if a result is missing or stale.
    """
    streams = stream_timing(load_result("tile-streams").parameters)
    queues = queue_timing(load_result("tile-queues").parameters)
    return TileTiming(array_size, banks, streams, queues, words)
