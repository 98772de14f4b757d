"""Save a fitted model to one file without pickle, and load it without running code from it."""

from .model_file import ModelFileError, UntrustedTypesError, describe, load, save

__all__ = ["ModelFileError", "UntrustedTypesError", "describe", "load", "save"]
