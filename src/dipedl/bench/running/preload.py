"""Imported once by the server that worker processes are forked from; heavy on purpose."""

from __future__ import annotations

from contextlib import suppress

import sklearn.ensemble
import sklearn.mixture
import sklearn.neighbors  # noqa: F401

from . import worker  # noqa: F401

with suppress(ImportError):
    import torch  # noqa: F401
