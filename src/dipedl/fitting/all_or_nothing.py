"""A fit that fails leaves the model as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def all_or_nothing(model: Any, *but: type[Exception]) -> Iterator[None]:
    """If the block raises, the attributes of `model` are those from before it.

    Attributes must be replaced in the block, not changed in place. Errors of the types `but` keep
    what was set, as does a KeyboardInterrupt.
    """
    before = dict(vars(model))
    try:
        yield
    except Exception as error:
        if not isinstance(error, but):
            vars(model).clear()
            vars(model).update(before)
        raise
