"""The front door: the command and its reports."""

__version__ = "0.1.0"
