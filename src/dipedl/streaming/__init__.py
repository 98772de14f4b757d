"""Rows that come in batches, and evidence that adds up: `partial_fit`, ``a + b``."""

from .partial_fit import fit_batch, learn_evidence, merge
from .row_sample import RowSample, row_keys
from .stream import Stream

__all__ = ["RowSample", "Stream", "fit_batch", "learn_evidence", "merge", "row_keys"]
