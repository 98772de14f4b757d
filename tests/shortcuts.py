"""Shortcuts for the tests of both projects: work that need not be done at every call."""

import gc
import importlib.metadata
import inspect
import os
import sys
from contextlib import suppress
from functools import cache

from sklearn.base import BaseEstimator

# Libraries leave a million objects behind, which a collection would visit each time.
gc.set_threshold(100_000, 50, 100)

# Tests kill processes and fill disks, and never cut the power.
os.fsync = lambda handle: None

# A command line is built from its functions.
with suppress(ImportError):
    import typer.testing

    typer.testing._get_command = cache(typer.testing._get_command)

# scikit-learn reads the signature of a class at every clone: once is enough.
BaseEstimator._get_param_names = classmethod(cache(BaseEstimator._get_param_names.__func__))

# Each file of a model names the versions of packages, which importlib reads from texts.
importlib.metadata.version = cache(importlib.metadata.version)

# narwhals asks all inputs of scikit-learn for static attributes: Python 3.12 has this cache.
if sys.version_info < (3, 12):
    inspect._shadowed_dict = cache(inspect._shadowed_dict)
