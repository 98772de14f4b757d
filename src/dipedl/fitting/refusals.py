"""Notes on errors of transformers that refuse new rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refusals_noted() -> Iterator[None]:
    """Adds the remedy to the error of an encoder that meets a new level."""
    try:
        yield
    except ValueError as error:
        if "unknown categories" in str(error):
            error.add_note(
                "features, or the steps of the pipeline given as estimator, refuse rows that they "
                "were not fitted on; let them pass, such as OneHotEncoder(handle_unknown='ignore')"
            )
        raise
