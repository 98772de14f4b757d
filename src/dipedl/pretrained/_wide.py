"""Conversions that leave a log-density its digits."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def never_halved(fn: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The conversion `fn`, which moves a tensor but leaves its type where that would be halved.

    ``network.half()`` means the weights; a log-density would lose all its digits.
    """

    def careful(tensor: Tensor) -> Tensor:
        found = fn(tensor)
        half = tensor.is_floating_point() and found.element_size() < 4
        return tensor.to(found.device) if half else found

    return careful
