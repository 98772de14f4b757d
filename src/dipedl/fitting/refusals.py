"""Notes on errors of transformers that refuse new rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refusals_noted(*, transform: bool = False) -> Iterator[None]:
    """Adds the remedy to an error of an encoder that meets a new level, or of any `transform`."""
    try:
        yield
    except Exception as error:
        if "unknown categories" in str(error):
            error.add_note(
                "features, or the steps of the pipeline given as estimator, refuse rows that they "
                "were not fitted on; let them pass, such as OneHotEncoder(handle_unknown='ignore')"
            )
        elif transform:
            error.add_note(
                "this is an error of transform, of features or of the steps of the pipeline given "
                "as estimator: rows are held out in fit, and new ones come in prediction, so it "
                "must take any rows, of any number"
            )
        raise
