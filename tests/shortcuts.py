"""Shortcuts for the tests of both projects: work that need not be done at every call."""

import os
from contextlib import suppress
from functools import cache

import numpy as np

# Tests kill processes and fill disks, and never cut the power.
os.fsync = lambda handle: None

# A command line is built from its functions.
with suppress(ImportError):
    import typer.testing

    typer.testing._get_command = cache(typer.testing._get_command)

# scikit-learn asks in each step of a logistic regression where its arrays lie, and of each array
# whether it is a frame. They are numpy's in all tests: none dispatches on other libraries.
with suppress(ImportError, AttributeError):
    from sklearn.linear_model import _linear_loss
    from sklearn.utils import validation

    numpy_alone = (_linear_loss.get_namespace(np.ones(1))[0], False, None)
    is_frame = validation._nw_into_df_or_series
    _linear_loss.get_namespace_and_device = lambda *_, **__: numpy_alone
    _linear_loss.move_to = lambda array, **_: array
    validation._nw_into_df_or_series = lambda X: type(X) is not np.ndarray and is_frame(X)
