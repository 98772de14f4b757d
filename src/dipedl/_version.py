"""The version, below every module that writes it into a file."""

__version__ = "0.2.0"
