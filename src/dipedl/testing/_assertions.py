"""What a check says: AssertionError with the thing under test and what it did wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def require(condition: Any, message: str) -> None:
    """Raise AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def same(got: Any, expected: Any, tolerance: float, what: str) -> None:
    """Raise AssertionError unless the numbers agree, relatively or absolutely."""
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=what)


def refuses(
    thing: Any, what: str, error: type[Exception], function: Callable[..., Any], *args: Any
) -> None:
    """Raise AssertionError unless ``function(*args)`` raises `error`."""
    try:
        function(*args)
    except error:
        return
    except Exception as other:
        raise AssertionError(
            f"{thing}: {what} must raise {error.__name__}, got {other!r}"
        ) from other
    raise AssertionError(f"{thing}: {what} must raise {error.__name__}, but it passed")
