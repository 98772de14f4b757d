"""Save a fitted model to one file without pickle, and load it without running code from it."""

from .model_file import UntrustedTypesError, describe, load, save

__all__ = ["UntrustedTypesError", "describe", "load", "save"]
