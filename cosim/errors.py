"""What may go wrong with Verilog."""


class SimulationError(RuntimeError):
    """A build or a run that did not end well; the message carries the errors and the log's end."""


class WrongDataError(SimulationError):
    """What came out is not what went in."""


class UnfinishedError(SimulationError):
    """A run that had not ended when it had to."""


class HangError(RuntimeError):
    """Nothing moved though something was waiting."""
