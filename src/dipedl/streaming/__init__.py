"""Rows that come in batches, and evidence that adds up: `partial_fit`, ``a + b``."""

from .row_sample import RowSample, row_keys
from .stream import Stream

__all__ = ["RowSample", "Stream", "row_keys"]
