"""Shortcuts for the tests of both projects: work that need not be done at every call."""

import gc
import importlib.metadata
import inspect
import os
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

# narwhals asks all inputs of scikit-learn whether their class is one of its own.
with suppress(ImportError):
    import narwhals._utils

    _own = cache(lambda kind, name: inspect.getattr_static(kind, name, None) is not None)
    _asked = narwhals._utils._hasattr_static
    narwhals._utils._hasattr_static = lambda value, name: (
        _own(type(value), name) if name.startswith("__") else _asked(value, name)
    )
